# SPDX-License-Identifier: MIT
"""The safety filter: whatever is asked, what comes out is safe, and it says why it differs.

Pure and total: no exception, no clock, no state of its own. A command that cannot be made safe
by clipping (not finite, too old, out of order, arm not where it should be) becomes a hold; every
other command becomes a target inside the box and within one step of the commanded pose. Speed
and acceleration are kept by `trajectory`; `guard_setpoint` is the last check in front
of the robot and repeats the hard limits on every cycle.

Steps count from the *commanded* pose, so a steady tracking error cannot make the arm creep, and
a flood of commands cannot run up more than one step ahead of the arm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equi_core.action import MetricDelta
from equi_core.motion.safety_limits import SafetyLimits
from equi_core.step_limits import TOLERANCE, Issue, Reason, limit_step, note

FloatArray = NDArray[np.float64]

# Stamps of one machine may run ahead of its clock by scheduling only [s].
_FUTURE_TOLERANCE_S = 0.01
# The guard checks finite differences of a trajectory that already obeys its caps; a real fault is
# far above, rounding far below.
_GUARD_HEADROOM = 1.02


@dataclass(frozen=True)
class StepCommand:
    """One step as the policy requested it, from the message to the servo process.

    Fields are deliberately unchecked: the filter copes with anything.
    """

    episode_id: str
    step_index: Any
    """Number of the command; must grow."""
    closedness: Any
    step_m: Any
    """Requested step (3,) along base_link axes [m]."""
    yaw_rad: Any
    age_s: Any
    """Time since the command was made [s]."""
    observation_age_s: float = 0.0
    """Time since the observation that the policy answered was taken [s]."""
    tag: Any = None
    """Whatever the caller wants back with the report."""


@dataclass(frozen=True)
class RobotInput:
    """What is known of the arm when a command is checked."""

    commanded_position_m: Any
    """TCP position (3,) in base_link that the servo loop commands now [m]."""
    commanded_yaw_rad: Any
    """Commanded yaw, not wrapped [rad]."""
    measured_position_m: Any
    closedness: Any
    """Closedness that the gripper was last asked for."""
    age_s: Any
    """Age of the newest robot state [s]."""
    last_step_index: Any
    """Number of the last accepted command; -1 before the first."""
    start_yaw_rad: Any = None
    """Commanded yaw at the start of the episode [rad]; None: the episode starts here."""


@dataclass(frozen=True)
class SafeCommand:
    """The answer: a target, or a hold (`target_position_m is None`), with the reasons."""

    executed: MetricDelta
    """The step that will be made; zero when holding."""
    target_position_m: tuple[float, float, float] | None
    target_yaw_rad: float | None
    issues: tuple[Issue, ...]

    @property
    def accepted(self) -> bool:
        """Whether the arm gets a new target."""
        return self.target_position_m is not None

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reasons alone, in order."""
        return tuple(issue.reason for issue in self.issues)


def filter_command(command: StepCommand, robot: RobotInput, limits: SafetyLimits) -> SafeCommand:
    """Make one command safe; never raises.

    Args:
        command: the request, unchecked.
        robot: commanded and measured state of the arm with its age.
        limits: what must be obeyed.

    Returns:
        A target inside `limits.workspace` and at most one step from the commanded pose, or a hold;
        with an issue for every difference from the request.
    """
    refusals = _refusals(command, robot, limits)
    if refusals:
        return _hold(robot, tuple(refusals))
    x, y, z = (float(value) for value in _numbers(command.step_m, 3))
    position, yaw = _numbers(robot.commanded_position_m, 3), _number(robot.commanded_yaw_rad)
    start_yaw = yaw if robot.start_yaw_rad is None else _number(robot.start_yaw_rad)
    requested = MetricDelta(_number(command.closedness), (x, y, z), _number(command.yaw_rad))
    step = limit_step(requested, position, yaw, start_yaw, limits)
    # The sum of commanded pose and step may miss the edge of the box by rounding.
    # A yaw that starts beyond its range is led back step by step.
    box, reach = limits.workspace, max(limits.yaw_range_rad, abs(yaw))
    target = np.clip(position + step.executed.step_m, box.lower_m, box.upper_m)
    target_x, target_y, target_z = (float(value) for value in target)
    target_yaw = min(max(yaw + step.executed.yaw_rad, -reach), reach)
    return SafeCommand(step.executed, (target_x, target_y, target_z), target_yaw, step.issues)


@dataclass(frozen=True)
class GuardedSetpoint:
    """One cycle's pose after the last check in front of the robot."""

    position_m: FloatArray
    yaw_rad: float
    issues: tuple[Issue, ...]


