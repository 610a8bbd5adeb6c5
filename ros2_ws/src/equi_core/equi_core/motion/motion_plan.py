# SPDX-License-Identifier: MIT
"""Checked motions: jerk-limited plans (ruckig) from one commanded state to rest.

A plan is handed out only after it has been checked *as a whole* to stay inside the box and under
the caps and to end at rest.

ruckig limits each axis by itself. Caps on the *length* of velocity and acceleration are kept by
giving each axis its share of the direction of travel, which is exact for straight lines, or the
cap divided by the square root of three, which is safe for any curve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from ruckig import (
    ControlInterface,
    InputParameter,
    Result,
    Ruckig,
    RuckigError,
    Synchronization,
    Trajectory,
)

from equi_core.motion.safety_limits import SafetyLimits

FloatArray = NDArray[np.float64]

AXES = 4
"""x, y, z [m] in base_link and yaw [rad], not wrapped."""

# Plans aim a little below the caps, so that rounding and sampling cannot reach them.
_PLANNING_SHARE = 0.97
_CHECK_SHARE = 0.999
# An axis with nothing to do still needs a positive limit.
_LEAST_SHARE = 1e-3
# Plans are checked at this resolution [s]: at 1.5 m/s2 the speed between two samples can rise by
# 3 mm/s (half way, from both sides), which the planning share of 0.25 m/s (7.5 mm/s) covers.
_CHECK_STEP_S = 0.004
_BOX_TOLERANCE_M = 1e-9


@dataclass(frozen=True)
class MotionState:
    """Commanded position, velocity and acceleration, each (4,): x, y, z, yaw in SI units."""

    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray

    @classmethod
    def at_rest(cls, position: ArrayLike) -> MotionState:
        """A state without motion at `position` (4,)."""
        return cls(np.array(position, dtype=np.float64), np.zeros(AXES), np.zeros(AXES))

    @property
    def is_at_rest(self) -> bool:
        """Whether velocity and acceleration are zero."""
        return not (np.any(self.velocity) or np.any(self.acceleration))


@dataclass(frozen=True)
class Plan:
    """A checked motion from one commanded state to rest."""

    trajectory: Trajectory
    duration_s: float

    def at(self, time_s: float) -> MotionState:
        """Commanded state `time_s` after the start; at rest at the end and after it."""
        position, velocity, acceleration = self.trajectory.at_time(min(time_s, self.duration_s))
        if time_s >= self.duration_s:
            return MotionState.at_rest(position)
        return MotionState(np.array(position), np.array(velocity), np.array(acceleration))


def plan_motion(
    state: MotionState,
    target: ArrayLike,
    limits: SafetyLimits,
    period_s: float,
    speed_share: float = 1.0,
) -> Plan | None:
    """The first of several candidate plans to `target` (4,) that passes the whole check.

    Args:
        state: commanded state to start from; it may be faster than `speed_share` allows.
        target: where to rest.
        limits: box and caps.
        period_s: of the controller's cycles.
        speed_share: aim at this share of the caps on speed and yaw rate.

    Returns:
        A plan, checked at every cycle of `period_s`, that ends at rest at the target; or None if
        none passes from this moving state. From rest inside the box there always is one.
    """
    goal = np.asarray(target, dtype=np.float64)
    direction = goal[:3] - state.position[:3]
    straight = _share_of_direction(direction)
    candidates = [(straight, Synchronization.Phase)]
    if not state.is_at_rest:
        even = np.full(3, 1.0 / math.sqrt(3.0))
        candidates += [(even, Synchronization.Time), (even, Synchronization.No)]
    for share, synchronization in candidates:
        request = _request(state, share, limits, speed_share)
        request.target_position = goal.tolist()
        request.synchronization = synchronization
        plan = _checked(request, state, limits, period_s, speed_share)
        if plan is not None:
            return plan
    return None


def plan_stop(state: MotionState, limits: SafetyLimits, period_s: float) -> Plan | None:
    """A checked plan that brakes to rest as soon as the caps allow, or None."""
    for share in (_share_of_direction(state.velocity[:3]), np.full(3, 1.0 / math.sqrt(3.0))):
        request = _request(state, share, limits)
        request.control_interface = ControlInterface.Velocity
        request.synchronization = Synchronization.Phase
        plan = _checked(request, state, limits, period_s)
        if plan is not None:
            return plan
    return None


def _share_of_direction(direction: FloatArray) -> FloatArray:
    """Each axis's share (3,) of a unit of travel along `direction`; even if it has no length."""
    length = float(np.linalg.norm(direction))
    if length < 1e-9:
        return np.full(3, 1.0 / math.sqrt(3.0))
    return np.maximum(np.abs(direction) / length, _LEAST_SHARE)


