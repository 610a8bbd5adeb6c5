# SPDX-License-Identifier: MIT
"""The substitutions of the subset, under ROS's names."""

from __future__ import annotations

from .._outside_subset import refuse_missing_names
from .environment_variable import EnvironmentVariable
from .launch_configuration import LaunchConfiguration
from .path_join_substitution import PathJoinSubstitution
from .python_expression import PythonExpression
from .substitution_failure import SubstitutionFailure
from .text_substitution import TextSubstitution
from .this_launch_file import ThisLaunchFile, ThisLaunchFileDir

__all__ = [
    "EnvironmentVariable",
    "LaunchConfiguration",
    "PathJoinSubstitution",
    "PythonExpression",
    "SubstitutionFailure",
    "TextSubstitution",
    "ThisLaunchFile",
    "ThisLaunchFileDir",
]

__getattr__ = refuse_missing_names(
    __name__,
    __all__,
    (
        "AllSubstitution",
        "AndSubstitution",
        "AnonName",
        "AnySubstitution",
        "BooleanSubstitution",
        "Command",
        "EqualsSubstitution",
        "FileContent",
        "FindExecutable",
        "IfElseSubstitution",
        "LaunchLogDir",
        "LocalSubstitution",
        "NotEqualsSubstitution",
        "NotSubstitution",
        "OrSubstitution",
        "PathSubstitution",
        "StringJoinSubstitution",
    ),
)
