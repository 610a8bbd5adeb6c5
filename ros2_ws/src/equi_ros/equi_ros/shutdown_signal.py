# SPDX-License-Identifier: MIT
"""Signals that request shutdown, handled where no work is left half done.

Python lets a signal handler raise at whatever line comes next. Inside rclpy that line may be one
where the exception becomes another one (a message that is being converted), is swallowed (a
generator that is being closed) or leaves every later callback locked out: the process would then
fail, or keep running with the arm in motion. So code that talks to ROS defers signals: they are
remembered, and raised at the next safe place.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

POLL_PERIOD_S = 0.1
"""How long a spin may block before it polls for a signal again [s]."""


class ShutdownSignal:
    """Turns SIGINT, SIGTERM and SIGHUP into KeyboardInterrupt: at once, or deferred."""

    def __init__(self, on_signal: Callable[[], object] = lambda: None) -> None:
        """`on_signal` is called when the first signal arrives, deferred or not."""
        self._on_signal: Callable[[], object] | None = on_signal
        self._pending = False
        self._deferred = False

    def listen(self) -> None:
        """Install the handlers; main thread only.

        SIGINT too: a background job of a shell is started with it ignored.
        """
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.notify)
        # `nohup` asks for the opposite.
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            signal.signal(signal.SIGHUP, self.notify)

    def notify(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: raise KeyboardInterrupt, or remember it while signals are deferred."""
        if self._on_signal is not None:
            on_signal, self._on_signal = self._on_signal, None
            on_signal()
        if not self._deferred and not _is_in_finalizer(frame):
            raise KeyboardInterrupt
        self._pending = True

    @contextmanager
    def defer(self) -> Iterator[None]:
        """A block in which a signal is raised by `check` only, and at the end of the block."""
        before, self._deferred = self._deferred, True
        try:
            yield
        finally:
            self._deferred = before
        if not before:
            self.check()

    def spin(self, step: Callable[[], object], until: Callable[[], bool] = lambda: False) -> None:
        """Repeat a step until a signal arrives or `until` says so; a step is always finished."""
        before, self._deferred = self._deferred, True
        try:
            while not self._pending and not until():
                step()
            self._pending = False
        finally:
            self._deferred = before

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal is pending."""
        if self._pending:
            self._pending = False
            raise KeyboardInterrupt

    def ignore(self) -> None:
        """Shutdown is under way: further signals change nothing."""
        self._deferred = True


def _is_in_finalizer(frame: FrameType | None) -> bool:
    """Whether Python would swallow an exception here, and print it."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False
