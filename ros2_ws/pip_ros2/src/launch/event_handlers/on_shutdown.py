# SPDX-License-Identifier: MIT
"""React to the end of the launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..event import Event
from ..event_handler import BaseEventHandler
from ..events.shutdown import Shutdown
from ..launch_description_entity import LaunchDescriptionEntity
from ..some_entities_type import SomeEntitiesType
from .reaction import Reaction

if TYPE_CHECKING:
    from ..launch_context import LaunchContext


class OnShutdown(BaseEventHandler):
    """React to the Shutdown event; processes started from here on are not started any more."""

    def __init__(
        self,
        *,
        on_shutdown: SomeEntitiesType
        | Callable[[Shutdown, LaunchContext], SomeEntitiesType | None],
        handle_once: bool = False,
    ) -> None:
        super().__init__(matcher=lambda event: isinstance(event, Shutdown), handle_once=handle_once)
        self.__reaction = Reaction(on_shutdown, "on_shutdown")

    def handle(self, event: Event, context: LaunchContext) -> SomeEntitiesType | None:
        """Return the entities of the reaction."""
        super().handle(event, context)
        return self.__reaction(event, context)

    def describe_entities(self) -> list[LaunchDescriptionEntity]:
        """Return the entities, as far as known before launching."""
        return self.__reaction.entities