def guard_setpoint(
    position_m: Any,
    yaw_rad: Any,
    previous_position_m: FloatArray,
    previous_yaw_rad: float,
    period_s: float,
    limits: SafetyLimits,
) -> GuardedSetpoint:
    """The last check of each cycle: a bad set-point is replaced by the previous one.

    The trajectory never produces such a set-point; this is the second lock on the same door, so
    that one defect alone cannot move the arm out of the box or above the speed cap. A previous
    set-point outside the box (arm led back in) may only come closer.
    """
    previous = np.asarray(previous_position_m, dtype=np.float64)
    position, yaw = _numbers(position_m, 3), _number(yaw_rad)
    issues: list[Issue] = []
    if not (np.all(np.isfinite(position)) and math.isfinite(yaw)):
        note(issues, Reason.NOT_FINITE, "set-point", position.tolist(), "finite")
        return GuardedSetpoint(previous, previous_yaw_rad, tuple(issues))
    if _outside_m(position, limits) > _outside_m(previous, limits) + TOLERANCE:
        note(issues, Reason.OUTSIDE_WORKSPACE, "set-point [m]", position.tolist(), "in the box")
    speed = float(np.linalg.norm(position - previous)) / period_s
    yaw_rate = abs(yaw - previous_yaw_rad) / period_s
    if speed > limits.max_speed_m_s * _GUARD_HEADROOM:
        allowed = f"at most {limits.max_speed_m_s} m/s"
        note(issues, Reason.SPEED_LIMITED, "set-point speed [m/s]", speed, allowed)
    if yaw_rate > limits.max_yaw_rate_rad_s * _GUARD_HEADROOM:
        allowed = f"at most {limits.max_yaw_rate_rad_s} rad/s"
        note(issues, Reason.SPEED_LIMITED, "set-point yaw rate [rad/s]", yaw_rate, allowed)
    if issues:
        return GuardedSetpoint(previous, previous_yaw_rad, tuple(issues))
    return GuardedSetpoint(position, yaw, ())


def _refusals(command: StepCommand, robot: RobotInput, limits: SafetyLimits) -> list[Issue]:
    """Issues that no clipping can solve, in the order in which an operator should read them."""
    found: list[Issue] = []
    state = np.concatenate(
        [
            _numbers(robot.commanded_position_m, 3),
            _numbers(robot.measured_position_m, 3),
            [_number(robot.commanded_yaw_rad)],
            [0.0 if robot.start_yaw_rad is None else _number(robot.start_yaw_rad)],
        ]
    )
    if not np.all(np.isfinite(state)):
        note(found, Reason.STATE_NOT_FINITE, "robot state", state.tolist(), "finite numbers")
    state_age = _number(robot.age_s)
    if not state_age <= limits.max_state_age_s:
        allowed = f"at most {limits.max_state_age_s} s"
        note(found, Reason.STALE_STATE, "age of the robot state [s]", state_age, allowed)
    requested = np.concatenate(
        [_numbers(command.step_m, 3), [_number(command.yaw_rad), _number(command.closedness)]]
    )
    if not np.all(np.isfinite(requested)):
        malformed = _is_malformed(command)
        reason = Reason.MALFORMED if malformed else Reason.NOT_FINITE
        note(
            found, reason, "command x, y, z, yaw, closedness", requested.tolist(), "finite numbers"
        )
    age = _number(command.age_s)
    if not age <= limits.max_command_age_s:
        allowed = f"at most {limits.max_command_age_s} s"
        note(found, Reason.STALE_COMMAND, "age of the command [s]", age, allowed)
    elif age < -_FUTURE_TOLERANCE_S:
        note(found, Reason.FUTURE_COMMAND, "age of the command [s]", age, "not negative")
    index, last = _number(command.step_index), _number(robot.last_step_index)
    if not index > last:
        note(found, Reason.OUT_OF_ORDER, "command number", command.step_index, f"above {last:.0f}")
    if np.all(np.isfinite(state)):
        found += _position_refusals(state[:3], state[3:6], limits)
    return found


def _position_refusals(
    commanded_m: FloatArray, measured_m: FloatArray, limits: SafetyLimits
) -> list[Issue]:
    found: list[Issue] = []
    error_m = float(np.linalg.norm(commanded_m - measured_m))
    if error_m > limits.max_tracking_error_m:
        allowed = f"at most {limits.max_tracking_error_m} m; is the arm blocked?"
        note(found, Reason.TRACKING_ERROR, "tracking error [m]", error_m, allowed)
    outside_m = max(_outside_m(commanded_m, limits), _outside_m(measured_m, limits))
    largest_m = min(limits.max_outside_m, limits.max_step_m)
    if outside_m > largest_m:
        allowed = f"at most {largest_m} m; go home or jog the arm back"
        note(found, Reason.OUTSIDE_WORKSPACE, "distance outside the box [m]", outside_m, allowed)
    return found


def _hold(robot: RobotInput, issues: tuple[Issue, ...]) -> SafeCommand:
    closedness = _number(robot.closedness)
    closedness = min(max(closedness, 0.0), 1.0) if math.isfinite(closedness) else 0.0
    return SafeCommand(MetricDelta(closedness, (0.0, 0.0, 0.0), 0.0), None, None, issues)


def _outside_m(position_m: FloatArray, limits: SafetyLimits) -> float:
    """Distance [m] from the box; 0 inside."""
    inside = np.clip(position_m, limits.workspace.lower_m, limits.workspace.upper_m)
    return float(np.linalg.norm(position_m - inside))


def _is_malformed(command: StepCommand) -> bool:
    try:
        step = np.asarray(command.step_m, dtype=np.float64)
        float(command.yaw_rad), float(command.closedness)
    except Exception:  # whatever a foreign object raises when read as a number
        return True
    return step.shape != (3,)


def _numbers(value: Any, length: int) -> FloatArray:
    """`value` as a vector of floats; NaN in every place if it is anything else."""
    try:
        vector = np.array(value, dtype=np.float64)
    except Exception:  # total by design: any object may arrive here
        return np.full(length, np.nan)
    return vector if vector.shape == (length,) else np.full(length, np.nan)


def _number(value: Any) -> float:
    """`value` as one float; NaN if it is anything else."""
    try:
        return float(value)
    except Exception:  # total by design: any object may arrive here
        return math.nan
