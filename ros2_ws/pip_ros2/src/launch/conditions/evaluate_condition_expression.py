# SPDX-License-Identifier: MIT
"""Read text as a truth value, by ROS's rule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..substitution import Substitution
from ..utilities import perform_substitutions

if TYPE_CHECKING:
    from ..launch_context import LaunchContext

TRUE_TEXTS = ("true", "1")
FALSE_TEXTS = ("false", "0")


class InvalidConditionExpressionError(Exception):
    """A condition's text is neither true nor false."""


def evaluate_condition_expression(
    context: LaunchContext, expression: Iterable[Substitution]
) -> bool:
    """Return the truth of the text: true/1 and false/0 in any case, spaces ignored."""
    text = perform_substitutions(context, expression)
    word = text.strip().lower()
    if word in TRUE_TEXTS:
        return True
    if word in FALSE_TEXTS:
        return False
    raise InvalidConditionExpressionError(
        f"a condition must read as one of {[*TRUE_TEXTS, *FALSE_TEXTS]}, got '{text}'"
    )
