# SPDX-License-Identifier: MIT
"""The list of entities that a launch file returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from . import logging as launch_logging
from .action import Action
from .launch_description_entity import LaunchDescriptionEntity
from .utilities import normalize_to_list_of_entities

if TYPE_CHECKING:
    from .actions.declare_launch_argument import DeclareLaunchArgument
    from .actions.include_launch_description import IncludeLaunchDescription
    from .launch_context import LaunchContext


class LaunchDescription(LaunchDescriptionEntity):
    """Entities to visit in order."""

    def __init__(
        self,
        initial_entities: Iterable[LaunchDescriptionEntity] | None = None,
        *,
        deprecated_reason: str | None = None,
    ) -> None:
        if isinstance(initial_entities, LaunchDescriptionEntity):
            raise TypeError(f"LaunchDescription takes a list of actions, got {initial_entities!r}")
        self.__entities = (
            [] if initial_entities is None else normalize_to_list_of_entities(initial_entities)
        )
        self.__deprecated_reason = deprecated_reason

    @property
    def entities(self) -> list[LaunchDescriptionEntity]:
        """The entities."""
        return self.__entities

    @property
    def deprecated(self) -> bool:
        """Whether the description should not be used any more."""
        return self.__deprecated_reason is not None

    @property
    def deprecated_reason(self) -> str | None:
        """Why the description should not be used any more."""
        return self.__deprecated_reason

    def add_entity(self, entity: LaunchDescriptionEntity) -> None:
        """Append an entity."""
        self.__entities.extend(normalize_to_list_of_entities([entity]))

    def add_action(self, action: Action) -> None:
        """Append an action."""
        self.add_entity(action)

    def visit(self, context: LaunchContext) -> Sequence[LaunchDescriptionEntity]:
        """Return the entities, with a warning if the description is deprecated."""
        if self.__deprecated_reason is not None:
            path = context.get_locals_as_dict().get("current_launch_file_path")
            what = (
                f"launch file [{path}] is deprecated" if path else "deprecated launch description"
            )
            launch_logging.get_logger().warning(f"{what}: {self.__deprecated_reason}")
        return self.__entities

    def describe_sub_entities(self) -> Sequence[LaunchDescriptionEntity]:
        """Return the entities."""
        return self.__entities

    def get_launch_arguments(
        self, conditional_inclusion: bool = False
    ) -> list[DeclareLaunchArgument]:
        """Return the arguments that this description and those it includes declare.

        Each name once, its first declaration. What only shows while launching (functions,
        included files whose path depends on an argument) is not seen.
        """
        return [argument for argument, _ in self._arguments_with_includes(conditional_inclusion)]

    def _arguments_with_includes(
        self, conditional_inclusion: bool = False
    ) -> list[tuple[DeclareLaunchArgument, tuple[IncludeLaunchDescription, ...]]]:
        """Return each declared argument with the chain of includes that leads to it."""
        found: dict[str, tuple[DeclareLaunchArgument, tuple[IncludeLaunchDescription, ...]]] = {}
        _collect_arguments(self.entities, conditional_inclusion, (), found)
        return list(found.values())


def _collect_arguments(
    entities: Iterable[LaunchDescriptionEntity],
    conditional: bool,
    includes: tuple[IncludeLaunchDescription, ...],
    found: dict[str, tuple[DeclareLaunchArgument, tuple[IncludeLaunchDescription, ...]]],
) -> None:
    from .actions._scoping import ResetLaunchConfigurations
    from .actions.declare_launch_argument import DeclareLaunchArgument
    from .actions.include_launch_description import IncludeLaunchDescription

    for entity in entities:
        if isinstance(entity, ResetLaunchConfigurations):
            return  # what follows in this scope cannot be set from outside
        if isinstance(entity, DeclareLaunchArgument):
            if entity.name not in found:
                entity._conditionally_included = conditional or entity.condition is not None
                found[entity.name] = (entity, includes)
            continue
        chain = (*includes, entity) if isinstance(entity, IncludeLaunchDescription) else includes
        _collect_arguments(entity.describe_sub_entities(), conditional, chain, found)
        for _, sub_entities in entity.describe_conditional_sub_entities():
            _collect_arguments(sub_entities, True, chain, found)
