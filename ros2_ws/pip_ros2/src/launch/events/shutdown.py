# SPDX-License-Identifier: MIT
"""The event that ends the launch."""

from __future__ import annotations

from ..event import Event


class Shutdown(Event):
    """All processes are to be stopped and the launch is to end."""

    name = "launch.events.Shutdown"

    def __init__(self, *, reason: str = "reason not given", due_to_sigint: bool = False) -> None:
        self.__reason = reason
        self.__due_to_sigint = due_to_sigint

    @property
    def reason(self) -> str:
        """Why the launch ends."""
        return self.__reason

    @property
    def due_to_sigint(self) -> bool:
        """Whether Ctrl-C is the reason."""
        return self.__due_to_sigint
