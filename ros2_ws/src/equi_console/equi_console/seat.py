# SPDX-License-Identifier: MIT
"""One operator at a time: whoever has the seat may press; the others watch, or take over openly."""

from __future__ import annotations

import threading
from dataclasses import dataclass


@dataclass(frozen=True)
class Sitting:
    """Who has the seat."""

    browser: str
    """Identifies one browser; the same after a reload."""
    name: str
    """What the operator calls himself; goes to logs and labels."""


class SeatTaken(RuntimeError):
    """Somebody else has the seat; says who, and how to take over."""


class OperatorSeat:
    """The one seat at the desk. It stays with its operator until somebody takes it over."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sitting: Sitting | None = None
        self.takeovers = 0

    @property
    def sitting(self) -> Sitting | None:
        """Who has it; None: nobody."""
        return self._sitting

    def has(self, browser: str) -> bool:
        """Whether a browser has it."""
        sitting = self._sitting
        return sitting is not None and sitting.browser == browser

    def take(self, browser: str, name: str, *, take_over: bool = False) -> str:
        """Sit down.

        Args:
            browser: who asks.
            name: of the person.
            take_over: also if somebody else sits there.

        Returns:
            What happened, in words.

        Raises:
            SeatTaken: somebody else has it, and no take-over was asked for.
            ValueError: the name is empty.
        """
        name = name.strip()
        if not name:
            raise ValueError("say who you are: your name goes to the log and to the labels")
        with self._lock:
            before = self._sitting
            if before is not None and before.browser != browser:
                if not take_over:
                    raise SeatTaken(f"{before.name} has the desk; press 'take over' to replace him")
                self.takeovers += 1
            self._sitting = Sitting(browser, name)
        if before is None or before.browser == browser:
            return f"{name} has the desk"
        return f"{name} took over from {before.name}"

    def leave(self, browser: str) -> str:
        """Stand up, if it is one's own seat."""
        with self._lock:
            if self._sitting is None or self._sitting.browser != browser:
                return "you did not have the desk"
            name, self._sitting = self._sitting.name, None
        return f"{name} left the desk"