def _request(
    state: MotionState, share: FloatArray, limits: SafetyLimits, speed_share: float = 1.0
) -> InputParameter:
    request = InputParameter(AXES)
    request.current_position = state.position.tolist()
    request.current_velocity = state.velocity.tolist()
    request.current_acceleration = state.acceleration.tolist()
    scale = [*(share * _PLANNING_SHARE).tolist(), _PLANNING_SHARE]
    caps = (
        (limits.max_speed_m_s, limits.max_yaw_rate_rad_s),
        (limits.max_acceleration_m_s2, limits.max_yaw_acceleration_rad_s2),
        (limits.max_jerk_m_s3, limits.max_yaw_jerk_rad_s3),
    )
    velocity, acceleration, jerk = (
        [part * cap for part, cap in zip(scale, (linear, linear, linear, angular), strict=True)]
        for linear, angular in caps
    )
    request.max_velocity = [speed_share * value for value in velocity]
    request.max_acceleration, request.max_jerk = acceleration, jerk
    return request


def _checked(
    request: InputParameter,
    state: MotionState,
    limits: SafetyLimits,
    period_s: float,
    speed_share: float = 1.0,
) -> Plan | None:
    """The plan for `request` if it obeys box and caps over its whole length."""
    trajectory = Trajectory(AXES)
    try:
        result = Ruckig(AXES).calculate(request, trajectory)
    except (RuckigError, ValueError):
        # The binding cannot name every result code of the library and raises ValueError for those.
        return None
    if result not in (Result.Working, Result.Finished):
        return None
    plan = Plan(trajectory, trajectory.duration)
    if plan.duration_s > _longest_useful_s(request, limits, speed_share):
        return None
    positions, velocities, accelerations = _samples(plan, period_s)
    obeys = _stays_in_box(positions, state, limits) and _stays_under_caps(
        velocities, accelerations, limits
    )
    return plan if obeys else None


def _longest_useful_s(request: InputParameter, limits: SafetyLimits, speed_share: float) -> float:
    """Twice the time of an unhurried motion: an axis crawling under a tiny share is no plan."""
    way = np.abs(np.subtract(request.target_position, request.current_position))
    if request.control_interface is ControlInterface.Velocity:
        way = np.zeros(AXES)
    cruise_s = np.linalg.norm(way[:3]) / limits.max_speed_m_s + way[3] / limits.max_yaw_rate_rad_s
    ramp_s = (
        limits.max_speed_m_s / limits.max_acceleration_m_s2
        + limits.max_acceleration_m_s2 / limits.max_jerk_m_s3
        + limits.max_yaw_rate_rad_s / limits.max_yaw_acceleration_rad_s2
        + limits.max_yaw_acceleration_rad_s2 / limits.max_yaw_jerk_rad_s3
    )
    return float(2.0 * (cruise_s / speed_share + 2.0 * ramp_s))


def _samples(plan: Plan, period_s: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Position, velocity, acceleration (N, 4) at every cycle of the plan, and between cycles.

    Sampling is used because `Trajectory.position_extrema` leaves out the part in which ruckig
    brakes a state that is above its limits (seen to be wrong by millimetres).
    """
    step_s = period_s / max(1, math.ceil(period_s / _CHECK_STEP_S))
    # The start is not of this plan's making: it is already being driven.
    count = math.ceil(plan.duration_s / step_s)
    times = [min(index * step_s, plan.duration_s) for index in range(1, count + 1)]
    samples = np.array([plan.trajectory.at_time(time_s) for time_s in times or [0.0]])
    return samples[:, 0], samples[:, 1], samples[:, 2]


def _stays_in_box(positions: FloatArray, state: MotionState, limits: SafetyLimits) -> bool:
    """Every sample inside the box; from a start outside it, no sample farther out than the last.

    The same rule as that of `guard_setpoint`: a plan that comes in and goes out again, though never
    as far as its start, would be stopped by the guard in mid-motion.
    """
    box = limits.workspace
    lowest = np.array([*box.lower_m, -limits.yaw_range_rad])
    highest = np.array([*box.upper_m, limits.yaw_range_rad])
    path = np.concatenate([state.position[None], positions])
    beyond = path - np.clip(path, lowest, highest)
    outside_m = np.linalg.norm(beyond[:, :3], axis=1)
    outside_rad = np.abs(beyond[:, 3])
    return bool(
        np.all(np.diff(outside_m) <= _BOX_TOLERANCE_M)
        and np.all(np.diff(outside_rad) <= _BOX_TOLERANCE_M)
    )


def _stays_under_caps(
    velocities: FloatArray, accelerations: FloatArray, limits: SafetyLimits
) -> bool:
    return bool(
        np.all(np.linalg.norm(velocities[:, :3], axis=1) <= limits.max_speed_m_s * _CHECK_SHARE)
        and np.all(
            np.linalg.norm(accelerations[:, :3], axis=1)
            <= limits.max_acceleration_m_s2 * _CHECK_SHARE
        )
        and np.all(np.abs(velocities[:, 3]) <= limits.max_yaw_rate_rad_s * _CHECK_SHARE)
        and np.all(np.abs(accelerations[:, 3]) <= limits.max_yaw_acceleration_rad_s2 * _CHECK_SHARE)
    )
