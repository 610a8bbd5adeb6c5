# SPDX-License-Identifier: MIT
"""Waiting inside a single-threaded executor: futures that a timer completes."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from rclpy.task import Future

Condition = Callable[[], bool]


@dataclass
class _Wait:
    condition: Condition
    deadline_s: float
    future: Future = field(default_factory=Future)


class ConditionWaiter:
    """Futures on conditions; `poll` must be called often."""

    def __init__(self) -> None:
        self._waits: list[_Wait] = []

    def until(self, condition: Condition, timeout_s: float) -> Awaitable[bool]:
        """A future that becomes True when the condition holds, False at the timeout."""
        wait = _Wait(condition, time.monotonic() + timeout_s)
        self._waits.append(wait)
        return wait.future

    def poll(self) -> None:
        """Complete every future whose condition holds or whose time is over."""
        now_s = time.monotonic()
        ready: list[tuple[Future, bool]] = []
        pending: list[_Wait] = []
        for wait in self._waits:
            if wait.condition():
                ready.append((wait.future, True))
            elif now_s > wait.deadline_s:
                ready.append((wait.future, False))
            else:
                pending.append(wait)
        self._waits = pending
        # Completing a future may add another wait: the list is settled before.
        for future, met in ready:
            future.set_result(met)
