# SPDX-License-Identifier: MIT
"""Set an environment variable for what follows in the scope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._set_named_value import SetNamedValue

if TYPE_CHECKING:
    from ..launch_context import LaunchContext


class SetEnvironmentVariable(SetNamedValue):
    """Processes started afterwards inherit the variable."""

    def execute(self, context: LaunchContext) -> None:
        """Set the variable."""
        name, value = self.performed(context)
        context.environment[name] = value
