# SPDX-License-Identifier: MIT
"""The descriptions of the subset, under ROS's names."""

from __future__ import annotations

from launch._outside_subset import refuse_missing_names

from ..parameter_descriptions import ParameterFile, ParameterValue

__all__ = ["ParameterFile", "ParameterValue"]

__getattr__ = refuse_missing_names(
    __name__,
    __all__,
    (
        "ComposableLifecycleNode",
        "ComposableNode",
        "Node",
        "NodeTrait",
        "Parameter",
        "RosExecutable",
    ),
)
