# SPDX-License-Identifier: MIT
"""The one action: policy vector in [-1, 1]^5 <-> metric step of the gripper.

Order (w, x, y, z, r). `w` is the absolute closedness of the gripper, 0 open .. 1 closed; x, y, z
are steps of the TCP along the base_link axes; r is a step of its yaw. `step_limits` says what of
it is executed: the recurrent policy is fed the executed action, not the requested one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equi_core.contract import ACTION_ORDER, ActionSpec

FloatArray = NDArray[np.float64]


class ActionError(ValueError):
    """A policy vector that means nothing: wrong shape or not finite; names the component."""


@dataclass(frozen=True)
class MetricDelta:
    """One step in metres and radians, in base_link axes."""

    closedness: float
    """Absolute closedness of the gripper, 0 open .. 1 closed."""
    step_m: tuple[float, float, float]
    """Step of the TCP along base_link x, y, z [m]."""
    yaw_rad: float
    """Step of the gripper's yaw, counter-clockwise seen from above [rad]."""


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
