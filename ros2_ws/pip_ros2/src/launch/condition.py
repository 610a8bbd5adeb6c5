# SPDX-License-Identifier: MIT
"""The base class of conditions on actions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .launch_context import LaunchContext


class Condition:
    """Decides, while launching, whether an action is executed."""

    def __init__(self, *, predicate: Callable[[LaunchContext], bool] | None = None) -> None:
        self.__predicate = predicate

    def describe(self) -> str:
        """Return a short text that names the condition in messages."""
        return repr(self)

    def evaluate(self, context: LaunchContext) -> bool:
        """Return whether the action is to be executed in this context."""
        if self.__predicate is None:
            raise NotImplementedError(f"{type(self).__name__} was given no predicate")
        return self.__predicate(context)
