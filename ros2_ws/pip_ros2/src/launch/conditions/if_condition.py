# SPDX-License-Identifier: MIT
"""Execute an action if, or unless, a text reads as true."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..condition import Condition
from ..some_substitutions_type import SomeSubstitutionsType
from ..utilities import normalize_to_list_of_substitutions
from .evaluate_condition_expression import evaluate_condition_expression

if TYPE_CHECKING:
    from ..launch_context import LaunchContext


class IfCondition(Condition):
    """Holds when the predicate reads as true."""

    def __init__(self, predicate_expression: SomeSubstitutionsType) -> None:
        self.__predicate_expression = normalize_to_list_of_substitutions(predicate_expression)
        super().__init__(predicate=self._predicate_func)

    def _predicate_func(self, context: LaunchContext) -> bool:
        return evaluate_condition_expression(context, self.__predicate_expression)

    def describe(self) -> str:
        """Return the condition in the notation of launch files."""
        parts = " + ".join(sub.describe() for sub in self.__predicate_expression)
        return f"{type(self).__name__}({parts})"


class UnlessCondition(IfCondition):
    """Holds when the predicate reads as false."""

    def _predicate_func(self, context: LaunchContext) -> bool:
        return not super()._predicate_func(context)
