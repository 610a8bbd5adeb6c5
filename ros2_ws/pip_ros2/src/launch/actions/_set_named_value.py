# SPDX-License-Identifier: MIT
"""What the actions that set a named value have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..action import Action
from ..condition import Condition
from ..some_substitutions_type import SomeSubstitutionsType
from ..substitution import Substitution
from ..utilities import normalize_to_list_of_substitutions, perform_substitutions

if TYPE_CHECKING:
    from ..launch_context import LaunchContext


class SetNamedValue(Action):
    """Name and value, both substituted when visited."""

    def __init__(
        self,
        name: SomeSubstitutionsType,
        value: SomeSubstitutionsType,
        *,
        condition: Condition | None = None,
    ) -> None:
        super().__init__(condition=condition)
        self.__name = normalize_to_list_of_substitutions(name)
        self.__value = normalize_to_list_of_substitutions(value)

    @property
    def name(self) -> list[Substitution]:
        """What is set."""
        return self.__name

    @property
    def value(self) -> list[Substitution]:
        """What it is set to."""
        return self.__value

    def performed(self, context: LaunchContext) -> tuple[str, str]:
        """Name and value as text."""
        return (
            perform_substitutions(context, self.name),
            perform_substitutions(context, self.value),
        )
