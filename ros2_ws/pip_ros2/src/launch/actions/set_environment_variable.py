"""Set an environment variable for what follows in the scope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..action import Action
from ..condition import Condition
from ..some_substitutions_type import SomeSubstitutionsType
from ..substitution import Substitution
from ..utilities import normalize_to_list_of_substitutions, perform_substitutions

if TYPE_CHECKING:
    from ..launch_context import LaunchContext


class SetEnvironmentVariable(Action):
    """Processes started afterwards inherit the variable."""

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
        """The variable's name."""
        return self.__name

    @property
    def value(self) -> list[Substitution]:
        """The variable's value."""
        return self.__value

    def execute(self, context: LaunchContext) -> None:
        """Set the variable."""
        name = perform_substitutions(context, self.name)
        context.environment[name] = perform_substitutions(context, self.value)
