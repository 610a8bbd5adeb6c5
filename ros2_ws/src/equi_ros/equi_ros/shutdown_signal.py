"""Signals that ask for the end of a run, heard where nothing is left half done.

Python lets a signal's handler raise at whatever line comes next. Inside rclpy that line may be one
where the exception becomes another one (a message that is being converted), is swallowed (a
generator that is being closed) or leaves every later callback locked out: the run would then fail,
or go on with the arm moving. So the code that talks to ROS is sheltered: there a signal is
remembered, and raised at the next place that can bear it.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

HEARD_WITHIN_S = 0.1
"""How long a node may wait for something to do before it looks for a signal again [s]."""


class EndRequest:
    """Interrupts the run as Ctrl-C does: at once, or when the shelter allows it."""

    def __init__(self) -> None:
        self._heard = False
        self._sheltered = False

    def listen(self) -> None:
        """Let every signal that asks for an end interrupt the run; main thread only.

        SIGINT too: a background job of a shell is started with it ignored.
        """
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._hear)
        # `nohup` asks for the opposite.
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            signal.signal(signal.SIGHUP, self._hear)

    @contextmanager
    def shelter(self) -> Iterator[None]:
        """A block that is interrupted by `check` only, and at its end."""
        before, self._sheltered = self._sheltered, True
        try:
            yield
        finally:
            self._sheltered = before
        if not before:
            self.check()

    def repeat(self, step: Callable[[], object]) -> None:
        """Take one step after the other until a signal is heard; the last one is finished."""
        before, self._sheltered = self._sheltered, True
        try:
            while not self._heard:
                step()
            self._heard = False
        finally:
            self._sheltered = before

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal was heard since it was last raised."""
        if self._heard:
            self._heard = False
            raise KeyboardInterrupt

    def ignore(self) -> None:
        """The end is under way: whoever asks for it again gets what he asks for anyway."""
        self._sheltered = True

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if not self._sheltered:
            raise KeyboardInterrupt
        self._heard = True
