# SPDX-License-Identifier: MIT
"""The conditions of the subset, under ROS's names."""

from __future__ import annotations

from .._outside_subset import refuse_missing_names
from .evaluate_condition_expression import (
    InvalidConditionExpressionError,
    evaluate_condition_expression,
)
from .if_condition import IfCondition, UnlessCondition

__all__ = [
    "IfCondition",
    "InvalidConditionExpressionError",
    "UnlessCondition",
    "evaluate_condition_expression",
]

__getattr__ = refuse_missing_names(
    __name__,
    __all__,
    (
        "AndCondition",
        "LaunchConfigurationEquals",
        "LaunchConfigurationNotEquals",
        "OrCondition",
    ),
)
