# SPDX-License-Identifier: MIT
"""What a handler does: fixed entities, or a function that returns some."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..event import Event
from ..launch_description_entity import LaunchDescriptionEntity
from ..some_entities_type import SomeEntitiesType
from ..utilities import normalize_to_list_of_entities

if TYPE_CHECKING:
    from ..launch_context import LaunchContext


class Reaction:
    """Entities, or `function(event, context)` returning entities or None."""

    def __init__(self, given: Any, argument_name: str) -> None:
        self.__function: Callable[[Any, LaunchContext], SomeEntitiesType | None] | None = None
        self.entities: list[LaunchDescriptionEntity] = []
        if callable(given):
            self.__function = given
            return
        try:
            self.entities = normalize_to_list_of_entities(given)
        except TypeError as error:
            raise TypeError(
                f"{argument_name} must be an action, a list of actions, or a function of "
                f"(event, context): {error}"
            ) from None

    @property
    def is_empty(self) -> bool:
        """Whether it is an empty list."""
        return self.__function is None and not self.entities

    def __call__(self, event: Event, context: LaunchContext) -> SomeEntitiesType | None:
        """Return the entities to visit now."""
        if self.__function is not None:
            return self.__function(event, context)
        return self.entities
