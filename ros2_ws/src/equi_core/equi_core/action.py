"""The one action: policy vector in [-1, 1]^5 <-> metric step of the gripper.

Order (w, x, y, z, r). `w` is the absolute closedness of the gripper, 0 open .. 1 closed; x, y, z
are steps of the TCP along the base_link axes; r is a step of its yaw. Clipping reports what will
really be executed and why it differs from what was asked, because the recurrent policy must be
fed the executed action, not the wished one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equi_core.contract import ACTION_ORDER, ActionSpec, Workspace

FloatArray = NDArray[np.float64]

# A target that misses the box by less than this is rounding, not a clip worth reporting.
_REPORT_TOLERANCE = 1e-9


class ActionError(ValueError):
    """A policy vector that means nothing: wrong shape or not finite; names the component."""


class ClipReason(str, Enum):
    """Why the executed action differs from the requested one."""

    CLOSEDNESS = "closedness outside [0, 1]"
    STEP_X = "x step above its limit"
    STEP_Y = "y step above its limit"
    STEP_Z = "z step above its limit"
    YAW_STEP = "yaw step above its limit"
    WORKSPACE_X = "target x outside the workspace"
    WORKSPACE_Y = "target y outside the workspace"
    WORKSPACE_Z = "target z outside the workspace"


_RANGE_REASONS = (
    ClipReason.CLOSEDNESS,
    ClipReason.STEP_X,
    ClipReason.STEP_Y,
    ClipReason.STEP_Z,
    ClipReason.YAW_STEP,
)
_WORKSPACE_REASONS = (
    ClipReason.WORKSPACE_X,
    ClipReason.WORKSPACE_Y,
    ClipReason.WORKSPACE_Z,
)


@dataclass(frozen=True)
class MetricDelta:
    """One step in metres and radians, in base_link axes."""

    closedness: float
    """Absolute closedness of the gripper, 0 open .. 1 closed."""
    step_m: tuple[float, float, float]
    """Step of the TCP along base_link x, y, z [m]."""
    yaw_rad: float
    """Step of the gripper's yaw, counter-clockwise seen from above [rad]."""


@dataclass(frozen=True)
class ExecutedAction:
    """What is really done: the clipped step, its target, its policy vector, and the reasons."""

    delta: MetricDelta
    target_position_m: tuple[float, float, float]
    """TCP position after the step, in base_link [m]."""
    policy_action: FloatArray
    """The executed step as a policy vector (5,): what the recurrent policy is fed next."""
    reasons: tuple[ClipReason, ...]


def decode(policy_action: ArrayLike, spec: ActionSpec) -> MetricDelta:
    """Metric step of a policy vector (5,); values outside [-1, 1] are scaled, not clipped."""
    w, x, y, z, r = (float(value) for value in _vector(policy_action))
    scale_m = spec.max_step_m
    return MetricDelta(
        closedness=(w + 1.0) / 2.0,
        step_m=(x * scale_m, y * scale_m, z * scale_m),
        yaw_rad=r * spec.max_yaw_step_rad,
    )


def encode(delta: MetricDelta, spec: ActionSpec) -> FloatArray:
    """Policy vector (5,) of a metric step: the inverse of `decode`."""
    return np.array(
        [
            2.0 * delta.closedness - 1.0,
            *(step_m / spec.max_step_m for step_m in delta.step_m),
            delta.yaw_rad / spec.max_yaw_step_rad,
        ]
    )


def clip_to_limits(
    policy_action: ArrayLike, tcp_position_m: ArrayLike, spec: ActionSpec, workspace: Workspace
) -> ExecutedAction:
    """The step that will really be executed from a given TCP position.

    Each component is first clipped to the policy's range, then the target to the workspace. A TCP
    that starts outside the box is led back by at most one step along each axis.

    Args:
        policy_action: policy vector (5,).
        tcp_position_m: TCP position (3,) in base_link [m] from which the step starts.
        spec: action scales of the contract.
        workspace: box of the contract.
    """
    wished = _vector(policy_action)
    position = np.asarray(tcp_position_m, dtype=np.float64)
    if position.shape != (3,) or not np.all(np.isfinite(position)):
        raise ActionError(f"TCP position {position.tolist()} must be three finite coordinates [m]")
    in_range = np.clip(wished, -1.0, 1.0)
    reasons = [
        reason
        for reason, before, after in zip(_RANGE_REASONS, wished, in_range, strict=True)
        if before != after
    ]
    delta = decode(in_range, spec)
    wished_target = position + delta.step_m
    in_box = np.clip(wished_target, workspace.lower_m, workspace.upper_m)
    reasons += [
        reason
        for reason, before, after in zip(_WORKSPACE_REASONS, wished_target, in_box, strict=True)
        if abs(before - after) > _REPORT_TOLERANCE
    ]
    step_m = np.clip(in_box - position, -spec.max_step_m, spec.max_step_m)
    x, y, z = (float(value) for value in step_m)
    executed = MetricDelta(delta.closedness, (x, y, z), delta.yaw_rad)
    target_x, target_y, target_z = (float(value) for value in position + step_m)
    return ExecutedAction(
        delta=executed,
        target_position_m=(target_x, target_y, target_z),
        policy_action=encode(executed, spec),
        reasons=tuple(reasons),
    )


def _vector(policy_action: ArrayLike) -> FloatArray:
    vector = np.asarray(policy_action, dtype=np.float64)
    if vector.shape != (len(ACTION_ORDER),):
        raise ActionError(
            f"policy action has shape {vector.shape}; it must be ({len(ACTION_ORDER)},), "
            f"in the order {', '.join(ACTION_ORDER)}"
        )
    for name, value in zip(ACTION_ORDER, vector, strict=True):
        if not np.isfinite(value):
            raise ActionError(f"policy action component '{name}' is {value}; it must be finite")
    return vector
