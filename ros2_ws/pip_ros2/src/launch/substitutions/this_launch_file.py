# SPDX-License-Identifier: MIT
"""The launch file that is being visited, and its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..substitution import Substitution
from .substitution_failure import SubstitutionFailure

if TYPE_CHECKING:
    from ..launch_context import LaunchContext


class ThisLaunchFile(Substitution):
    """Path of the current launch file."""

    def describe(self) -> str:
        """Return the notation of launch files."""
        return "ThisLaunchFile()"

    def perform(self, context: LaunchContext) -> str:
        """Return the path; raise SubstitutionFailure outside of a launch file."""
        return _local(context, "current_launch_file_path")


class ThisLaunchFileDir(Substitution):
    """Folder of the current launch file."""

    def describe(self) -> str:
        """Return the notation of launch files."""
        return "ThisLaunchFileDir()"

    def perform(self, context: LaunchContext) -> str:
        """Return the folder; raise SubstitutionFailure outside of a launch file."""
        return _local(context, "current_launch_file_directory")


def _local(context: LaunchContext, name: str) -> str:
    try:
        return str(context.get_locals_as_dict()[name])
    except KeyError:
        raise SubstitutionFailure(
            "ThisLaunchFile and ThisLaunchFileDir have a value only inside a launch file"
        ) from None
