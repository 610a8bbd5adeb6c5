# SPDX-License-Identifier: MIT
"""Include another launch file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .._outside_subset import OutsideSubsetError
from ..action import Action
from ..condition import Condition
from ..launch_description_entity import LaunchDescriptionEntity
from ..launch_description_source import LaunchDescriptionSource
from ..some_substitutions_type import SomeSubstitutionsType
from ..utilities import normalize_to_list_of_substitutions, perform_substitutions
from .opaque_function import OpaqueFunction
from .set_launch_configuration import SetLaunchConfiguration

if TYPE_CHECKING:
    from ..launch_context import LaunchContext
    from ..launch_description import LaunchDescription

FILE_LOCALS = ("current_launch_file_path", "current_launch_file_directory")

LaunchArguments = Iterable[tuple[SomeSubstitutionsType, SomeSubstitutionsType]]


class IncludeLaunchDescription(Action):
    """Visits the entities of another launch description.

    As in ROS there is no scope around it: the given arguments, and what the included file sets,
    remain set afterwards. Put the action into a GroupAction to confine them.
    """

    def __init__(
        self,
        launch_description_source: LaunchDescriptionSource,
        *,
        launch_arguments: LaunchArguments | None = None,
        condition: Condition | None = None,
    ) -> None:
        super().__init__(condition=condition)
        if not isinstance(launch_description_source, LaunchDescriptionSource):
            raise OutsideSubsetError(
                "IncludeLaunchDescription with something else than "
                f"PythonLaunchDescriptionSource(...), here {launch_description_source!r},"
            )
        self.__source = launch_description_source
        self.__launch_arguments = _checked_arguments(launch_arguments)

    @property
    def launch_description_source(self) -> LaunchDescriptionSource:
        """Where the description comes from."""
        return self.__source

    @property
    def launch_arguments(
        self,
    ) -> Sequence[tuple[SomeSubstitutionsType, SomeSubstitutionsType]]:
        """Names and values of the arguments given to the included description."""
        return self.__launch_arguments

    def describe(self) -> str:
        """Return which file is included."""
        return f"IncludeLaunchDescription({self.__source.location})"

    def get_sub_entities(self) -> Sequence[LaunchDescriptionEntity]:
        """Return the included description if its path is known before launching."""
        description = self.__source.try_get_launch_description_without_context()
        return [] if description is None else [description]

    def execute(self, context: LaunchContext) -> Sequence[LaunchDescriptionEntity]:
        """Set the arguments and yield the included description."""
        description = self.__source.get_launch_description(context)
        self.__require_arguments(context, description)
        before = context.get_locals_as_dict()
        path = os.path.abspath(self.__source.location)
        context.extend_locals(
            {
                "current_launch_file_path": path,
                "current_launch_file_directory": os.path.dirname(path),
            }
        )
        return [
            *(SetLaunchConfiguration(name, value) for name, value in self.__launch_arguments),
            description,
            OpaqueFunction(function=_restore_file_locals, args=[before]),
        ]

    def __require_arguments(self, context: LaunchContext, description: LaunchDescription) -> None:
        given = self._argument_names(context)
        for argument, includes in description._arguments_with_includes():
            if argument._conditionally_included or argument.default_value is not None:
                continue
            given_inside = {name for inc in includes for name in inc._argument_names(context)}
            if argument.name not in given and argument.name not in given_inside:
                raise RuntimeError(
                    f"Included launch description missing required argument '{argument.name}' "
                    f"(description: '{argument.description}'), given: [{', '.join(given)}]"
                )

    def _argument_names(self, context: LaunchContext) -> list[str]:
        return [
            perform_substitutions(context, normalize_to_list_of_substitutions(name))
            for name, _ in self.__launch_arguments
        ]


def _checked_arguments(
    launch_arguments: LaunchArguments | None,
) -> tuple[tuple[SomeSubstitutionsType, SomeSubstitutionsType], ...]:
    if launch_arguments is None:
        return ()
    if isinstance(launch_arguments, dict):
        raise TypeError(
            "IncludeLaunchDescription: launch_arguments takes pairs of name and value; "
            "write {...}.items() instead of {...}"
        )
    pairs = tuple(launch_arguments)
    for pair in pairs:
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
            raise TypeError(
                f"IncludeLaunchDescription: each of launch_arguments is a pair of name and "
                f"value, got {pair!r}"
            )
        normalize_to_list_of_substitutions(pair[0])
        normalize_to_list_of_substitutions(pair[1])
    return pairs


def _restore_file_locals(context: LaunchContext, before: dict[str, Any]) -> None:
    """Let ThisLaunchFile mean the including file again; other locals stay."""
    values = context.get_locals_as_dict()
    for name in FILE_LOCALS:
        values.pop(name, None)
        if name in before:
            values[name] = before[name]
    context._replace_locals(values)
