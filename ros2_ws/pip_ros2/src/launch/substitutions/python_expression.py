"""The value of a Python expression, as text."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..some_substitutions_type import SomeSubstitutionsType
from ..substitution import Substitution
from ..utilities import normalize_to_list_of_substitutions, perform_substitutions
from .substitution_failure import SubstitutionFailure

if TYPE_CHECKING:
    from ..launch_context import LaunchContext


class PythonExpression(Substitution):
    """Evaluates an expression in which launch configurations may be pasted as text.

    Names of `python_modules` are available with their module's name; those of `math` also bare.
    """

    def __init__(
        self,
        expression: SomeSubstitutionsType,
        python_modules: Sequence[str] = ("math",),
    ) -> None:
        if isinstance(python_modules, str) or not all(
            isinstance(module, str) for module in python_modules
        ):
            raise TypeError(
                f"PythonExpression: python_modules must be a list of names, got {python_modules!r}"
            )
        self.__expression = normalize_to_list_of_substitutions(expression)
        self.__python_modules = list(python_modules)

    @property
    def expression(self) -> list[Substitution]:
        """The parts of the expression."""
        return self.__expression

    def describe(self) -> str:
        """Return the expression in the notation of launch files."""
        return f"PythonExpr({' + '.join(sub.describe() for sub in self.expression)})"

    def perform(self, context: LaunchContext) -> str:
        """Return `str()` of the expression's value."""
        names: dict[str, Any] = {}
        for module_name in self.__python_modules:
            module = importlib.import_module(module_name)
            names[module_name.partition(".")[0]] = importlib.import_module(
                module_name.partition(".")[0]
            )
            if module_name == "math":
                names.update(
                    {key: item for key, item in vars(module).items() if not key.startswith("_")}
                )
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
