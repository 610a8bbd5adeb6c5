# SPDX-License-Identifier: MIT
"""Register an event handler while launching."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..action import Action
from ..condition import Condition
from ..event_handler import BaseEventHandler
from ..launch_description_entity import LaunchDescriptionEntity

if TYPE_CHECKING:
    from ..launch_context import LaunchContext


class RegisterEventHandler(Action):
    """The handler is active from the visit of this action on."""

    def __init__(
        self, event_handler: BaseEventHandler, *, condition: Condition | None = None
    ) -> None:
        super().__init__(condition=condition)
        if not isinstance(event_handler, BaseEventHandler):
            raise TypeError(
                "RegisterEventHandler: expected an event handler such as OnProcessExit(...), "
                f"got {event_handler!r}"
            )
        self.__event_handler = event_handler

    @property
    def event_handler(self) -> BaseEventHandler:
        """The handler."""
        return self.__event_handler

    def execute(self, context: LaunchContext) -> None:
        """Register the handler."""
        context.register_event_handler(self.event_handler)

    def describe_conditional_sub_entities(
        self,
    ) -> Sequence[tuple[str, Iterable[LaunchDescriptionEntity]]]:
        """Return what the handler may yield when its event happens."""
        return [("when the event happens", self.event_handler.describe_entities())]
