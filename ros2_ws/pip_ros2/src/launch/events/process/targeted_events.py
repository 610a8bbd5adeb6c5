# SPDX-License-Identifier: MIT
"""Events that ask something of the processes that a matcher selects."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...event import Event

if TYPE_CHECKING:
    from ...actions.execute_process import ExecuteProcess


class ProcessTargetedEvent(Event):
    """Addressed to every process for which `process_matcher(action)` is true."""

    name = "launch.events.process.ProcessTargetedEvent"

    def __init__(self, *, process_matcher: Callable[[ExecuteProcess], bool]) -> None:
        if not callable(process_matcher):
            raise TypeError(
                f"{type(self).__name__}: process_matcher must be callable, as "
                f"matches_action(...) returns it; got {process_matcher!r}"
            )
        self.__process_matcher = process_matcher

    @property
    def process_matcher(self) -> Callable[[ExecuteProcess], bool]:
        """The selecting function."""
        return self.__process_matcher


class ShutdownProcess(ProcessTargetedEvent):
    """Stop the process: SIGINT, then SIGTERM, then SIGKILL."""

    name = "launch.events.process.ShutdownProcess"


class SignalProcess(ProcessTargetedEvent):
    """Send a signal to the process."""

    name = "launch.events.process.SignalProcess"

    def __init__(
        self,
        *,
        signal_number: str | int | signal.Signals,
        process_matcher: Callable[[ExecuteProcess], bool],
    ) -> None:
        super().__init__(process_matcher=process_matcher)
        self.__signal = (
            signal.Signals[signal_number]
            if isinstance(signal_number, str)
            else signal.Signals(signal_number)
        )

    @property
    def signal(self) -> signal.Signals:
        """The signal."""
        return self.__signal

    @property
    def signal_name(self) -> str:
        """The signal's name, such as `SIGINT`."""
        return self.__signal.name
