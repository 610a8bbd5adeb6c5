# SPDX-License-Identifier: MIT
"""Run a function of the launch file while launching."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..action import Action
from ..condition import Condition
from ..launch_description_entity import LaunchDescriptionEntity
from ..utilities import normalize_to_list_of_entities

if TYPE_CHECKING:
    from ..launch_context import LaunchContext


class OpaqueFunction(Action):
    """Calls `function(context, *args, **kwargs)`; it may return a list of entities to visit."""

    def __init__(
        self,
        *,
        function: Callable[..., Sequence[LaunchDescriptionEntity] | None],
        args: Iterable[Any] | None = None,
        kwargs: dict[str, Any] | None = None,
        condition: Condition | None = None,
    ) -> None:
        super().__init__(condition=condition)
        if not callable(function):
            raise TypeError(f"OpaqueFunction: function must be callable, got {function!r}")
        if kwargs is not None and not isinstance(kwargs, dict):
            raise TypeError(f"OpaqueFunction: kwargs must be a dict, got {kwargs!r}")
        self.__function = function
        self.__args = () if args is None else tuple(args)
        self.__kwargs = {} if kwargs is None else dict(kwargs)

    def execute(self, context: LaunchContext) -> Sequence[LaunchDescriptionEntity] | None:
        """Call the function and return its entities."""
        entities = self.__function(context, *self.__args, **self.__kwargs)
        if entities is None:
            return None
        if isinstance(entities, LaunchDescriptionEntity):
            raise TypeError(
                f"OpaqueFunction: {self.__function!r} returned the single entity {entities!r}; "
                "return a list of entities, or None"
            )
        return normalize_to_list_of_entities(entities)
