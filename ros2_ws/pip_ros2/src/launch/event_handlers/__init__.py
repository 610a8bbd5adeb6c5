# SPDX-License-Identifier: MIT
"""The event handlers of the subset, under ROS's names."""

from __future__ import annotations

from .._outside_subset import refuse_missing_names
from .on_process_exit import OnProcessExit, OnProcessStart
from .on_shutdown import OnShutdown

__all__ = ["OnProcessExit", "OnProcessStart", "OnShutdown"]

__getattr__ = refuse_missing_names(
    __name__,
    __all__,
    (
        "OnActionEventBase",
        "OnExecutionComplete",
        "OnIncludeLaunchDescription",
        "OnProcessIO",
        "event_named",
    ),
)
