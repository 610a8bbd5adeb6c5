# SPDX-License-Identifier: MIT
"""The value of an environment variable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..some_substitutions_type import SomeSubstitutionsType
from ..substitution import Substitution
from ..utilities import normalize_to_list_of_substitutions, perform_substitutions
from .substitution_failure import SubstitutionFailure

if TYPE_CHECKING:
    from ..launch_context import LaunchContext


class EnvironmentVariable(Substitution):
    """Looks a variable up in the launch context's environment."""

    def __init__(
        self,
        name: SomeSubstitutionsType,
        *,
        default_value: SomeSubstitutionsType | None = None,
    ) -> None:
        self.__name = normalize_to_list_of_substitutions(name)
        self.__default_value = (
            None if default_value is None else normalize_to_list_of_substitutions(default_value)
        )

    @property
    def name(self) -> list[Substitution]:
        """The name of the variable."""
        return self.__name

    def describe(self) -> str:
        """Return the name in the notation of launch files."""
        return f"EnvVar({' + '.join(sub.describe() for sub in self.name)})"

    def perform(self, context: LaunchContext) -> str:
        """Return the value, else the default, else raise SubstitutionFailure."""
        name = perform_substitutions(context, self.name)
        if name in context.environment:
            return context.environment[name]
        if self.__default_value is not None:
            return perform_substitutions(context, self.__default_value)
        raise SubstitutionFailure(
            f"environment variable '{name}' does not exist; export it, or give "
            "EnvironmentVariable(..., default_value=...)"
        )
