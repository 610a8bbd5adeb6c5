# SPDX-License-Identifier: MIT
"""Write a message to the console and the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import logging as launch_logging
from ..action import Action
from ..condition import Condition
from ..some_substitutions_type import SomeSubstitutionsType
from ..substitution import Substitution
from ..utilities import normalize_to_list_of_substitutions, perform_substitutions

if TYPE_CHECKING:
    from ..launch_context import LaunchContext


class LogInfo(Action):
    """Log text at level INFO, as `[INFO] [launch.user]: text`."""

    def __init__(self, *, msg: SomeSubstitutionsType, condition: Condition | None = None) -> None:
        super().__init__(condition=condition)
        self.__msg = normalize_to_list_of_substitutions(msg)

    @property
    def msg(self) -> list[Substitution]:
        """The message."""
        return self.__msg

    def execute(self, context: LaunchContext) -> None:
        """Log the message."""
        launch_logging.get_logger("launch.user").info(perform_substitutions(context, self.msg))
