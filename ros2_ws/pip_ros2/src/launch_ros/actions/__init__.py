# SPDX-License-Identifier: MIT
"""The actions of the subset, under ROS's names."""

from __future__ import annotations

from launch._outside_subset import refuse_missing_names

from .node import Node
from .push_ros_namespace import PushROSNamespace, PushRosNamespace

__all__ = ["Node", "PushROSNamespace", "PushRosNamespace"]

__getattr__ = refuse_missing_names(
    __name__,
    __all__,
    (
        "ComposableNodeContainer",
        "LifecycleNode",
        "LifecycleTransition",
        "LoadComposableNodes",
        "ROSTimer",
        "RosTimer",
        "SetParameter",
        "SetParametersFromFile",
        "SetROSLogDir",
        "SetRemap",
        "SetUseSimTime",
    ),
)
