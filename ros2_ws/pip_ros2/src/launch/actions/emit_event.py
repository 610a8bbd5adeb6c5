# SPDX-License-Identifier: MIT
"""Emit an event; in particular the one that ends the launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..action import Action
from ..condition import Condition
from ..event import Event
from ..events.shutdown import Shutdown as ShutdownEvent

if TYPE_CHECKING:
    from ..launch_context import LaunchContext


class EmitEvent(Action):
    """Queue an event when visited."""

    def __init__(self, *, event: Event, condition: Condition | None = None) -> None:
        super().__init__(condition=condition)
        if not isinstance(event, Event):
            raise TypeError(
                f"EmitEvent: event must be a launch event such as launch.events.Shutdown(), "
                f"got {event!r}"
            )
        self.__event = event

    @property
    def event(self) -> Event:
        """The event."""
        return self.__event

    def execute(self, context: LaunchContext) -> None:
        """Queue the event."""
        context.emit_event_sync(self.event)


class Shutdown(EmitEvent):
    """End the launch: stop all processes, then finish."""

    def __init__(
        self, *, reason: str = "reason not given", condition: Condition | None = None
    ) -> None:
        super().__init__(event=ShutdownEvent(reason=reason), condition=condition)

    def execute(self, context: LaunchContext) -> None:
        """Queue the event, unless the launch is ending already."""
        if not context.is_shutdown:
            super().execute(context)
