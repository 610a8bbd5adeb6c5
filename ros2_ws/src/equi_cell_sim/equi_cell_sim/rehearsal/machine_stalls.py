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

from equi_core.realtime import Priority, raise_priority

_NAP_S = 0.002
# Above the emulated controller (10) and the servo process (5).
_PRIORITY = 20


@dataclass(frozen=True)
class MachineStalls:
    """What the lookouts saw."""

    worst_ms: float
    over_one_period: int
    """Times that a processor came back later than a controller period."""
    real_time: bool
    """Whether the lookouts had real-time priority; if not, other programs delay them too."""


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
            worst_ms=max(worst_s for worst_s, _, _ in seen) * 1e3,
            over_one_period=sum(count for _, count, _ in seen),
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
    worst_s, count = 0.0, 0
    try:
        while True:
            before_s = time.monotonic()
            ordered = pipe.poll(_NAP_S)
            if not ordered:
                late_s = time.monotonic() - before_s - _NAP_S
                worst_s = max(worst_s, late_s)
                count += late_s > period_s
            elif pipe.recv() == "begin":
                worst_s, count = 0.0, 0
            else:
                pipe.send((worst_s, count, real_time))
    except (EOFError, OSError):
        return
