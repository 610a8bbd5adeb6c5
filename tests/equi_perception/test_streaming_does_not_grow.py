# SPDX-License-Identifier: MIT
"""Streaming costs no memory: after warming up, neither memory nor descriptors of a node grow."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from perception_cell import started_perception

pytestmark = pytest.mark.ros
WARM_UP_S = 5.0
MOST_GROWTH_MB = 20.0
"""Buffers of DDS and diagnostics settle in the first minute; a leak of one cloud (5 MB) in a
hundred frames passes this within ten seconds."""


def resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


@pytest.mark.parametrize(
    "duration_s",
    [
        pytest.param(8.0, marks=pytest.mark.timeout(180)),
        pytest.param(600.0, marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
    ],
)
def test_perception_streams_without_growth(
    ros_probe: Any,
    processes: Any,
    repository_root: Path,
    ros_domain_id: int,
    duration_s: float,
) -> None:
    cell, node = started_perception(ros_probe, processes, repository_root, ros_domain_id)
    first = cell.observation()
    # Streaming for a given time is what is tested; nothing is waited for.
    time.sleep(WARM_UP_S)
    memory_mb, files = resident_mb(node.pid), descriptors(node.pid)
    time.sleep(duration_s)
    last = cell.observation(lambda message: message.sequence > first.sequence)
    growth_mb = resident_mb(node.pid) - memory_mb
    print(f"{last.sequence} observations, {growth_mb:.1f} MB")  # noqa: T201
    assert last.sequence - first.sequence > duration_s, "it streamed all the time"
    assert growth_mb < MOST_GROWTH_MB
    assert descriptors(node.pid) <= files + 2
