# SPDX-License-Identifier: MIT
"""Event handlers: which events, and what to do then."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .event import Event
from .launch_description_entity import LaunchDescriptionEntity
from .some_entities_type import SomeEntitiesType
from .utilities import normalize_to_list_of_entities

if TYPE_CHECKING:
    from .launch_context import LaunchContext


class BaseEventHandler:
    """Decides by `matcher(event)` which events to handle; subclasses say how."""

    def __init__(self, *, matcher: Callable[[Event], bool], handle_once: bool = False) -> None:
        if not callable(matcher):
            raise TypeError(f"{type(self).__name__}: matcher must be callable, got {matcher!r}")
        if not isinstance(handle_once, bool):
            raise TypeError(
                f"{type(self).__name__}: handle_once must be a bool, got {handle_once!r}"
            )
        self.__matcher = matcher
        self.__handle_once = handle_once

    @property
    def handle_once(self) -> bool:
        """Whether the handler retires after its first event."""
        return self.__handle_once

    def matches(self, event: Event) -> bool:
        """Return whether this handler is to handle the event."""
        return self.__matcher(event)

    def handle(self, event: Event, context: LaunchContext) -> SomeEntitiesType | None:
        """Prepare the context for the reaction; subclasses return the entities to visit."""
        context.extend_locals({"event": event})
        if self.handle_once:
            context.unregister_event_handler(self)
        return None

    def describe_entities(self) -> list[LaunchDescriptionEntity]:
        """Return the entities that the handler may yield, as far as known before launching."""
        return []


class EventHandler(BaseEventHandler):
    """A handler with fixed entities."""

    def __init__(
        self,
        *,
        matcher: Callable[[Event], bool],
        entities: SomeEntitiesType | None = None,
        handle_once: bool = False,
    ) -> None:
        super().__init__(matcher=matcher, handle_once=handle_once)
        self.__entities = [] if entities is None else normalize_to_list_of_entities(entities)

    @property
    def entities(self) -> list[LaunchDescriptionEntity]:
        """The entities to visit when a matching event happens."""
        return self.__entities

    def handle(self, event: Event, context: LaunchContext) -> SomeEntitiesType | None:
        """Return the entities."""
        super().handle(event, context)
        return self.__entities

    def describe_entities(self) -> list[LaunchDescriptionEntity]:
        """Return the entities."""
        return self.__entities
