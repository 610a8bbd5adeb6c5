# SPDX-License-Identifier: MIT
"""Experts: planners that know every pose, for demonstrations and for queries on others' states."""

from __future__ import annotations

from equi_rl.experts.expert import (
    Expert,
    ExpertConfig,
    ExpertMemory,
    FirstChoice,
    TaskPlan,
    VisibleFailure,
    make_expert,
    register_expert,
)

__all__ = [
    "Expert",
    "ExpertConfig",
    "ExpertMemory",
    "FirstChoice",
    "TaskPlan",
    "VisibleFailure",
    "make_expert",
    "register_expert",
]
