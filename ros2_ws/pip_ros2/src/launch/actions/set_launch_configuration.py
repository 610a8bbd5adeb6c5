# SPDX-License-Identifier: MIT
"""Set a launch configuration for what follows in the scope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._set_named_value import SetNamedValue

if TYPE_CHECKING:
    from ..launch_context import LaunchContext


class SetLaunchConfiguration(SetNamedValue):
    """Set or replace a launch configuration when visited."""

    def execute(self, context: LaunchContext) -> None:
        """Set the configuration."""
        name, value = self.performed(context)
        context.launch_configurations[name] = value
