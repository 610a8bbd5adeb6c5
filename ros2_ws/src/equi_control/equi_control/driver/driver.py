# SPDX-License-Identifier: MIT
"""The driver without ROS: commands in, checked steps out, faults latched until a person resets.

One `Driver` owns an arm (a servo process) and a gripper (its worker). It is polled; nothing blocks
except `close`, and nothing moves before `activate`.
"""

from __future__ import annotations

import logging
import time

from equi_control.driver.arm import Arm, ServoFactory
from equi_control.driver.config import DriverConfig
from equi_control.driver.driver_view import DriverView
from equi_control.driver.fault_monitor import FaultMonitor
from equi_control.driver.gripper import Gripper, WorkerFactory
from equi_control.driver.homing import Homing
from equi_control.driver.set_down import SetDown
from equi_control.driver.state import (
    DriverState,
    Event,
    Fault,
    FaultCode,
    fault_of_code,
    next_state,
    reset_refusal,
)
from equi_control.driver.step_runner import StepRunner
from equi_control.driver.steps import StepReport
from equi_control.driver.take_over import TakeOver, TakeOverResult
from equi_control.servo.process import ServoProcess
from equi_control.servo.shared_state import ServoState
from equi_core.motion.joint_limits import warm_up
from equi_core.motion.safety import StepCommand

_LOG = logging.getLogger(__name__)


class Refused(RuntimeError):
    """A request that the driver cannot carry out now; says why and what to do."""


