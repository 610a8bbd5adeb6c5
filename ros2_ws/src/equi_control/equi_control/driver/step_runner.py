# SPDX-License-Identifier: MIT
"""Steps of an episode, one at a time: checked, moved, settled, gripped, reported.

A step moves the arm, lets it settle, then moves the gripper, in the order in which the policy was
trained. It ends where the arm is *measured* to have arrived. One that was blocked by contact ends
there, and the gripper still moves, as in training. One that stands elsewhere without contact, or is
too slow, is interrupted, and the gripper stays as it is. Every command that comes in leaves as
exactly one report.
"""

from __future__ import annotations

import math
import time

import numpy as np
from numpy.typing import NDArray

from equi_control.driver.arm import Arm
from equi_control.driver.config import DriverConfig
from equi_control.driver.deadline import longest_motion_s
from equi_control.driver.gripper import Gripper
from equi_control.driver.state import Fault, FaultCode, fault_of_code
from equi_control.driver.steps import (
    RunningStep,
    StepPhase,
    StepReport,
    refusal_of,
    report_of,
)
from equi_control.servo.shared_state import ServoState
from equi_core.motion.joint_limits import path_problem
from equi_core.motion.safety import RobotInput, SafeCommand, StepCommand, filter_command
from equi_core.step_limits import Reason

FloatArray = NDArray[np.float64]


