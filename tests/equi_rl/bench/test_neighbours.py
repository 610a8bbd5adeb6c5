# SPDX-License-Identifier: MIT
"""Neighbours of a benchmark compute while it runs, and are gone afterwards."""

from __future__ import annotations

import os
import time

import pytest

from equi_rl.bench.neighbours import busy_neighbours


def processor_ticks(pid: int) -> int:
    with open(f"/proc/{pid}/stat") as stream:
        fields = stream.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_neighbours_compute_in_sessions_of_their_own_and_end_with_the_block():
    with busy_neighbours(2) as neighbours:
        pids = [process.pid for process in neighbours]
        assert len(set(pids)) == 2
        assert {os.getsid(pid) for pid in pids} == set(pids)
        deadline = time.monotonic() + 60.0
        for pid in pids:
            before = processor_ticks(pid)
            while processor_ticks(pid) == before:
                assert time.monotonic() < deadline, "a neighbour does not compute"
                os.sched_yield()
    assert [process.returncode for process in neighbours] == [-9, -9]


def test_neighbours_end_when_the_benchmark_fails():
    with pytest.raises(RuntimeError, match="broken"), busy_neighbours(1) as neighbours:
        raise RuntimeError("broken")
    assert neighbours[0].returncode == -9
