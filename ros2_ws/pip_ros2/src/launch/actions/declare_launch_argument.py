# SPDX-License-Identifier: MIT
"""Declare an argument of a launch file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..action import Action
from ..condition import Condition
from ..some_substitutions_type import SomeSubstitutionsType
from ..substitution import Substitution
from ..utilities import normalize_to_list_of_substitutions, perform_substitutions

if TYPE_CHECKING:
    from ..launch_context import LaunchContext


class DeclareLaunchArgument(Action):
    """After this action a launch configuration of that name exists, or an error was raised.

    A value set before (command line, include, SetLaunchConfiguration) wins over the default; the
    default is evaluated when the action is visited.
    """

    def __init__(
        self,
        name: str,
        *,
        default_value: SomeSubstitutionsType | None = None,
        description: str | None = None,
        choices: Sequence[str] | None = None,
        condition: Condition | None = None,
    ) -> None:
        super().__init__(condition=condition)
        if not isinstance(name, str):
            raise TypeError(f"DeclareLaunchArgument: name must be a str, got {name!r}")
        if description is not None and not isinstance(description, str):
            raise TypeError(
                f"launch argument '{name}': description must be a str, got {description!r}"
            )
        self.__name = name
        self.__default_value = (
            None if default_value is None else normalize_to_list_of_substitutions(default_value)
        )
        self.__choices = _checked_choices(name, choices, default_value)
        self.__description = _full_description(description, self.__choices)
        self._conditionally_included = False

    @property
    def name(self) -> str:
        """The argument's name, also that of the launch configuration."""
        return self.__name

    @property
    def default_value(self) -> list[Substitution] | None:
        """The default, None if the argument is required."""
        return self.__default_value

    @property
    def description(self) -> str:
        """The description, with the choices appended."""
        return self.__description

    @property
    def choices(self) -> list[str] | None:
        """The allowed values, None if any is."""
        return self.__choices

    def execute(self, context: LaunchContext) -> None:
        """Set the default where no value is set; check the choices."""
        if self.name not in context.launch_configurations:
            if self.default_value is None:
                raise RuntimeError(
                    f'Required launch argument "{self.name}" '
                    f'(description: "{self.description}") was not provided; '
                    f"add {self.name}:=VALUE to the command"
                )
            context.launch_configurations[self.name] = perform_substitutions(
                context, self.default_value
            )
        value = context.launch_configurations[self.name]
        if self.choices is not None and value not in self.choices:
            raise RuntimeError(
                f'Argument "{self.name}" provided value "{value}" is not valid. '
                f"Valid options are: {self.choices}"
            )


def _checked_choices(
    name: str, choices: Sequence[str] | None, default_value: SomeSubstitutionsType | None
) -> list[str] | None:
    if choices is None:
        return None
    if isinstance(choices, str) or not all(isinstance(choice, str) for choice in choices):
        raise TypeError(f"launch argument '{name}': choices must be a list of str, got {choices!r}")
    if len(choices) == 0:
        raise RuntimeError(
            f"launch argument '{name}': choices is empty; leave it out to allow any value"
        )
    if isinstance(default_value, str) and default_value not in choices:
        raise RuntimeError(
            f"launch argument '{name}': default_value \"{default_value}\" is not among the "
            f"choices {list(choices)}"
        )
    return list(choices)


def _full_description(description: str | None, choices: list[str] | None) -> str:
    if choices is None:
        return "no description given" if description is None else description
    if description is None:
        return f"One of: {choices}"
    stop = "" if description.endswith(".") else "."
    return f"{description}{stop} Valid choices are: {choices}"
