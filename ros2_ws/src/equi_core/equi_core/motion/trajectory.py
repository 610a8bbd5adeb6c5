# SPDX-License-Identifier: MIT
"""Jerk-limited Cartesian motion with yaw, re-planned from the commanded state.

A new target replaces the plan if a checked plan to it exists from the present commanded state
(`motion_plan`); otherwise the arm follows (or brakes along) the plan it has, and the target waits.
From rest a straight line always passes the check, so every target is reached.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equi_core.motion.motion_plan import AXES, MotionState, Plan, plan_motion, plan_stop
from equi_core.motion.safety_limits import SafetyLimits

FloatArray = NDArray[np.float64]

_RETRY_PERIOD_S = 0.04


class TrajectoryError(ValueError):
    """A target or start that no motion can be planned for; names the value."""


class TrajectoryGenerator:
    """Follows checked plans cycle by cycle; the only state is the present plan and its time."""

    def __init__(self, limits: SafetyLimits, period_s: float, start: ArrayLike) -> None:
        if not (math.isfinite(period_s) and period_s > 0):
            raise TrajectoryError(f"period_s is {period_s}; it must be a positive time in seconds")
        self._limits = limits
        self._period_s = period_s
        self._speed_share = 1.0
        self.restart(start)

    def restart(self, position: ArrayLike) -> None:
        """Forget every target and rest at `position` (4,): used with the *measured* pose."""
        self._state = MotionState.at_rest(_finite_pose(position, "start"))
        self._plan: Plan | None = None
        self._time_s = 0.0
        self._pending: FloatArray | None = None
        self._target = self._state.position.copy()
        self._retry_in_s = 0.0
        self._stopping = False

    @property
    def state(self) -> MotionState:
        """The commanded state of this cycle."""
        return self._state

    @property
    def target(self) -> FloatArray:
        """The pose (4,) at which the motion will end, once the waiting target is planned."""
        return self._target.copy()

    @property
    def finished(self) -> bool:
        """Whether the arm rests at its target."""
        return self._plan is None and self._pending is None

    def retarget(self, target: ArrayLike) -> None:
        """Aim at `target` (4,) from the commanded state; the box is enforced once more."""
        pose = _finite_pose(target, "target")
        box = self._limits.workspace
        pose[:3] = np.clip(pose[:3], box.lower_m, box.upper_m)
        pose[3] = np.clip(pose[3], -self._limits.yaw_range_rad, self._limits.yaw_range_rad)
        self._target = pose
        self._pending = pose
        self._retry_in_s = 0.0
        self._stopping = False
        self._plan_pending()

    @property
    def speed_share(self) -> float:
        """Share of the caps on speed and yaw rate that plans aim at."""
        return self._speed_share

    def set_speed_share(self, share: float) -> None:
        """Aim at this share (0, 1] of the caps on speed from now on, also on the present way.

        Acceleration and jerk keep their caps, so the change itself is smooth.
        """
        if not 0.0 < share <= 1.0:
            raise TrajectoryError(f"speed share is {share}; it must be above 0 and at most 1")
        if share == self._speed_share:
            return
        self._speed_share = share
        if not self.finished and not self._stopping:
            self.retarget(self._target)

    def stop(self) -> None:
        """Brake to rest as soon as the caps allow and forget the target."""
        self._pending = None
        self._stopping = True
        if self._plan is None:
            return
        plan = plan_stop(self._state, self._limits, self._period_s)
        if plan is not None:
            self._follow(plan)
        self._target = self._plan.at(self._plan.duration_s).position

    def brake_from(self, state: MotionState) -> bool:
        """Forget every target and brake within the caps from a commanded state that was good.

        For the guard: what the generator itself holds has just been refused.

        Returns:
            Whether there is such a motion that stays in the box; if not, the arm rests at once.
        """
        self.restart(state.position)
        plan = plan_stop(state, self._limits, self._period_s)
        if plan is None:
            return False
        self._state = state
        self._stopping = True
        self._follow(plan)
        self._target = plan.at(plan.duration_s).position
        return True

    def resume_from_rest(self) -> None:
        """Keep the target, but speed up from rest at the commanded position.

        For an arm that paused on the way because no pose reached it.
        """
        if self.finished:
            return
        target = self._target
        self.restart(self._state.position)
        self.retarget(target)

    def step(self) -> MotionState:
        """Advance by one period and return the new commanded state."""
        self._retry_in_s -= self._period_s
        if self._pending is not None and (self._plan is None or self._retry_in_s <= 0.0):
            self._plan_pending()
        if self._plan is not None:
            self._time_s += self._period_s
            self._state = self._plan.at(self._time_s)
            if self._time_s >= self._plan.duration_s:
                self._plan = None
        return self._state

    def _plan_pending(self) -> None:
        if self._pending is None:
            return
        plan = plan_motion(
            self._state, self._pending, self._limits, self._period_s, self._speed_share
        )
        if plan is not None:
            self._pending = None
            self._follow(plan)
            return
        self._retry_in_s = _RETRY_PERIOD_S
        stop = plan_stop(self._state, self._limits, self._period_s)
        if stop is not None:
            self._follow(stop)

    def _follow(self, plan: Plan) -> None:
        self._plan, self._time_s = plan, 0.0


def _finite_pose(value: ArrayLike, what: str) -> FloatArray:
    pose = np.array(value, dtype=np.float64)
    if pose.shape != (AXES,) or not np.all(np.isfinite(pose)):
        raise TrajectoryError(
            f"{what} is {pose.tolist()}; it must be four finite numbers: x, y, z [m] and yaw [rad]"
        )
    return pose
