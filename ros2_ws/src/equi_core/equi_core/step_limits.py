# SPDX-License-Identifier: MIT
"""The one clipper: a requested step -> the step that is executed, and why the two differ.

Training environment and robot limit an action by `limit_step`, so a policy meets on the robot the
clipping that it was trained with. Steps count from the *commanded* pose.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equi_core.action import MetricDelta
from equi_core.contract import ActionSpec, Workspace

TOLERANCE = 1e-9
"""Differences below this are rounding and not worth a reason [m or rad]."""


class LimitsError(ValueError):
    """A set of limits that cannot be obeyed; names the limit, its value and what is allowed."""


class Reason(str, Enum):
    """Why the executed step differs from the requested one. Values are stable: published."""

    MALFORMED = "malformed"
    NOT_FINITE = "not_finite"
    STALE_COMMAND = "stale_command"
    FUTURE_COMMAND = "future_command"
    OUT_OF_ORDER = "out_of_order"
    STALE_STATE = "stale_state"
    STATE_NOT_FINITE = "state_not_finite"
    TRACKING_ERROR = "tracking_error"
    OUTSIDE_WORKSPACE = "outside_workspace"
    CLOSEDNESS_CLIPPED = "closedness_clipped"
    STEP_CLIPPED = "step_clipped"
    YAW_STEP_CLIPPED = "yaw_step_clipped"
    WORKSPACE_CLIPPED = "workspace_clipped"
    YAW_FROM_START_CLIPPED = "yaw_from_start_clipped"
    YAW_RANGE_CLIPPED = "yaw_range_clipped"
    SPEED_LIMITED = "speed_limited"
    JOINT_LIMIT = "joint_limit"


@dataclass(frozen=True)
class Issue:
    """One reason with the value that caused it, in words for the operator."""

    reason: Reason
    message: str


def note(issues: list[Issue], reason: Reason, what: str, value: Any, allowed: str) -> None:
    """Add an issue whose message has three parts: the thing, its value, what is allowed."""
    shown = f"{value:.4g}" if isinstance(value, float) else f"{value!r:.120}"
    issues.append(Issue(reason, f"{what} is {shown}; it must be {allowed}"))


@dataclass(frozen=True)
class StepLimits:
    """What one step must obey, in training and on the robot."""

    workspace: Workspace = field(default_factory=Workspace)
    max_step_m: float = 0.05
    """Largest step along each base_link axis [m]."""
    max_yaw_step_rad: float = math.pi / 8
    max_yaw_from_start_rad: float = math.pi
    """The gripper rotates at most this far to either side of where the episode began, which keeps
    wrist 3 within its own limits; relative to the start, so the limit rotates with the scene."""
    yaw_range_rad: float = math.inf
    """Commanded yaw stays within plus or minus this [rad]."""

    def __post_init__(self) -> None:
        for spec in dataclasses.fields(self):
            value = getattr(self, spec.name)
            if spec.name != "workspace" and not value > 0:
                raise LimitsError(f"limit '{spec.name}' is {value}; it must be a positive number")

    @classmethod
    def of_contract(cls, action: ActionSpec, workspace: Workspace) -> StepLimits:
        """The limits that a policy is trained with."""
        return cls(workspace, action.max_step_m, action.max_yaw_step_rad)


@dataclass(frozen=True)
class LimitedStep:
    """The step that is executed, and an issue for every difference from the requested one."""

    executed: MetricDelta
    issues: tuple[Issue, ...]

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reasons alone, in order."""
        return tuple(issue.reason for issue in self.issues)


def limit_step(
    requested: MetricDelta,
    position_m: ArrayLike,
    yaw_rad: float,
    start_yaw_rad: float,
    limits: StepLimits,
) -> LimitedStep:
    """Clip a step to its range, its target to the workspace, and its yaw to the allowed rotation.

    A TCP that starts outside the box is led back by at most one step along each axis.

    Args:
        requested: the step, finite.
        position_m: commanded TCP position (3,) in base_link [m] from which the step starts.
        yaw_rad: commanded yaw, not wrapped [rad].
        start_yaw_rad: commanded yaw at the start of the episode [rad].
        limits: what must be obeyed.
    """
    issues: list[Issue] = []

    def clip(value: float, limit: float, reason: Reason, what: str) -> float:
        clipped = min(max(value, -limit), limit)
        if abs(clipped - value) > TOLERANCE:
            note(issues, reason, what, value, f"within +-{limit:.4f} rad")
        return clipped

    closedness = min(max(requested.closedness, 0.0), 1.0)
    if closedness != requested.closedness:
        note(issues, Reason.CLOSEDNESS_CLIPPED, "closedness", requested.closedness, "0 to 1")
    largest_m = limits.max_step_m
    step = np.clip(requested.step_m, -largest_m, largest_m)
    for axis, asked, clipped in zip("xyz", requested.step_m, step, strict=True):
        if abs(asked - clipped) > TOLERANCE:
            allowed = f"within +-{largest_m} m"
            note(issues, Reason.STEP_CLIPPED, f"{axis} step [m]", asked, allowed)
    largest_rad = limits.max_yaw_step_rad
    yaw_step = clip(requested.yaw_rad, largest_rad, Reason.YAW_STEP_CLIPPED, "yaw step [rad]")

    position = np.asarray(position_m, dtype=np.float64)
    lower, upper = limits.workspace.lower_m, limits.workspace.upper_m
    asked_target = position + step
    target = np.clip(asked_target, lower, upper)
    for axis, asked, clipped, low, high in zip(
        "xyz", asked_target, target, lower, upper, strict=True
    ):
        if abs(asked - clipped) > TOLERANCE:
            allowed = f"{low:.3f} to {high:.3f} m"
            note(issues, Reason.WORKSPACE_CLIPPED, f"target {axis} [m]", float(asked), allowed)
    step = np.clip(target - position, -largest_m, largest_m)

    rotated = yaw_rad + yaw_step - start_yaw_rad
    allowed_rad = clip(
        rotated,
        limits.max_yaw_from_start_rad,
        Reason.YAW_FROM_START_CLIPPED,
        "target yaw from the start of the episode [rad]",
    )
    if allowed_rad != rotated:
        yaw_step = min(max(yaw_step + allowed_rad - rotated, -largest_rad), largest_rad)
    asked_yaw = yaw_rad + yaw_step
    target_yaw = clip(asked_yaw, limits.yaw_range_rad, Reason.YAW_RANGE_CLIPPED, "target yaw [rad]")
    if target_yaw != asked_yaw:
        yaw_step = min(max(target_yaw - yaw_rad, -largest_rad), largest_rad)

    x, y, z = (float(value) for value in step)
    return LimitedStep(MetricDelta(closedness, (x, y, z), yaw_step), tuple(issues))
