# SPDX-License-Identifier: MIT
"""The steps by which a scoped group opens, empties and closes its scope."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..action import Action
from ..some_substitutions_type import SomeSubstitutionsType
from ..utilities import normalize_to_list_of_substitutions, perform_substitutions

if TYPE_CHECKING:
    from ..launch_context import LaunchContext


class OpenScope(Action):
    """Remember configurations and environment."""

    def execute(self, context: LaunchContext) -> None:
        """Push both."""
        context._push_launch_configurations()
        context._push_environment()


class CloseScope(Action):
    """Restore configurations and environment."""

    def execute(self, context: LaunchContext) -> None:
        """Pop both."""
        context._pop_environment()
        context._pop_launch_configurations()


class ResetLaunchConfigurations(Action):
    """Reset the environment; keep only the given configurations, evaluated in between."""

    def __init__(
        self, launch_configurations: Mapping[SomeSubstitutionsType, SomeSubstitutionsType]
    ) -> None:
        super().__init__()
        self.__kept = [
            (normalize_to_list_of_substitutions(name), normalize_to_list_of_substitutions(value))
            for name, value in launch_configurations.items()
        ]

    def execute(self, context: LaunchContext) -> None:
        """Reset the environment to that of the launch's start, and the configurations."""
        context._reset_environment()
        kept = {
            perform_substitutions(context, name): perform_substitutions(context, value)
            for name, value in self.__kept
        }
        context._replace_launch_configurations(kept)
