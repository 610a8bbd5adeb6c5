"""How long the machine itself stands still: a process per processor that only sleeps and looks.

A virtual machine that its host takes off the processor stalls everything in it, whatever priority
it has. No program can keep a period through that, so a benchmark of periods measures it as well.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import TracebackType

from equi_core.motion.realtime import Priority, raise_priority

Interval = tuple[float, float]
"""Start and end [s] on the monotonic clock."""

_NAP_S = 0.002
# Above the emulated controller (10) and the servo process (5).
_PRIORITY = 20


@dataclass(frozen=True)
class MachineStalls:
    """What the lookouts saw."""

    intervals_s: tuple[Interval, ...]
    """When a processor was away for longer than a controller period, on the monotonic clock."""
    worst_ms: float
    real_time: bool
    """Whether the lookouts had real-time priority; if not, other programs delay them too."""

    def running_s(self, interval_s: Interval) -> float:
        """How much of an interval all processors were there."""
        start_s, end_s = interval_s
        running_s, cursor_s = 0.0, start_s
        for away_s, back_s in sorted(self.intervals_s):
            running_s += max(0.0, min(away_s, end_s) - cursor_s)
            cursor_s = max(cursor_s, min(back_s, end_s))
        return running_s + max(0.0, end_s - cursor_s)


class StallWatch:
    """Watches every processor while the context is open."""

    def __init__(self, period_s: float) -> None:
        context = multiprocessing.get_context("spawn")
        self._watchers: list[tuple[multiprocessing.process.BaseProcess, Connection]] = []
        for processor in sorted(os.sched_getaffinity(0)):
            ours, theirs = context.Pipe()
            watcher = context.Process(
                target=_look_out, args=(processor, period_s, theirs), daemon=True
            )
            self._watchers.append((watcher, ours))

    def __enter__(self) -> StallWatch:
        for watcher, pipe in self._watchers:
            watcher.start()
            pipe.recv()
        return self

    def begin(self) -> None:
        """Forget what was seen so far: the start of the processes under test."""
        for _, pipe in self._watchers:
            pipe.send("begin")

    def finish(self) -> MachineStalls:
        """What was seen since `begin`."""
        for _, pipe in self._watchers:
            pipe.send("finish")
        seen = [pipe.recv() for _, pipe in self._watchers]
        return MachineStalls(
            intervals_s=tuple(interval for _, intervals, _ in seen for interval in intervals),
            worst_ms=max(worst_s for worst_s, _, _ in seen) * 1e3,
            real_time=all(real_time for _, _, real_time in seen),
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for watcher, pipe in self._watchers:
            pipe.close()  # a watcher without a listener ends
            watcher.join(2.0)


def _look_out(processor: int, period_s: float, pipe: Connection) -> None:
    os.sched_setaffinity(0, {processor})
    real_time = raise_priority(_PRIORITY) is Priority.REAL_TIME
    pipe.send("ready")
    worst_s, intervals = 0.0, []
    try:
        while True:
            before_s = time.monotonic()
            ordered = pipe.poll(_NAP_S)
            if not ordered:
                after_s = time.monotonic()
                due_s = before_s + _NAP_S
                worst_s = max(worst_s, after_s - due_s)
                if after_s - due_s > period_s:
                    # Taken away somewhere in the nap, so the whole of it may be missing.
                    intervals.append((before_s, after_s))
            elif pipe.recv() == "begin":
                worst_s, intervals = 0.0, []
            else:
                pipe.send((worst_s, intervals, real_time))
    except (EOFError, OSError):
        return
