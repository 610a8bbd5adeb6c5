# SPDX-License-Identifier: MIT
"""React to processes that start or end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..action import Action
from ..event import Event
from ..event_handler import BaseEventHandler
from ..events.process import ProcessExited, ProcessStarted, RunningProcessEvent
from ..launch_description_entity import LaunchDescriptionEntity
from ..some_entities_type import SomeEntitiesType
from .reaction import Reaction

if TYPE_CHECKING:
    from ..launch_context import LaunchContext

ActionMatcher = Callable[[Action], bool]


class _OnProcessEvent(BaseEventHandler):
    """Handles one kind of process event, of one action, some actions, or all."""

    def __init__(
        self,
        *,
        event_type: type[RunningProcessEvent],
        target_action: Any,
        reaction: Reaction,
        handle_once: bool,
    ) -> None:
        from ..actions.execute_process import ExecuteProcess

        if not (
            target_action is None
            or isinstance(target_action, ExecuteProcess)
            or (callable(target_action) and not isinstance(target_action, Action))
        ):
            raise TypeError(
                f"{type(self).__name__}: target_action must be the ExecuteProcess or Node action "
                f"itself, a function of the action, or None; got {target_action!r}"
            )
        if reaction.is_empty:
            raise TypeError(
                f"{type(self).__name__}: the list of actions is empty, which ROS stumbles over "
                "when the event happens; give an action, or leave the handler out"
            )
        self.__event_type = event_type
        self.__target_action = target_action
        self.__reaction = reaction
        super().__init__(matcher=self.__is_meant, handle_once=handle_once)

    def __is_meant(self, event: Event) -> bool:
        if not isinstance(event, self.__event_type):
            return False
        if self.__target_action is None:
            return True
        if isinstance(self.__target_action, Action):
            return event.action is self.__target_action
        return bool(self.__target_action(event.action))

    def handle(self, event: Event, context: LaunchContext) -> SomeEntitiesType | None:
        """Return the entities of the reaction."""
        super().handle(event, context)
        return self.__reaction(event, context)

    def describe_entities(self) -> list[LaunchDescriptionEntity]:
        """Return the entities, as far as known before launching."""
        return self.__reaction.entities


class OnProcessStart(_OnProcessEvent):
    """React to the start of a process."""

    def __init__(
        self,
        *,
        target_action: Action | ActionMatcher | None = None,
        on_start: SomeEntitiesType
        | Callable[[ProcessStarted, LaunchContext], SomeEntitiesType | None],
        handle_once: bool = False,
    ) -> None:
        super().__init__(
            event_type=ProcessStarted,
            target_action=target_action,
            reaction=Reaction(on_start, "on_start"),
            handle_once=handle_once,
        )


class OnProcessExit(_OnProcessEvent):
    """React to the end of a process."""

    def __init__(
        self,
        *,
        target_action: Action | ActionMatcher | None = None,
        on_exit: SomeEntitiesType
        | Callable[[ProcessExited, LaunchContext], SomeEntitiesType | None],
        handle_once: bool = False,
    ) -> None:
        super().__init__(
            event_type=ProcessExited,
            target_action=target_action,
            reaction=Reaction(on_exit, "on_exit"),
            handle_once=handle_once,
        )