class Driver(DriverView):
    """State machine over an arm and a gripper."""

    def __init__(
        self,
        config: DriverConfig,
        servo_factory: ServoFactory = ServoProcess,
        gripper_factory: WorkerFactory | None = None,
    ) -> None:
        self.config = config
        self._arm = Arm(config.servo, servo_factory)
        self._gripper = Gripper(gripper_factory)
        self._steps = StepRunner(self._arm, self._gripper, config)
        self._homing = Homing(self._arm, config)
        self._set_down = SetDown(self._arm, self._gripper, config)
        self._monitor = FaultMonitor(config)
        self.state = DriverState.IDLE
        self.fault: Fault | None = None
        self.fault_count = 0
        self.notice = ""
        self._take_over = TakeOver(self._arm, self._gripper, config.gripper_activation_timeout_s)
        self._reset_pending = False

    # Requests ------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Start the servo process and the gripper worker; nothing moves."""
        warm_up(self.config.servo.joint_limits)
        self._start_servo()
        if self.config.use_gripper:
            self._gripper.connect(self.config.servo.link.host)
        else:
            _LOG.warning("use_gripper is false: no gripper is driven, and none is watched")

    def activate(self) -> None:
        """Take over the arm at its measured pose; `state` becomes HOLD when that is done.

        A tilted tool is then uprighted, and `moving` until it is. `activating` turns False when the
        arm is taken over, or may not be: `notice` then says why, and what to do.

        Raises:
            Refused: a fault is latched, or the robot is not connected yet.
        """
        if self.state is DriverState.FAULT:
            raise Refused(f"a fault is latched ({self._fault_text()}); reset it first")
        if self.state is not DriverState.IDLE:
            return
        if not self._arm.is_idle:
            raise Refused("the robot is not connected yet; wait, or look at the driver's log")
        self.notice = ""
        self._take_over.start()

    def deactivate(self) -> list[StepReport]:
        """Stop, let go of the arm, be ready to take over again; returns the interrupted step."""
        if self.state is DriverState.FAULT:
            return []
        reports = self._steps.interrupt("deactivated")
        self._gripper.drop_unsent()
        self._cancel_motion()
        # While the take-over is under way the state is still IDLE, but the arm may be driven.
        if self.state is not DriverState.IDLE or self._take_over.active:
            self._arm.end()
            self._start_servo()
        self._take_over.cancel()
        self.state = next_state(self.state, Event.RELEASED)
        self.notice = "deactivated: an operator released the arm; activate it to continue"
        return reports

    def begin_episode(self, episode_id: str) -> None:
        """Accept commands of this episode only, from step 0 on; the same id again is no change.

        A motion that is under way goes on; `hold` first.
        """
        if not episode_id:
            raise Refused("the episode id is empty; give each episode its own")
        if episode_id != self._steps.episode_id:
            self.notice = ""  # what was lost before does not concern this episode
        self._steps.begin_episode(episode_id)

    def submit(self, command: StepCommand) -> list[StepReport]:
        """Check a step and start it; returns reports of what ended by it (refused, interrupted)."""
        reports, started = self._steps.submit(command, self._refusal())
        if started:
            self.state = next_state(self.state, Event.MOTION_STARTED)
        return reports

    def go_home(self) -> None:
        """Let go, go up, over and to the home pose; `homing` becomes False when it is reached.

        A way that is blocked by contact latches a fault.

        Raises:
            Refused: the driver does not hold the arm, or a step is running.
        """
        if self.state is not DriverState.HOLD:
            raise Refused(
                f"go_home needs the driver in HOLD, it is {self.state.name}; "
                "activate it, and let the running step end"
            )
        servo_state = self._arm.streaming_state
        if servo_state is None:
            raise Refused("the robot is not connected")
        self.state = next_state(self.state, Event.MOTION_STARTED)
        self._homing.start(
            servo_state.position_m,
            float(servo_state.commanded[3]),
            servo_state.joints_rad,
            time.monotonic(),
        )

    def hold(self) -> list[StepReport]:
        """Stop on the way, within the caps, and stay PAUSED until `resume`.

        Whatever moves is stopped: a step, homing, the uprighting of a tilted tool. What
        the gripper was not told yet it is not told any more. A take-over goes on, and ends PAUSED.

        Returns:
            The report of the interrupted step.
        """
        if self.state is DriverState.FAULT:
            return []
        self._arm.decelerate()
        if self.state is DriverState.IDLE:
            self._take_over.pause_asked = self._take_over.active
            return []
        reports = self._steps.interrupt("asked to hold")
        self._cancel_motion()
        self._gripper.drop_unsent()
        self.state = next_state(self.state, Event.PAUSED)
        return reports

    def resume(self) -> None:
        """Accept commands again after `hold`; nothing moves by itself.

        Raises:
            Refused: the driver is not paused.
        """
        if self.state is not DriverState.PAUSED:
            raise Refused(f"resume needs the driver PAUSED, it is {self.state.name}")
        self.state = next_state(self.state, Event.RESUMED)

    def stop_motion(self) -> list[StepReport]:
        """Stop what moves, within the caps, and be ready for the next command.

        For whoever sent the motion: an episode that ends, a goal that is cancelled. An operator
        uses `hold`.

        Returns:
            The report of the interrupted step.
        """
        if self.state is not DriverState.ACTIVE:
            return []
        self._arm.decelerate()
        reports = self._steps.interrupt("stopped by request")
        self._cancel_motion()
        self._gripper.drop_unsent()
        self.state = next_state(self.state, Event.MOTION_ENDED)
        return reports

    def open_gripper(self) -> None:
        """Open the gripper outside an episode step; what it holds is first set down.

        Raises:
            Refused: there is no gripper, the driver does not hold, or what is held would drop.
        """
        if not self._gripper.exists or self.state is not DriverState.HOLD:
            raise Refused("the gripper can be opened by request only while the driver holds")
        if not self.gripper_report.holding:
            self._gripper.open()
            return
        servo_state = self._arm.streaming_state
        if servo_state is None:
            raise Refused("the gripper holds something, and the arm is not driven to set it down")
        refusal = self._set_down.refusal(servo_state)
        if refusal:
            raise Refused(refusal)
        self.state = next_state(self.state, Event.MOTION_STARTED)
        self._set_down.start(servo_state, time.monotonic())

    def _cancel_motion(self) -> None:
        self._homing.cancel()
        self._set_down.cancel()

    def begin_reset(self, acknowledged: FaultCode, fault_count: int) -> None:
        """An operator resets the latched fault: connect anew. `resetting` shows when it is over.

        Args:
            acknowledged: code of the fault that the operator has looked at.
            fault_count: its number, as the safety status showed it.

        Raises:
            Refused: nothing is latched, or another fault than the acknowledged one.
        """
        refusal = reset_refusal(self.fault, self.fault_count, acknowledged, fault_count)
        if refusal:
            raise Refused(refusal)
        self._arm.kill()
        self._gripper.reset()
        self._reset_pending = True
        self._start_servo()

    def abort_reset(self) -> str:
        """End a reset that takes too long: the fault stays latched until somebody asks again.

        Returns:
            What the reset was waiting for; empty if none was under way.
        """
        self._finish_reset()  # it may have become ready since the last poll
        if not self._reset_pending:
            return ""
        missing = self._missing_for_reset()
        self._reset_pending = False
        self._arm.end()
        _LOG.error("reset aborted: %s", missing)
        return missing

    def close(self) -> None:
        """Stop the arm and end everything; waits for it."""
        self._arm.close()
        self._gripper.stop()

    # Polling --------------------------------------------------------------------------------------

    def poll(self) -> list[StepReport]:
        """Check everything once; returns reports of steps that ended."""
        servo_state = self._arm.poll()
        servo = self._arm.servo  # after the poll, which may have started a new one
        if servo is None or servo_state is None or self._arm.starting:
            return []
        fault = self._find_fault(servo, servo_state)
        if fault is not None:
            return self._latch(fault)
        if self.state is DriverState.FAULT:
            self._finish_reset()
            return []
        if self._gripper.has_lost_object():
            self.notice = "object_lost: the gripper no longer holds the object"
            self._steps.add_reason(self.notice)
        if self._take_over.active:
            late = self._advance_take_over(servo_state)
            if late is not None:
                return self._latch(late)
        failed = self._advance_motion(servo_state)
        if failed is not None:
            return self._latch(failed)
        ended = self._steps.advance(servo_state, time.monotonic())
        if isinstance(ended, Fault):
            return self._latch(ended)
        if ended is None:
            return []
        self.state = next_state(self.state, Event.MOTION_ENDED)
        return [ended]

    def _advance_motion(self, servo_state: ServoState) -> Fault | None:
        """Go on with what is no step: setting an object down, the way home."""
        now_s = time.monotonic()
        self._set_down.see(servo_state)
        why = ""
        if self._set_down.advance(servo_state, now_s):
            why = self._set_down.failed and f"the object was not set down: {self._set_down.failed}"
        elif self._homing.advance(servo_state, now_s):
            why = self._homing.blocked and f"the way home is blocked: {self._homing.blocked}"
        else:
            return None
        if why:
            return fault_of_code(FaultCode.LIMIT_VIOLATED, why)
        self.state = next_state(self.state, Event.MOTION_ENDED)
        return None

    def _find_fault(self, servo: ServoProcess, servo_state: ServoState) -> Fault | None:
        if self.state is DriverState.FAULT and not self._reset_pending:
            return None
        driving = self.state in (DriverState.HOLD, DriverState.ACTIVE, DriverState.PAUSED)
        return self._monitor.check(servo, servo_state, self.gripper_report, driving=driving)

    def _latch(self, fault: Fault) -> list[StepReport]:
        """Stop the arm, remember why, and wait for a person."""
        reports = self._steps.interrupt(fault.reason)
        self._gripper.drop_unsent()
        if self._arm.has_lost_servo(self.config.servo_silence_s):
            self._arm.kill_and_end_program()  # the robot's watchdog has stopped the arm
        else:
            self._arm.abort(fault.reason)  # at once; or it has stopped the arm and ended
        self._cancel_motion()
        self._take_over.cancel()
        self._reset_pending = False
        self.fault = fault
        self.fault_count += 1
        self.state = next_state(self.state, Event.FAILED)
        _LOG.error("FAULT %s; %s", fault.reason, fault.operator_action)
        return reports

    def _missing_for_reset(self) -> str:
        """What a reset still waits for; empty if nothing."""
        if not self._arm.is_idle:
            return f"the robot at {self.config.servo.link.host} is not connected yet"
        if not self.gripper_report.connected:
            return f"the gripper is missing: {self.gripper_report.reason}"
        return ""

    def _finish_reset(self) -> None:
        if self._reset_pending and not self._missing_for_reset():
            self._reset_pending = False
            self.fault = None
            self.state = next_state(self.state, Event.RESET)
            _LOG.info("fault reset; the next motion is planned from the measured pose")

    def _advance_take_over(self, servo_state: ServoState) -> Fault | None:
        result = self._take_over.advance(servo_state)
        if result is TakeOverResult.REFUSED:
            self.notice = f"take_over_refused: {servo_state.message}"
            _LOG.error(self.notice)
        elif result is TakeOverResult.GRIPPER_LATE:
            after_s = self.config.gripper_activation_timeout_s
            reason = self.gripper_report.reason or "no answer"
            return fault_of_code(
                FaultCode.GRIPPER, f"the gripper is not active after {after_s:g} s ({reason})"
            )
        elif result is TakeOverResult.DONE:
            self._steps.resume_at(float(servo_state.commanded[3]))
            self.state = next_state(self.state, Event.TAKEN_OVER)
            if self._take_over.pause_asked:
                self.state = next_state(self.state, Event.PAUSED)
        return None

    def _refusal(self) -> str:
        """Why commands are refused in this state without a check; empty if they are not."""
        if self.state is DriverState.FAULT:
            return f"fault: {self._fault_text()}"
        if self.state is DriverState.IDLE:
            return "not_active: the driver is idle; activate it first"
        if self.state is DriverState.PAUSED:
            return "paused: an operator holds the arm; call resume"
        if self.homing or self._set_down.active:
            return "busy: the arm is on its way home, or sets an object down"
        servo_state, least = self.servo_state, self.config.min_speed_share
        if servo_state is not None and not servo_state.speed_share >= least:
            return (
                f"too_slow: speed slider {servo_state.speed_slider:.0%}, speed scaling "
                f"{servo_state.speed_scaling:.0%}, together at least {least:.0%} is needed; move "
                "the slider up, or leave reduced mode"
            )
        return ""

    def _start_servo(self) -> None:
        self._monitor.connecting()
        self._arm.start()

    def _fault_text(self) -> str:
        return "" if self.fault is None else f"{self.fault.code.name}: {self.fault.reason}"
