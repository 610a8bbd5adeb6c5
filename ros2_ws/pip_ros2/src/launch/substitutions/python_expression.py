# SPDX-License-Identifier: MIT
"""The value of a Python expression, as text."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..some_substitutions_type import SomeSubstitutionsType
from ..substitution import Substitution
from ..utilities import normalize_to_list_of_substitutions, perform_substitutions
from .substitution_failure import SubstitutionFailure

if TYPE_CHECKING:
    from ..launch_context import LaunchContext


class PythonExpression(Substitution):
    """Evaluates an expression in which launch configurations may be pasted as text.

    Each of `python_modules` is available under its own name; what is in `math` also without it.
    """

    def __init__(
        self,
        expression: SomeSubstitutionsType,
        python_modules: SomeSubstitutionsType = ("math",),
    ) -> None:
        self.__expression = normalize_to_list_of_substitutions(expression)
        self.__python_modules = normalize_to_list_of_substitutions(python_modules)

    @property
    def expression(self) -> list[Substitution]:
        """The parts of the expression."""
        return self.__expression

    @property
    def python_modules(self) -> list[Substitution]:
        """The names of the modules."""
        return self.__python_modules

    def describe(self) -> str:
        """Return the expression in the notation of launch files."""
        return f"PythonExpr({' + '.join(sub.describe() for sub in self.expression)})"

    def perform(self, context: LaunchContext) -> str:
        """Return `str()` of the expression's value."""
        names: dict[str, Any] = {}
        for module_name in self.python_modules:
            module = importlib.import_module(module_name.perform(context))
            if module.__name__ == "math":
                names.update(vars(module))
            names[module.__name__] = module
        text = perform_substitutions(context, self.expression)
        try:
            # A launch file is a program of the user's own; its expressions run with its rights.
            return str(eval(text, {}, names))
        except Exception as error:
            raise SubstitutionFailure(
                f"PythonExpression '{text}' failed: {type(error).__name__}: {error}; "
                "text values need quotes around them, as in [\"'\", LaunchConfiguration('x'), "
                "\"' == 'y'\"]"
            ) from error
