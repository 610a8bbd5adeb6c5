# SPDX-License-Identifier: MIT
"""The actions of the subset, under ROS's names."""

from __future__ import annotations

from .._outside_subset import refuse_missing_names
from .declare_launch_argument import DeclareLaunchArgument
from .emit_event import EmitEvent, Shutdown
from .execute_process import ExecuteProcess
from .group_action import GroupAction
from .include_launch_description import IncludeLaunchDescription
from .log_info import LogInfo
from .opaque_function import OpaqueFunction
from .register_event_handler import RegisterEventHandler
from .set_environment_variable import SetEnvironmentVariable
from .set_launch_configuration import SetLaunchConfiguration
from .timer_action import TimerAction

__all__ = [
    "DeclareLaunchArgument",
    "EmitEvent",
    "ExecuteProcess",
    "GroupAction",
    "IncludeLaunchDescription",
    "LogInfo",
    "OpaqueFunction",
    "RegisterEventHandler",
    "SetEnvironmentVariable",
    "SetLaunchConfiguration",
    "Shutdown",
    "TimerAction",
]

__getattr__ = refuse_missing_names(
    __name__,
    __all__,
    (
        "AppendEnvironmentVariable",
        "ExecuteLocal",
        "OpaqueCoroutine",
        "PopEnvironment",
        "PopLaunchConfigurations",
        "PushEnvironment",
        "PushLaunchConfigurations",
        "ResetEnvironment",
        "ResetLaunchConfigurations",
        "UnregisterEventHandler",
        "UnsetEnvironmentVariable",
        "UnsetLaunchConfiguration",
    ),
)
