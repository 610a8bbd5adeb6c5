# SPDX-License-Identifier: MIT
"""The driver in shadow mode: every step is checked as if it were driven, reported, and not driven.

The policy is told the truth: the executed step is zero, the pose at the end is the measured one.
What would have been done stands in the target pose and in the first reason. A step that would have
been refused is refused here, with the same words.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import time

from equi_control.driver.config import DriverConfig
from equi_control.driver.driver import Refused
from equi_control.driver.gripper import Gripper, WorkerFactory
from equi_control.driver.state import (
    DriverState,
    Fault,
    FaultCode,
    fault_of_code,
    fault_of_problem,
    reset_refusal,
)
from equi_control.driver.step_runner import StepRunner
from equi_control.driver.steps import StepReport
from equi_control.robotiq.worker import GripperReport
from equi_control.servo.shared_state import ServoState
from equi_control.shadow.listening_arm import ListeningArm
from equi_core.action import MetricDelta
from equi_core.motion.joint_limits import warm_up
from equi_core.motion.safety import StepCommand

_LOG = logging.getLogger(__name__)

NOTICE = "shadow: nothing moves; steps are checked, logged and not driven"


class _ShadowSteps(StepRunner):
    """Checks steps like the driver, and ends each one at once, undriven."""

    def check(self, command: StepCommand, refusal: str) -> list[StepReport]:
        """The report on one command; nothing is under way afterwards."""
        reports, started = self.submit(command, refusal)
        step = self._running
        if not started or step is None:
            return reports
        would = step.safe.executed
        x, y, z = (1e3 * value for value in would.step_m)
        words = (
            f"shadow: would step by {x:.0f}, {y:.0f}, {z:.0f} mm, "
            f"{math.degrees(would.yaw_rad):.0f} deg, gripper to {would.closedness:.2f}"
        )
        step.reasons.insert(0, words)
        report = self._finish(step, time.monotonic())
        stays = MetricDelta(1.0 - report.opening, (0.0, 0.0, 0.0), 0.0)
        return [*reports, dataclasses.replace(report, executed=stays)]


class ShadowDriver:
    """Offers what `Driver` does, over an arm that is only listened to."""

    servo_pid = None
    homing = False
    activating = False
    distance_from_home_m = 0.0
    """The arm is not asked to go anywhere, so it is never on its way."""

    def __init__(self, config: DriverConfig, gripper_factory: WorkerFactory | None = None) -> None:
        self.config = config
        self._arm = ListeningArm(config.servo)
        self._gripper = Gripper(gripper_factory)
        self._steps = _ShadowSteps(self._arm, self._gripper, config)  # type: ignore[arg-type]
        self.state = DriverState.IDLE
        self.fault: Fault | None = None
        self.fault_count = 0
        self.notice = NOTICE
        self._connect_since_s = 0.0
        self.resetting = False

    # What others may know ------------------------------------------------------------------------

    @property
    def servo_state(self) -> ServoState | None:
        """The newest measured state; None before the first."""
        return self._arm.last_state

    @property
    def gripper_report(self) -> GripperReport:
        """The newest gripper report. An inactive gripper is at rest, too."""
        return dataclasses.replace(self._gripper.report, settled=True)

    @property
    def episode_id(self) -> str:
        """The running episode; empty if none."""
        return self._steps.episode_id

    @property
    def executed_steps(self) -> int:
        """Steps of the running episode that were checked."""
        return self._steps.executed_steps

    @property
    def moving(self) -> bool:
        """Whether somebody else moves the arm: the pendant, or a hand."""
        return self.servo_state is not None and not self.servo_state.finished

    @property
    def ready_to_activate(self) -> bool:
        """Whether the robot is heard."""
        return self.state is DriverState.IDLE and self._arm.streaming_state is not None

    @property
    def speed_in_steps_of_5_percent(self) -> int:
        """The pendant's slider, coarse enough to publish."""
        return 20 if self.servo_state is None else round(20 * self.servo_state.speed_share)

    # Requests ------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Begin to listen to robot and gripper."""
        warm_up(self.config.servo.joint_limits)
        self._connect_since_s = time.monotonic()
        self._arm.connect()
        if self.config.use_gripper:
            self._gripper.connect(self.config.servo.link.host)

    def activate(self) -> None:
        """Accept commands for checking.

        Raises:
            Refused: a fault is latched, or the robot is not heard yet.
        """
        if self.fault is not None:
            raise Refused(f"a fault is latched ({self.fault.reason}); reset it first")
        if self._arm.streaming_state is None:
            raise Refused("the robot is not heard yet; wait, or look at the driver's log")
        self.state = DriverState.HOLD

    def deactivate(self) -> list[StepReport]:
        """Check no more commands."""
        if self.state is not DriverState.FAULT:
            self.state = DriverState.IDLE
        return []

    def begin_episode(self, episode_id: str) -> None:
        """Accept commands of this episode only, from step 0 on."""
        if not episode_id:
            raise Refused("the episode id is empty; give each episode its own")
        self._steps.begin_episode(episode_id)

    def submit(self, command: StepCommand) -> list[StepReport]:
        """Check a step; it is reported at once and not driven."""
        return self._steps.check(command, self._refusal())

    def go_home(self) -> None:
        """Stay."""
        self._require_hold("go_home")

    def open_gripper(self) -> None:
        """Stay."""
        self._require_hold("open_gripper")

    def hold(self) -> list[StepReport]:
        """Pause the checking."""
        if self.state is DriverState.HOLD:
            self.state = DriverState.PAUSED
        return []

    def resume(self) -> None:
        """Check commands again.

        Raises:
            Refused: the driver is not paused.
        """
        if self.state is not DriverState.PAUSED:
            raise Refused(f"resume needs the driver PAUSED, it is {self.state.name}")
        self.state = DriverState.HOLD

    def stop_motion(self) -> list[StepReport]:
        """Do nothing: nothing of ours moves."""
        return []

    def begin_reset(self, acknowledged: FaultCode, fault_count: int) -> None:
        """Forget the fault and listen anew.

        Raises:
            Refused: nothing is latched, or another fault than the acknowledged one.
        """
        refusal = reset_refusal(self.fault, self.fault_count, acknowledged, fault_count)
        if refusal:
            raise Refused(refusal)
        self._connect_since_s = time.monotonic()
        self._arm.connect()
        self.resetting = True

    def abort_reset(self) -> str:
        """End a reset that takes too long; returns what it was waiting for."""
        self.poll()
        if not self.resetting:
            return ""
        self.resetting = False
        return f"the robot at {self.config.servo.link.host} is not ready"

    def close(self) -> None:
        """Listen no more."""
        self._arm.close()
        self._gripper.stop()

    # Polling -------------------------------------------------------------------------------------

    def poll(self) -> list[StepReport]:
        """Look for faults."""
        problem, words = self._arm.problem()
        if not problem and self._arm.last_state is None:
            limit_s = self.config.connect_timeout_s
            if time.monotonic() - self._connect_since_s > limit_s:
                problem, words = "connection_lost", f"nothing was heard within {limit_s:.0f} s"
        heard = self._arm.streaming_state is not None
        if self.fault is not None:
            if self.resetting and heard and not problem:
                self.fault, self.resetting, self.state = None, False, DriverState.IDLE
        elif problem:
            self._latch(fault_of_problem(problem, words))
        elif self.state is not DriverState.IDLE and self.gripper_report.fault >= 0x0A:
            fault = self.gripper_report.fault
            self._latch(fault_of_code(FaultCode.GRIPPER, f"the gripper reports fault {fault}"))
        return []

    def _latch(self, fault: Fault) -> None:
        self.fault, self.state = fault, DriverState.FAULT
        self.fault_count += 1
        _LOG.error("FAULT %s; %s", fault.reason, fault.operator_action)

    def _require_hold(self, what: str) -> None:
        if self.state is not DriverState.HOLD:
            raise Refused(f"{what} needs the driver in HOLD, it is {self.state.name}")

    def _refusal(self) -> str:
        if self.fault is not None:
            return f"fault: {self.fault.reason}"
        if self.state is DriverState.IDLE:
            return "not_active: the driver is idle; activate it first"
        if self.state is DriverState.PAUSED:
            return "paused: an operator holds the arm; call resume"
        if self.moving:
            return "busy: somebody moves the arm by hand or on the pendant"
        return ""
