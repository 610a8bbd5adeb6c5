# SPDX-License-Identifier: MIT
"""Scheduler stalls: one process per processor sleeps and measures how late it is woken up.

A virtual machine that its host does not schedule stalls everything in it, whatever its priority.
No program keeps a period through that, so a benchmark of periods measures it as well.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection

from equi_core.motion.realtime import Priority, raise_priority

Interval = tuple[float, float]
"""Start and end [s] on the monotonic clock."""

_SLEEP_S = 0.002
# Above the emulated controller (10) and the servo process (5).
_PRIORITY = 20


@dataclass(frozen=True)
class SchedulerStalls:
    """When processors did not run the monitor."""

    intervals_s: tuple[Interval, ...]
    """When a processor was not scheduled for longer than the limit, on the monotonic clock."""
    worst_ms: float
    real_time: bool
    """Whether the monitor had real-time priority; if not, other programs delay it too."""

    def running_s(self, interval_s: Interval) -> float:
        """How much of an interval [s] all processors were scheduled."""
        start_s, end_s = interval_s
        running_s, cursor_s = 0.0, start_s
        for stall_s, resumed_s in sorted(self.intervals_s):
            running_s += max(0.0, min(stall_s, end_s) - cursor_s)
            cursor_s = max(cursor_s, min(resumed_s, end_s))
        return running_s + max(0.0, end_s - cursor_s)


class StallMonitor:
    """Monitors every processor while the context is open."""

    def __init__(self, limit_s: float) -> None:
        context = multiprocessing.get_context("spawn")
        self._monitors: list[tuple[multiprocessing.process.BaseProcess, Connection]] = []
        for processor in sorted(os.sched_getaffinity(0)):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_monitor, args=(processor, limit_s, theirs), daemon=True
            )
            self._monitors.append((process, ours))

    def __enter__(self) -> StallMonitor:
        for process, pipe in self._monitors:
            process.start()
            pipe.recv()
        return self

    def begin(self) -> None:
        """Forget the stalls so far: the start of the processes under test causes some."""
        for _, pipe in self._monitors:
            pipe.send("begin")

    def finish(self) -> SchedulerStalls:
        """The stalls since `begin`."""
        for _, pipe in self._monitors:
            pipe.send("finish")
        found = [pipe.recv() for _, pipe in self._monitors]
        return SchedulerStalls(
            intervals_s=tuple(interval for _, intervals, _ in found for interval in intervals),
            worst_ms=max(worst_s for worst_s, _, _ in found) * 1e3,
            real_time=all(real_time for _, _, real_time in found),
        )

    def __exit__(self, *_: object) -> None:
        for process, pipe in self._monitors:
            pipe.close()  # a monitor whose pipe is closed ends
            process.join(2.0)


def _monitor(processor: int, limit_s: float, pipe: Connection) -> None:
    os.sched_setaffinity(0, {processor})
    real_time = raise_priority(_PRIORITY) is Priority.REAL_TIME
    pipe.send("ready")
    worst_s, intervals = 0.0, []
    try:
        while True:
            before_s = time.monotonic()
            ordered = pipe.poll(_SLEEP_S)
            if not ordered:
                after_s = time.monotonic()
                due_s = before_s + _SLEEP_S
                worst_s = max(worst_s, after_s - due_s)
                if after_s - due_s > limit_s:
                    # Somewhere during the sleep, so the whole of it may be missing.
                    intervals.append((before_s, after_s))
            elif pipe.recv() == "begin":
                worst_s, intervals = 0.0, []
            else:
                pipe.send((worst_s, intervals, real_time))
    except (EOFError, OSError):
        return
