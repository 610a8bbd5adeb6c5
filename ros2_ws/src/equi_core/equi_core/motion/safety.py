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

import dataclasses
import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equi_core.action import MetricDelta
from equi_core.contract import ActionSpec, Workspace

FloatArray = NDArray[np.float64]

# Differences below this are rounding and not worth a reason [m or rad].
_REPORT_TOLERANCE = 1e-9
# Stamps of one machine may run ahead of its clock by scheduling only [s].
_FUTURE_TOLERANCE_S = 0.01
# The guard checks finite differences of a trajectory that already obeys its caps; a real fault is
# far above, rounding far below.
_GUARD_HEADROOM = 1.02


class SafetyError(ValueError):
    """A set of limits that cannot be obeyed; names the limit, its value and what is allowed."""


class Reason(str, Enum):
    """Why the safe command differs from the wish. Values are stable: they are published."""

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
    YAW_RANGE_CLIPPED = "yaw_range_clipped"
    SPEED_LIMITED = "speed_limited"


@dataclass(frozen=True)
class Finding:
    """One reason with the value that caused it, in words for the operator."""

    reason: Reason
    message: str


@dataclass(frozen=True)
class SafetyLimits:
    """Everything the arm must obey. Defaults suit a UR5 beside people who keep their distance."""

    workspace: Workspace = field(default_factory=Workspace)
    max_step_m: float = 0.05
    """Largest step along each base_link axis [m]."""
    max_yaw_step_rad: float = math.pi / 8
    max_speed_m_s: float = 0.25
    """Cap on the length of the TCP velocity: the reduced speed of ISO 10218-1 [m/s]."""
    max_acceleration_m_s2: float = 1.5
    max_jerk_m_s3: float = 30.0
    max_yaw_rate_rad_s: float = 1.5
    max_yaw_acceleration_rad_s2: float = 8.0
    max_yaw_jerk_rad_s3: float = 100.0
    yaw_range_rad: float = 1.25 * math.pi
    """Commanded yaw stays within plus or minus this, so that wrist 3 never winds up [rad]."""
    max_command_age_s: float = 0.25
    """An older command is refused: the world it was meant for is gone."""
    max_state_age_s: float = 0.1
    """With an older robot state nothing is known about the arm; hold."""
    max_tracking_error_m: float = 0.04
    """Commanded and measured TCP may differ by this much; more means that the arm is blocked."""
    max_outside_m: float = 0.02
    """An arm further outside the box than this is not led back by itself [m]."""

    def __post_init__(self) -> None:
        for spec in dataclasses.fields(self):
            value = getattr(self, spec.name)
            if spec.name != "workspace" and not (math.isfinite(value) and value > 0):
                raise SafetyError(f"limit '{spec.name}' is {value}; it must be a positive number")

    def stricter_of(self, other: SafetyLimits) -> SafetyLimits:
        """The limits that satisfy both: the smaller number everywhere, the common box."""
        box = {}
        for axis in "xyz":
            low = max(getattr(limits.workspace, f"{axis}_min_m") for limits in (self, other))
            high = min(getattr(limits.workspace, f"{axis}_max_m") for limits in (self, other))
            if not low < high:
                raise SafetyError(
                    f"the two workspaces have no common {axis} range "
                    f"({low} to {high} m); correct the cell's parameter file or use another policy"
                )
            box[f"{axis}_min_m"], box[f"{axis}_max_m"] = low, high
        smaller = {
            spec.name: min(getattr(self, spec.name), getattr(other, spec.name))
            for spec in dataclasses.fields(self)
            if spec.name != "workspace"
        }
        return SafetyLimits(workspace=Workspace(**box), **smaller)

    def within_contract(self, action: ActionSpec, workspace: Workspace) -> SafetyLimits:
        """These limits, tightened by what the policy's contract promises."""
        return self.stricter_of(
            dataclasses.replace(
                self,
                workspace=workspace,
                max_step_m=action.max_step_m,
                max_yaw_step_rad=action.max_yaw_step_rad,
            )
        )


@dataclass(frozen=True)
class CommandInput:
    """A wish as it arrived. Fields are deliberately unchecked: the filter copes with anything."""

    sequence: Any
    """Number of the command; must grow."""
    closedness: Any
    step_m: Any
    """Wished step (3,) along base_link axes [m]."""
    yaw_rad: Any
    age_s: Any
    """Time since the command was made [s]."""


@dataclass(frozen=True)
class RobotInput:
    """What is known of the arm when the command is judged."""

    commanded_position_m: Any
    """TCP position (3,) in base_link that the servo loop commands now [m]."""
    commanded_yaw_rad: Any
    """Commanded yaw, not wrapped [rad]."""
    measured_position_m: Any
    closedness: Any
    """Closedness that the gripper was last asked for."""
    age_s: Any
    """Age of the newest robot state [s]."""
    last_sequence: Any
    """Number of the last accepted command; -1 before the first."""


