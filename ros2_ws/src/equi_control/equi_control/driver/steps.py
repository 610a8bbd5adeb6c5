# SPDX-License-Identifier: MIT
"""A step of the policy from request to report: plain data and how one becomes the other."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from equi_control.robotiq.worker import GripperReport
from equi_core.action import MetricDelta
from equi_core.geometry import top_down_pose
from equi_core.motion.safety import SafeCommand, StepCommand

FloatArray = NDArray[np.float64]


class Outcome(enum.IntEnum):
    """What became of a step; the numbers are those of the ROS message."""

    COMPLETED = 0
    CLIPPED = 1
    REJECTED = 2
    INTERRUPTED = 3


@dataclass(frozen=True)
class StepReport:
    """What was really done with one command."""

    command: StepCommand
    outcome: Outcome
    reasons: tuple[str, ...]
    executed: MetricDelta
    start_pose: FloatArray
    target_pose: FloatArray
    end_pose: FloatArray
    opening: float
    holding: bool
    received_s: float
    motion_start_s: float
    """When the arm was first seen to follow the step's target; the end if it never was."""
    ended_s: float


class StepPhase(enum.Enum):
    """Arm first, then the gripper: the order in which the policy was trained."""

    MOVING = 0
    SETTLING = 1
    GRIPPING = 2


@dataclass
class RunningStep:
    """A step on its way."""

    command: StepCommand
    safe: SafeCommand
    start_pose: FloatArray
    received_s: float
    phase: StepPhase = StepPhase.MOVING
    phase_since_s: float = 0.0
    reasons: list[str] = field(default_factory=list)
    interrupted: bool = False
    motion_start_s: float | None = None
    """None until the servo process follows the target."""

    def enter(self, phase: StepPhase, now_s: float) -> None:
        """Begin the next phase."""
        self.phase, self.phase_since_s = phase, now_s


def report_of(
    step: RunningStep, end_pose: FloatArray, gripper: GripperReport, now_s: float
) -> StepReport:
    """What became of a step that was started."""
    outcome = Outcome.COMPLETED
    if step.interrupted:
        outcome = Outcome.INTERRUPTED
    elif step.safe.issues:
        outcome = Outcome.CLIPPED
    position, yaw = step.safe.target_position_m, step.safe.target_yaw_rad
    return StepReport(
        command=step.command,
        outcome=outcome,
        reasons=tuple(step.reasons),
        executed=step.safe.executed,
        start_pose=step.start_pose,
        target_pose=top_down_pose(position or (0, 0, 0), yaw or 0.0),
        end_pose=end_pose,
        opening=gripper.opening,
        holding=gripper.holding,
        received_s=step.received_s,
        motion_start_s=now_s if step.motion_start_s is None else step.motion_start_s,
        ended_s=now_s,
    )


def refusal_of(
    command: StepCommand,
    reasons: tuple[str, ...],
    closedness: float,
    pose: FloatArray,
    gripper: GripperReport,
    now_s: float,
) -> StepReport:
    """The report on a command that moves nothing."""
    return StepReport(
        command=command,
        outcome=Outcome.REJECTED,
        reasons=reasons,
        executed=MetricDelta(closedness, (0.0, 0.0, 0.0), 0.0),
        start_pose=pose,
        target_pose=pose,
        end_pose=pose,
        opening=gripper.opening,
        holding=gripper.holding,
        received_s=now_s,
        motion_start_s=now_s,
        ended_s=now_s,
    )
