# SPDX-License-Identifier: MIT
"""Processes that keep cores busy, so that a benchmark can be measured beside other jobs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

# Ends by itself when the benchmark is killed: its parent is another process then.
_SPIN = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""


@contextmanager
def busy_neighbours(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """So many processes that compute without pause while the block runs.

    Each has a session of its own, as another job has: the scheduler shares cores between sessions.
    """
    with ExitStack() as stack:
        neighbours = []
        for _ in range(count):
            process = subprocess.Popen([sys.executable, "-c", _SPIN], start_new_session=True)
            stack.callback(process.wait)
            stack.callback(process.kill)
            neighbours.append(process)
        yield neighbours
