"""The driver without ROS: commands in, checked steps out, faults latched until a person resets.

One `Driver` owns a servo process and a gripper worker. It is polled; it never blocks and nothing
moves before `activate`. A step moves the arm, lets it settle, then moves the gripper, in the order
in which the policy was trained.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equi_control.driver_config import DriverConfig
from equi_control.driver_state import (
    DriverState,
    Event,
    Fault,
    FaultCode,
    fault_of_code,
    next_state,
)
from equi_control.fault_watch import FaultWatch
from equi_control.gripper_worker import GripperReport, GripperWorker
from equi_control.robotiq_client import RobotiqClient
from equi_control.servo_config import ServoConfig
from equi_control.servo_process import ServoProcess
from equi_control.shared_state import Phase
from equi_control.steps import (
    RunningStep,
    StepCommand,
    StepPhase,
    StepReport,
    refusal_of,
    report_of,
)
from equi_core.safety import CommandInput, RobotInput, filter_command

FloatArray = NDArray[np.float64]

_LOG = logging.getLogger(__name__)

_AT_REST_RAD_S = 0.003
_SETTLE_LIMIT_S = 1.0
_SAME_CLOSEDNESS = 1e-3


class Refused(RuntimeError):
    """A request that the driver cannot carry out now; says why and what to do."""


class Driver:
    """State machine over a servo process and a gripper worker."""

    def __init__(
        self,
        config: DriverConfig,
        servo_factory: Callable[[ServoConfig], ServoProcess] = ServoProcess,
    ) -> None:
        self.config = config
        self._limits = config.servo.limits
        self._make_servo = servo_factory
        self._servo: ServoProcess | None = None
        self._gripper: GripperWorker | None = None
        self.state = DriverState.IDLE
        self.fault: Fault | None = None
        self.fault_count = 0
        self.episode_id = ""
        self.executed_steps = 0
        self.notice = ""
        self._next_step = 0
        self._closedness: float | None = None
        self._was_holding = False
        self._target_number = 0
        self._step: RunningStep | None = None
        self._home: list[FloatArray] | None = None
        self._activation_asked = False
        self._reset_pending = False
        self._watch = FaultWatch(config)
        self.last: Any = None

    # Requests ------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Start the servo process and the gripper worker; nothing moves."""
        self._start_servo()
        if self.config.use_gripper:
            self._gripper = GripperWorker(RobotiqClient(self.config.servo.link.host))
            self._gripper.start()

    def activate(self) -> None:
        """Take over the arm where it stands; `state` turns to HOLD when that is done.

        Raises:
            Refused: a fault is latched, or the robot is not connected yet.
        """
        if self.state is DriverState.FAULT:
            raise Refused(f"a fault is latched ({self._fault_text()}); reset it first")
        if self.state is not DriverState.IDLE:
            return
        if self._servo is None or self._servo.phase is not Phase.IDLE:
            raise Refused("the robot is not connected yet; wait, or look at the driver's log")
        if self._gripper is not None:
            self._gripper.activate()
        self._activation_asked = True
        self._servo.activate()

    def deactivate(self) -> None:
        """Stop, let go of the arm, and be ready to take over again."""
        if self.state is DriverState.FAULT:
            return
        self._interrupt_step("deactivated")
        self._home = None
        self._activation_asked = False
        if self.state is not DriverState.IDLE and self._servo is not None:
            self._servo.end()
            self._start_servo()
        self.state = next_state(self.state, Event.RELEASED)

    def begin_episode(self, episode_id: str) -> None:
        """Accept commands of this episode only, from step 0 on; the same id again is no change."""
        if not episode_id:
            raise Refused("the episode id is empty; give each episode its own")
        if episode_id != self.episode_id:
            self.episode_id = episode_id
            self.executed_steps = 0
            self._next_step = 0

    def submit(self, command: StepCommand) -> list[StepReport]:
        """Judge a step and start it; returns reports of what ended by it (refused, interrupted)."""
        now_s = time.monotonic()
        servo_state = self._servo_state()
        refusal = self._refusal(command)
        if refusal or servo_state is None:
            return [self._rejection(command, (refusal or "not_connected: no robot",), now_s)]
        commanded = servo_state["commanded"]
        verdict = filter_command(
            CommandInput(
                command.step_index,
                command.closedness,
                command.step_m,
                command.yaw_rad,
                command.age_s,
            ),
            RobotInput(
                commanded[:3],
                commanded[3],
                servo_state["base_link_from_tcp"][:3, 3],
                self._closedness or 0.0,
                float(servo_state["state_age_s"]) + now_s - float(servo_state["heartbeat_s"]),
                self._next_step - 1,
            ),
            self._limits,
        )
        reasons = tuple(f"{item.reason.value}: {item.message}" for item in verdict.findings)
        if not verdict.accepted:
            return [self._rejection(command, reasons, now_s)]
        reports = self._interrupt_step("a newer command arrived")
        self._next_step = command.step_index + 1
        self._target_number += 1
        self._step = RunningStep(
            command,
            verdict,
            self._target_number,
            np.array(servo_state["base_link_from_tcp"]),
            now_s,
            phase_since_s=now_s,
            reasons=list(reasons),
        )
        self.state = next_state(self.state, Event.MOTION_STARTED)
        self._aim([*(verdict.target_position_m or ()), verdict.target_yaw_rad])
        return reports

    def go_home(self) -> None:
        """Go up, over and to the home pose; `homing` turns False when it is reached.

        Raises:
            Refused: the driver does not hold the arm, or a step is running.
        """
        if self.state is not DriverState.HOLD:
            raise Refused(
                f"go_home needs the driver in HOLD, it is {self.state.name}; "
                "activate it, and let the running step end"
            )
        servo_state = self._servo_state()
        if servo_state is None:
            raise Refused("the robot is not connected")
        x, y, z, yaw = (float(value) for value in servo_state["commanded"])
        home_x, home_y, home_z = self.config.home_position_m
        travel_z = max(z, home_z)
        self._home = [
            np.array([x, y, travel_z, yaw]),
            np.array([home_x, home_y, travel_z, self.config.home_yaw_rad]),
            np.array([home_x, home_y, home_z, self.config.home_yaw_rad]),
        ]
        self.state = next_state(self.state, Event.MOTION_STARTED)
        self._aim_home()

    def hold(self) -> list[StepReport]:
        """Stop on the way, within the caps, and keep holding; returns the interrupted step."""
        if self.state is not DriverState.ACTIVE:
            return []
        reports = self._interrupt_step("asked to hold")
        self._home = None
        if self._servo is not None:
            self._servo.brake()
        if self.state is DriverState.ACTIVE:
            self.state = next_state(self.state, Event.MOTION_ENDED)
        return reports

    @property
    def moving(self) -> bool:
        """Whether arm or fingers are, or may be, under way."""
        if self.state is DriverState.ACTIVE or not self.gripper.settled:
            return True
        # A step has waited for rest before it ended. What the joints do afterwards (they tremble
        # while the fingers squeeze something that stands on the table) is no motion of ours.
        return self.last is not None and not bool(self.last["finished"])

    @property
    def homing(self) -> bool:
        """Whether the way home is under way."""
        return self._home is not None

    @property
    def distance_from_home_m(self) -> float:
        """Distance of the commanded TCP from home [m]; NaN before the first contact."""
        if self.last is None:
            return math.nan
        return float(np.linalg.norm(self.last["commanded"][:3] - self.config.home_position_m))

    def open_gripper(self) -> None:
        """Open the gripper outside an episode step, for example after going home."""
        if self._gripper is None or self.state is not DriverState.HOLD:
            raise Refused("the gripper can be opened by request only while the driver holds")
        self._closedness = 0.0
        self._gripper.move(0.0)

    def begin_reset(self, acknowledged: FaultCode) -> None:
        """An operator resets the latched fault: connect anew. `resetting` shows when it is over.

        Raises:
            Refused: nothing is latched, or another fault than the acknowledged one.
        """
        if self.fault is None:
            raise Refused("no fault is latched")
        if acknowledged is not self.fault.code:
            raise Refused(
                f"{acknowledged.name} was acknowledged, but {self._fault_text()} is latched; "
                "look at the robot again"
            )
        if self._servo is not None:
            self._servo.kill()
        self._reset_pending = True
        self._start_servo()

    @property
    def resetting(self) -> bool:
        """Whether a reset waits for the robot."""
        return self._reset_pending

    def close(self) -> None:
        """Stop the arm and end everything."""
        if self._servo is not None:
            self._servo.end()
        if self._gripper is not None:
            self._gripper.stop()

    # The regular look ----------------------------------------------------------------------------

    @property
    def gripper(self) -> GripperReport:
        """The newest gripper report; a healthy stand-in if the cell has none."""
        if self._gripper is None:
            return GripperReport(connected=True, active=True, settled=True, reason="")
        return self._gripper.report

    @property
    def servo_pid(self) -> int | None:
        """Process id of the servo process."""
        return self._servo.pid if self._servo is not None else None

    def poll(self) -> list[StepReport]:
        """Look at everything once; returns reports of steps that ended."""
        now_s = time.monotonic()
        if self._servo is None:
            return []
        self.last = servo_state = self._servo.state()
        fault = self._find_fault(self._servo, servo_state)
        if fault is not None:
            return self._latch(fault)
        if self.state is DriverState.FAULT:
            self._finish_reset(servo_state)
            return []
        self._notice_lost_object()
        if self._activation_asked:
            self._finish_activation(servo_state)
        if self._home is not None:
            self._advance_home(servo_state)
        return self._advance_step(servo_state, now_s)

    def _find_fault(self, servo: ServoProcess, servo_state: Any) -> Fault | None:
        if self.state is DriverState.FAULT and not self._reset_pending:
            return None
        driving = self.state in (DriverState.HOLD, DriverState.ACTIVE)
        return self._watch.look(servo, servo_state, self.gripper, driving=driving)

    def _latch(self, fault: Fault) -> list[StepReport]:
        """Stop the arm, remember why, and wait for a person."""
        reports = self._interrupt_step(fault.reason)
        if self._servo is not None:
            if self._servo.silence_s() > self.config.servo_silence_s:
                self._servo.kill()  # it hangs: the robot's watchdog has stopped the arm
            else:
                self._servo.end()  # it stops the arm, or has done so and ended
        self._home = None
        self._activation_asked = False
        self._reset_pending = False
        self.fault = fault
        self.fault_count += 1
        self.state = next_state(self.state, Event.FAILED)
        _LOG.error("FAULT %s; %s", fault.reason, fault.operator_action)
        return reports

    def _finish_reset(self, servo_state: Any) -> None:
        if self._reset_pending and Phase(int(servo_state["phase"])) is Phase.IDLE:
            if self._gripper is not None and not self.gripper.connected:
                return
            self._reset_pending = False
            self.fault = None
            self.state = next_state(self.state, Event.RESET)
            _LOG.info("fault reset; the next motion is planned from the measured pose")

    def _finish_activation(self, servo_state: Any) -> None:
        phase = Phase(int(servo_state["phase"]))
        self.notice = str(servo_state["message"]) if phase is Phase.IDLE else ""
        if phase is Phase.STREAMING and self.gripper.active:
            self._activation_asked = False
            self.state = next_state(self.state, Event.TAKEN_OVER)

    def _notice_lost_object(self) -> None:
        holding = self.gripper.holding
        # Opening on purpose is no loss.
        if self._was_holding and not holding and (self._closedness or 0.0) > 0.5:
            self.notice = "object_lost: the gripper no longer holds the object"
            if self._step is not None:
                self._step.reasons.append(self.notice)
        self._was_holding = holding

    # Motions -------------------------------------------------------------------------------------

    def _aim(self, target: list[Any] | FloatArray) -> None:
        if self._servo is not None:
            self._servo.move_to(self._target_number, target)

    def _arrived(self, servo_state: Any) -> bool:
        return (
            bool(servo_state["finished"])
            and int(servo_state["target_number"]) == self._target_number
        )

    def _advance_home(self, servo_state: Any) -> None:
        if self._home and self._arrived(servo_state):
            if len(self._home) == 1 and not self._resting(servo_state):
                return
            self._home.pop(0)
            if self._home:
                self._aim_home()
            else:
                self._home = None
                self.state = next_state(self.state, Event.MOTION_ENDED)

    @staticmethod
    def _resting(servo_state: Any) -> bool:
        return float(np.abs(servo_state["joint_speeds_rad_s"]).max()) < _AT_REST_RAD_S

    def _aim_home(self) -> None:
        if self._home:
            self._target_number += 1
            self._aim(self._home[0])

    def _advance_step(self, servo_state: Any, now_s: float) -> list[StepReport]:
        step = self._step
        if step is None:
            return []
        if step.phase is StepPhase.MOVING and self._arrived(servo_state):
            if bool(servo_state["blocked"]):
                step.interrupted = True
                step.reasons.append(f"blocked: {servo_state['message']}")
            self._enter(step, StepPhase.SETTLING, now_s)
        waited_s = now_s - step.phase_since_s
        settled = self._resting(servo_state) or waited_s > _SETTLE_LIMIT_S
        if step.phase is StepPhase.SETTLING and settled:
            self._start_gripping(step)
            self._enter(step, StepPhase.GRIPPING, now_s)
        if step.phase is StepPhase.GRIPPING:
            if self.gripper.settled:
                return [self._finish_step(step, now_s)]
            if now_s - step.phase_since_s > self.config.gripper_timeout_s:
                reason = f"no end of its motion within {self.config.gripper_timeout_s} s"
                return self._latch(fault_of_code(FaultCode.GRIPPER, reason))
        return []

    @staticmethod
    def _enter(step: RunningStep, phase: StepPhase, now_s: float) -> None:
        step.phase, step.phase_since_s = phase, now_s

    def _start_gripping(self, step: RunningStep) -> None:
        wished = step.verdict.executed.closedness
        unchanged = (
            self._closedness is not None and abs(wished - self._closedness) < _SAME_CLOSEDNESS
        )
        if self._gripper is not None and not unchanged:
            self._closedness = wished
            self._gripper.move(wished)

    def _finish_step(self, step: RunningStep, now_s: float) -> StepReport:
        self._step = None
        self.executed_steps += 1
        if self.state is DriverState.ACTIVE:
            self.state = next_state(self.state, Event.MOTION_ENDED)
        return report_of(step, self._measured_pose(), self.gripper, now_s)

    def _interrupt_step(self, why: str) -> list[StepReport]:
        step = self._step
        if step is None:
            return []
        step.interrupted = True
        step.reasons.append(f"interrupted: {why}")
        return [self._finish_step(step, time.monotonic())]

    def _rejection(
        self, command: StepCommand, reasons: tuple[str, ...], now_s: float
    ) -> StepReport:
        return refusal_of(
            command,
            reasons,
            self._closedness or 0.0,
            self._measured_pose(),
            self.gripper,
            now_s,
        )

    def _refusal(self, command: StepCommand) -> str:
        """Why a command is not even judged; empty if it is."""
        if self.state is DriverState.FAULT:
            return f"fault: {self._fault_text()}"
        if self.state is DriverState.IDLE:
            return "not_active: the driver is idle; activate it first"
        if self._home is not None:
            return "busy: the arm is on its way home"
        if command.episode_id != self.episode_id:
            return (
                f"foreign_episode: command of '{command.episode_id}', running is "
                f"'{self.episode_id}'"
            )
        if command.step_index != self._next_step:
            return f"out_of_order: step {command.step_index}, expected {self._next_step}"
        if not command.observation_age_s <= self.config.max_observation_age_s:
            return (
                f"stale_observation: {command.observation_age_s:.2f} s old, at most "
                f"{self.config.max_observation_age_s} s is allowed"
            )
        return ""

    # Small helpers -------------------------------------------------------------------------------

    def _start_servo(self) -> None:
        self._servo = self._make_servo(self.config.servo)
        self._watch.connecting()
        self._servo.start()

    def _servo_state(self) -> Any:
        if self._servo is None or self._servo.phase is not Phase.STREAMING:
            return None
        return self._servo.state()

    def _measured_pose(self) -> FloatArray:
        if self.last is None or not math.isfinite(float(self.last["heartbeat_s"])):
            return np.eye(4)
        pose = np.array(self.last["base_link_from_tcp"])
        return pose if np.any(pose) else np.eye(4)

    def _fault_text(self) -> str:
        return "" if self.fault is None else f"{self.fault.code.name}: {self.fault.reason}"
