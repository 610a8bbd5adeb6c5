# SPDX-License-Identifier: MIT
"""The value of a launch argument or launch configuration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..some_substitutions_type import SomeSubstitutionsType
from ..substitution import Substitution
from ..utilities import normalize_to_list_of_substitutions, perform_substitutions
from .substitution_failure import SubstitutionFailure

if TYPE_CHECKING:
    from ..launch_context import LaunchContext


class LaunchConfiguration(Substitution):
    """Looks a launch configuration up at the moment it is performed."""

    def __init__(self, variable_name: SomeSubstitutionsType, *, default: Any = None) -> None:
        self.__variable_name = normalize_to_list_of_substitutions(variable_name)
        self.__default: list[Substitution] | None = None
        if default is not None:
            if not isinstance(default, (str, Substitution, Iterable)):
                default = str(default)
            self.__default = normalize_to_list_of_substitutions(default)

    @property
    def variable_name(self) -> list[Substitution]:
        """The name of the configuration."""
        return self.__variable_name

    def describe(self) -> str:
        """Return the name in the notation of launch files."""
        names = " + ".join(sub.describe() for sub in self.variable_name)
        return f"LaunchConfig({names})"

    def perform(self, context: LaunchContext) -> str:
        """Return the configured text, else the default, else raise SubstitutionFailure."""
        name = perform_substitutions(context, self.variable_name)
        if name in context.launch_configurations:
            return context.launch_configurations[name]
        if self.__default is not None:
            return perform_substitutions(context, self.__default)
        known = ", ".join(sorted(context.launch_configurations)) or "none"
        raise SubstitutionFailure(
            f"launch configuration '{name}' does not exist (set at this point: {known}); "
            "declare it with DeclareLaunchArgument before its first use"
        )
