# SPDX-License-Identifier: MIT
"""The base class of all actions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from .condition import Condition
from .launch_description_entity import LaunchDescriptionEntity

if TYPE_CHECKING:
    from .launch_context import LaunchContext


class Action(LaunchDescriptionEntity):
    """An entity that does something when visited, unless its condition says no."""

    def __init__(self, *, condition: Condition | None = None) -> None:
        if condition is not None and not isinstance(condition, Condition):
            raise TypeError(
                f"{type(self).__name__}: condition must be a Condition such as "
                f"IfCondition(...), got {condition!r}"
            )
        self.__condition = condition

    @property
    def condition(self) -> Condition | None:
        """The condition on which the action is executed, or None."""
        return self.__condition

    def describe(self) -> str:
        """Return a short text that names the action in messages."""
        return f"{type(self).__name__} at {hex(id(self))}"

    def get_sub_entities(self) -> Sequence[LaunchDescriptionEntity]:
        """Return the entities that execution yields, as far as known before launching."""
        return []

    def describe_sub_entities(self) -> Sequence[LaunchDescriptionEntity]:
        """Return the sub entities of an unconditional action."""
        return self.get_sub_entities() if self.condition is None else []

    def describe_conditional_sub_entities(
        self,
    ) -> Sequence[tuple[str, Iterable[LaunchDescriptionEntity]]]:
        """Return the sub entities of a conditional action."""
        if self.condition is None:
            return []
        return [(f"Conditionally included by {self.describe()}", self.get_sub_entities())]

    def visit(self, context: LaunchContext) -> Sequence[LaunchDescriptionEntity] | None:
        """Execute the action if its condition allows."""
        if self.condition is None or self.condition.evaluate(context):
            return self.execute(context)
        return None

    def execute(self, context: LaunchContext) -> Sequence[LaunchDescriptionEntity] | None:
        """Do the work of the action; subclasses override this."""
        raise NotImplementedError(f"{type(self).__name__} does not implement execute()")