@dataclass(frozen=True)
class SafeCommand:
    """The verdict: a target, or a hold (`target_position_m is None`), with the reasons."""

    executed: MetricDelta
    """The step that will be made; zero when holding."""
    target_position_m: tuple[float, float, float] | None
    target_yaw_rad: float | None
    findings: tuple[Finding, ...]

    @property
    def accepted(self) -> bool:
        """Whether the arm gets a new target."""
        return self.target_position_m is not None

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reasons alone, in order."""
        return tuple(finding.reason for finding in self.findings)


def filter_command(command: CommandInput, robot: RobotInput, limits: SafetyLimits) -> SafeCommand:
    """Judge one command; never raises.

    Args:
        command: the wish, unchecked.
        robot: commanded and measured state of the arm with its age.
        limits: what must be obeyed.

    Returns:
        A target inside `limits.workspace`, at most one step from the commanded pose (plus the way
        back into the box), or a hold; with a finding for every difference from the wish.
    """
    refusals = _refusals(command, robot, limits)
    if refusals:
        return _hold(robot, tuple(refusals))
    anchor = _numbers(robot.commanded_position_m, 3)
    anchor_yaw = _number(robot.commanded_yaw_rad)
    wished_step, wished_yaw = _numbers(command.step_m, 3), _number(command.yaw_rad)
    wished_closedness = _number(command.closedness)
    findings: list[Finding] = []

    closedness = min(max(wished_closedness, 0.0), 1.0)
    if closedness != wished_closedness:
        _note(findings, Reason.CLOSEDNESS_CLIPPED, "closedness", wished_closedness, "0 to 1")
    step = np.clip(wished_step, -limits.max_step_m, limits.max_step_m)
    for axis, wished, clipped in zip("xyz", wished_step, step, strict=True):
        if abs(wished - clipped) > _REPORT_TOLERANCE:
            allowed = f"within +-{limits.max_step_m} m"
            _note(findings, Reason.STEP_CLIPPED, f"{axis} step [m]", wished, allowed)
    yaw_step = min(max(wished_yaw, -limits.max_yaw_step_rad), limits.max_yaw_step_rad)
    if abs(yaw_step - wished_yaw) > _REPORT_TOLERANCE:
        allowed = f"within +-{limits.max_yaw_step_rad:.4f} rad"
        _note(findings, Reason.YAW_STEP_CLIPPED, "yaw step [rad]", wished_yaw, allowed)

    wished_target = anchor + step
    lower, upper = np.array(limits.workspace.lower_m), np.array(limits.workspace.upper_m)
    target = np.clip(wished_target, lower, upper)
    for axis, wished, clipped, low, high in zip(
        "xyz", wished_target, target, lower, upper, strict=True
    ):
        if abs(wished - clipped) > _REPORT_TOLERANCE:
            allowed = f"{low:.3f} to {high:.3f} m"
            _note(findings, Reason.WORKSPACE_CLIPPED, f"target {axis} [m]", wished, allowed)
    wished_yaw_target = anchor_yaw + yaw_step
    yaw_target = min(max(wished_yaw_target, -limits.yaw_range_rad), limits.yaw_range_rad)
    if abs(yaw_target - wished_yaw_target) > _REPORT_TOLERANCE:
        allowed = f"within +-{limits.yaw_range_rad:.3f} rad"
        _note(findings, Reason.YAW_RANGE_CLIPPED, "target yaw [rad]", wished_yaw_target, allowed)

    executed_step = target - anchor
    x, y, z = (float(value) for value in executed_step)
    target_x, target_y, target_z = (float(value) for value in target)
    return SafeCommand(
        executed=MetricDelta(closedness, (x, y, z), yaw_target - anchor_yaw),
        target_position_m=(target_x, target_y, target_z),
        target_yaw_rad=yaw_target,
        findings=tuple(findings),
    )


@dataclass(frozen=True)
class GuardedSetpoint:
    """One cycle's pose after the last check in front of the robot."""

    position_m: FloatArray
    yaw_rad: float
    findings: tuple[Finding, ...]


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
    findings: list[Finding] = []
    if not (np.all(np.isfinite(position)) and math.isfinite(yaw)):
        _note(findings, Reason.NOT_FINITE, "set-point", position.tolist(), "finite")
        return GuardedSetpoint(previous, previous_yaw_rad, tuple(findings))
    if _outside_m(position, limits) > _outside_m(previous, limits) + _REPORT_TOLERANCE:
        _note(findings, Reason.OUTSIDE_WORKSPACE, "set-point [m]", position.tolist(), "in the box")
    speed = float(np.linalg.norm(position - previous)) / period_s
    yaw_rate = abs(yaw - previous_yaw_rad) / period_s
    if speed > limits.max_speed_m_s * _GUARD_HEADROOM:
        allowed = f"at most {limits.max_speed_m_s} m/s"
        _note(findings, Reason.SPEED_LIMITED, "set-point speed [m/s]", speed, allowed)
    if yaw_rate > limits.max_yaw_rate_rad_s * _GUARD_HEADROOM:
        allowed = f"at most {limits.max_yaw_rate_rad_s} rad/s"
        _note(findings, Reason.SPEED_LIMITED, "set-point yaw rate [rad/s]", yaw_rate, allowed)
    if findings:
        return GuardedSetpoint(previous, previous_yaw_rad, tuple(findings))
    return GuardedSetpoint(position, yaw, ())


