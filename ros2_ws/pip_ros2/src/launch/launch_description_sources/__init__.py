# SPDX-License-Identifier: MIT
"""The sources of launch descriptions in the subset, under ROS's names."""

from __future__ import annotations

from .._outside_subset import refuse_missing_names
from .python_launch_description_source import (
    InvalidPythonLaunchFileError,
    PythonLaunchDescriptionSource,
    get_launch_description_from_python_launch_file,
)

__all__ = [
    "InvalidPythonLaunchFileError",
    "PythonLaunchDescriptionSource",
    "get_launch_description_from_python_launch_file",
]

__getattr__ = refuse_missing_names(
    __name__,
    __all__,
    (
        "AnyLaunchDescriptionSource",
        "FrontendLaunchDescriptionSource",
        "XMLLaunchDescriptionSource",
        "YAMLLaunchDescriptionSource",
        "get_launch_description_from_any_launch_file",
        "get_launch_description_from_frontend_launch_file",
        "load_python_launch_file_as_module",
    ),
)
