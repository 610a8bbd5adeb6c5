# SPDX-License-Identifier: MIT
"""The base class of everything that becomes text when the launch runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .launch_context import LaunchContext


class Substitution:
    """Text that is only known while launching."""

    def describe(self) -> str:
        """Return how the substitution reads in listings of arguments."""
        return f"{type(self).__name__}()"

    def perform(self, context: LaunchContext) -> str:
        """Return the text in the given context."""
        raise NotImplementedError(f"{type(self).__name__} does not implement perform()")