def _refusals(command: CommandInput, robot: RobotInput, limits: SafetyLimits) -> list[Finding]:
    """Findings that no clipping can cure, in the order in which an operator should read them."""
    found: list[Finding] = []
    state = np.concatenate(
        [
            _numbers(robot.commanded_position_m, 3),
            _numbers(robot.measured_position_m, 3),
            [_number(robot.commanded_yaw_rad)],
        ]
    )
    if not np.all(np.isfinite(state)):
        _note(found, Reason.STATE_NOT_FINITE, "robot state", state.tolist(), "finite numbers")
    state_age = _number(robot.age_s)
    if not state_age <= limits.max_state_age_s:
        allowed = f"at most {limits.max_state_age_s} s"
        _note(found, Reason.STALE_STATE, "age of the robot state [s]", state_age, allowed)
    wish = np.concatenate(
        [_numbers(command.step_m, 3), [_number(command.yaw_rad), _number(command.closedness)]]
    )
    if not np.all(np.isfinite(wish)):
        malformed = _is_malformed(command)
        reason = Reason.MALFORMED if malformed else Reason.NOT_FINITE
        _note(found, reason, "command x, y, z, yaw, closedness", wish.tolist(), "finite numbers")
    age = _number(command.age_s)
    if not age <= limits.max_command_age_s:
        allowed = f"at most {limits.max_command_age_s} s"
        _note(found, Reason.STALE_COMMAND, "age of the command [s]", age, allowed)
    elif age < -_FUTURE_TOLERANCE_S:
        _note(found, Reason.FUTURE_COMMAND, "age of the command [s]", age, "not negative")
    sequence, last = _number(command.sequence), _number(robot.last_sequence)
    if not sequence > last:
        _note(found, Reason.OUT_OF_ORDER, "command number", command.sequence, f"above {last:.0f}")
    if np.all(np.isfinite(state)):
        found += _place_refusals(state[:3], state[3:6], limits)
    return found


def _place_refusals(
    commanded_m: FloatArray, measured_m: FloatArray, limits: SafetyLimits
) -> list[Finding]:
    found: list[Finding] = []
    error_m = float(np.linalg.norm(commanded_m - measured_m))
    if error_m > limits.max_tracking_error_m:
        allowed = f"at most {limits.max_tracking_error_m} m; is the arm blocked?"
        _note(found, Reason.TRACKING_ERROR, "tracking error [m]", error_m, allowed)
    outside_m = max(_outside_m(commanded_m, limits), _outside_m(measured_m, limits))
    if outside_m > limits.max_outside_m:
        allowed = f"at most {limits.max_outside_m} m; go home or jog the arm back"
        _note(found, Reason.OUTSIDE_WORKSPACE, "distance outside the box [m]", outside_m, allowed)
    return found


def _hold(robot: RobotInput, findings: tuple[Finding, ...]) -> SafeCommand:
    closedness = _number(robot.closedness)
    closedness = min(max(closedness, 0.0), 1.0) if math.isfinite(closedness) else 0.0
    return SafeCommand(MetricDelta(closedness, (0.0, 0.0, 0.0), 0.0), None, None, findings)


def _outside_m(position_m: FloatArray, limits: SafetyLimits) -> float:
    """Distance [m] from the box; 0 inside."""
    inside = np.clip(position_m, limits.workspace.lower_m, limits.workspace.upper_m)
    return float(np.linalg.norm(position_m - inside))


def _note(findings: list[Finding], reason: Reason, what: str, value: Any, allowed: str) -> None:
    shown = f"{value:.4g}" if isinstance(value, float) else f"{value!r:.120}"
    findings.append(Finding(reason, f"{what} is {shown}; it must be {allowed}"))


def _is_malformed(command: CommandInput) -> bool:
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
