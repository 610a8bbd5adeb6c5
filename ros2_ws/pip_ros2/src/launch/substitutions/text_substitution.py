# SPDX-License-Identifier: MIT
"""Plain text, as a substitution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..substitution import Substitution

if TYPE_CHECKING:
    from ..launch_context import LaunchContext


class TextSubstitution(Substitution):
    """Text that is known before launching."""

    def __init__(self, *, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"TextSubstitution: text must be a str, got {text!r}")
        self.__text = text

    @property
    def text(self) -> str:
        """The text."""
        return self.__text

    def describe(self) -> str:
        """Return the text in quotes."""
        return f"'{self.text}'"

    def perform(self, context: LaunchContext) -> str:
        """Return the text."""
        return self.text