class StepRunner:
    """Carries out steps on an arm and a gripper; knows nothing of driver states."""

    def __init__(self, arm: Arm, gripper: Gripper, config: DriverConfig) -> None:
        self._arm, self._gripper, self._config = arm, gripper, config
        self._running: RunningStep | None = None
        self._next_step = 0
        self._start_yaw_rad: float | None = None
        self._rested_since_s = math.inf
        self.episode_id = ""
        self.executed_steps = 0
        """Steps of this episode that were begun and have ended; refused ones do not count."""

    def begin_episode(self, episode_id: str) -> None:
        """Accept commands of this episode only, from step 0 on; the same id again is no change."""
        if episode_id != self.episode_id:
            self.episode_id = episode_id
            self.executed_steps = 0
            self._next_step = 0
            self._start_yaw_rad = None

    def resume_at(self, yaw_rad: float) -> None:
        """A new take-over within an episode: its commanded yaw [rad] begins wrapped again."""
        if self._start_yaw_rad is not None:
            turns = round((yaw_rad - self._start_yaw_rad) / (2 * math.pi))
            self._start_yaw_rad += 2 * math.pi * turns

    def submit(self, command: StepCommand, refusal: str) -> tuple[list[StepReport], bool]:
        """Check a step and start it, unless the caller has a reason to refuse it.

        Returns:
            Reports of what ended by it (refused, interrupted), and whether a step was started.
        """
        now_s = time.monotonic()
        servo_state = self._arm.streaming_state
        refusal = refusal or self._mismatch(command)
        if refusal or servo_state is None:
            return [self._refused(command, (refusal or "not_connected: no robot",), now_s)], False
        safe = self._filtered(command, servo_state, now_s)
        reasons = tuple(f"{issue.reason.value}: {issue.message}" for issue in safe.issues)
        if not safe.accepted:
            return [self._refused(command, reasons, now_s)], False
        target = np.array([*(safe.target_position_m or ()), safe.target_yaw_rad or 0.0])
        beyond = self._joint_problem(servo_state, target)
        if beyond:
            return [self._refused(command, (f"{Reason.JOINT_LIMIT.value}: {beyond}",), now_s)], (
                False
            )
        reports = self.interrupt("a newer command arrived")
        self._next_step = command.step_index + 1
        self._rested_since_s = math.inf
        if self._start_yaw_rad is None:
            self._start_yaw_rad = float(servo_state.commanded[3])
        self._running = RunningStep(
            command,
            safe,
            servo_state.task_from_tcp,
            now_s,
            phase_since_s=now_s,
            reasons=list(reasons),
        )
        self._arm.set_target(target)
        return reports, True

    def advance(self, servo_state: ServoState, now_s: float) -> StepReport | Fault | None:
        """Poll the running step: its report if it has ended, a fault if the gripper hangs."""
        step = self._running
        if step is None:
            return None
        if step.motion_start_s is None and self._arm.departed(servo_state):
            step.motion_start_s = servo_state.heartbeat_s
        if step.phase is StepPhase.MOVING and self._arm.arrived(servo_state):
            step.enter(StepPhase.SETTLING, now_s)
        if step.phase is StepPhase.SETTLING and servo_state.blocked and not step.interrupted:
            step.interrupted = True
            step.reasons.append(f"blocked: {servo_state.message}")
        if step.phase is StepPhase.SETTLING and self._has_settled(step, servo_state, now_s):
            self._gripper.close_to(step.safe.executed.closedness)
            step.enter(StepPhase.GRIPPING, now_s)
        elif step.phase is not StepPhase.GRIPPING:
            missed = self._not_arrived(step, servo_state, now_s)
            if missed:
                self._arm.settle()
                step.interrupted = True
                step.reasons.append(f"not_arrived: {missed}")
                return self._finish(step, now_s)
        if step.phase is StepPhase.GRIPPING:
            report = self._gripper.report
            # A jam that was noticed since the faults were last checked will end the step as one.
            if report.settled and not report.jammed:
                return self._finish(step, now_s)
            limit_s = self._config.gripper_timeout_s
            if now_s - step.phase_since_s > limit_s:
                return fault_of_code(FaultCode.GRIPPER, f"no end of its motion within {limit_s} s")
        return None

    def _has_settled(self, step: RunningStep, servo_state: ServoState, now_s: float) -> bool:
        """Whether the arm rests at its target, or where contact has stopped it."""
        if servo_state.blocked:
            # Fingers that squeeze something make the joints tremble.
            limit_s = self._config.settle_timeout_s
            return self._arm.resting(servo_state) or now_s - step.phase_since_s > limit_s
        return self._arm.resting(servo_state) and self._is_at_target(step, servo_state)

    def _is_at_target(self, step: RunningStep, servo_state: ServoState) -> bool:
        config = self._config
        target = [*(step.safe.target_position_m or ()), step.safe.target_yaw_rad or 0.0]
        tolerance = (config.arrival_tolerance_m, config.arrival_tolerance_rad)
        return self._arm.is_at_target(servo_state, target, tolerance)

    def _not_arrived(self, step: RunningStep, servo_state: ServoState, now_s: float) -> str:
        """Why a step will not arrive any more; empty while it may."""
        share = max(servo_state.speed_share, self._config.min_speed_share)
        away_mm = 1e3 * float(
            np.linalg.norm(servo_state.position_m - (step.safe.target_position_m or (0, 0, 0)))
        )
        speed = f"slider and speed scaling at {servo_state.speed_share:.0%}"
        limit_s = longest_motion_s(self._config, servo_state)
        if now_s - step.received_s > limit_s:
            return f"{away_mm:.1f} mm from the target after {limit_s:.0f} s; {speed}"
        resting = self._arm.resting(servo_state)
        if step.phase is not StepPhase.SETTLING or servo_state.blocked or not resting:
            self._rested_since_s = math.inf
            return ""
        self._rested_since_s = min(self._rested_since_s, now_s)
        limit_s = self._config.settle_timeout_s / share
        if now_s - self._rested_since_s > limit_s:
            return f"the arm rests {away_mm:.1f} mm from the target; {speed}"
        return ""

    def interrupt(self, why: str) -> list[StepReport]:
        """End the running step, if there is one, before its time."""
        step = self._running
        if step is None:
            return []
        step.interrupted = True
        step.reasons.append(f"interrupted: {why}")
        return [self._finish(step, time.monotonic())]

    def add_reason(self, reason: str) -> None:
        """Add a reason to the report of the running step."""
        if self._running is not None:
            self._running.reasons.append(reason)

    def _filtered(self, command: StepCommand, servo_state: ServoState, now_s: float) -> SafeCommand:
        commanded = servo_state.commanded
        return filter_command(
            command,
            RobotInput(
                commanded[:3],
                commanded[3],
                servo_state.position_m,
                self._gripper.closedness,
                servo_state.state_age_s + now_s - servo_state.heartbeat_s,
                self._next_step - 1,
                self._start_yaw_rad,
            ),
            self._config.servo.limits,
        )

    def _joint_problem(self, servo_state: ServoState, target: FloatArray) -> str:
        """Which joint a way would bring too near to its end; empty if none."""
        servo = self._config.servo
        return path_problem(
            servo_state.joints_rad,
            servo_state.commanded,
            target,
            servo.link.geometry,
            servo.joint_limits,
        )

    def _mismatch(self, command: StepCommand) -> str:
        """Why a command does not belong here and now; empty if it does."""
        if command.episode_id != self.episode_id:
            return (
                f"foreign_episode: command of '{command.episode_id}', running is "
                f"'{self.episode_id}'"
            )
        if command.step_index != self._next_step:
            return f"out_of_order: step {command.step_index}, expected {self._next_step}"
        if not command.observation_age_s <= self._config.max_command_observation_age_s:
            return (
                f"stale_observation: {command.observation_age_s:.2f} s old, at most "
                f"{self._config.max_command_observation_age_s} s is allowed"
            )
        return ""

    def _finish(self, step: RunningStep, now_s: float) -> StepReport:
        self._running = None
        self.executed_steps += 1
        return report_of(step, self._arm.measured_pose, self._gripper.report, now_s)

    def _refused(self, command: StepCommand, reasons: tuple[str, ...], now_s: float) -> StepReport:
        return refusal_of(
            command,
            reasons,
            self._gripper.closedness,
            self._arm.measured_pose,
            self._gripper.report,
            now_s,
        )
