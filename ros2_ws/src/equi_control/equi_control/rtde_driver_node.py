# SPDX-License-Identifier: MIT
"""`rtde_driver_node`: wires the driver to ROS; decides nothing itself. A lifecycle node.

Configure connects to robot and gripper; activate takes over the arm, and only then can anything
move; deactivate stops the arm and lets go of it; a latched fault deactivates, too. States are
published from configure on.

In: `delta_command`. Out: `robot_state`, `executed_command`, `safety_status` (latched),
`joint_states`, `tcp_pose`, `diagnostics`. Services: `~/hold` (for people: paused until `~/resume`),
`~/stop_motion` (for whoever sent the motion), `~/open_gripper`, `~/reset_episode`, `~/reset_fault`.
Action: `~/go_home`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from builtin_interfaces.msg import Time
from equi_interfaces.action import GoHome
from equi_interfaces.msg import (
    DeltaCommand,
    ExecutedCommand,
    RobotState,
    SafetyStatus,
)
from equi_interfaces.msg import (
    DriverState as DriverStateMsg,
)
from equi_interfaces.srv import ResetEpisode, ResetFault
from geometry_msgs.msg import PoseStamped
from lifecycle_msgs.msg import Transition
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.timer import Timer
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from equi_control import messages
from equi_control.driver.driver import Refused
from equi_control.driver.state import DriverState, FaultCode
from equi_control.driver.steps import StepReport
from equi_control.parameters import declare_parameters, read_config
from equi_control.promotion.driver_stage import AnyDriver, DriverStage
from equi_control.promotion.promotion import PromotionRefused
from equi_control.rtde.config import LinkError
from equi_core.motion.safety import StepCommand
from equi_ros import qos
from equi_ros.diagnostics import Health
from equi_ros.lifecycle.managed_node import ManagedNode, TransitionRefused
from equi_ros.parameters import declare
from equi_ros.publisher_guard import PublisherGuard
from equi_ros.run_node import run_node
from equi_ros.stamps import nanoseconds, time_message

_POLL_PERIOD_S = 0.01
_RESET_TIMEOUT_S = 30.0
_TAKE_OVER_TIMEOUT_S = 30.0
_FEEDBACK_PERIOD_S = 0.1
_HOME_TOLERANCE_M = 0.002


class RtdeDriverNode(ManagedNode):
    """Callbacks convert, call the driver, convert back."""

    refusals = (ValueError, LinkError, Refused, PromotionRefused)

    def __init__(self) -> None:
        super().__init__("rtde_driver")
        declare_parameters(partial(declare, self))
        declare(self, "frame_prefix", "", "in front of every frame name in the headers")
        self._stage = DriverStage(partial(declare, self))
        self._driver: AnyDriver | None = None
        self._polls: list[Timer] = []
        self._frame_id = ""
        self._executed = self.create_publisher(ExecutedCommand, "executed_command", qos.EXECUTED)
        self._states = self.create_publisher(RobotState, "robot_state", qos.ROBOT_STATE)
        self._safety = self.create_publisher(SafetyStatus, "safety_status", qos.LATCHED)
        self._joints = self.create_publisher(JointState, "joint_states", qos.JOINT_STATES)
        self._poses = self.create_publisher(PoseStamped, "tcp_pose", qos.ROBOT_STATE)
        self._published_status: Any = None
        self._guard = PublisherGuard(self)
        for publisher in (self._executed, self._states, self._safety):
            self._guard.claim(publisher)
        self._guard.subscribe(
            DeltaCommand, "delta_command", self._on_command, qos.COMMAND, publisher="policy"
        )
        self._create_services()
        self.diagnostics.add(self._health)

    @property
    def driver(self) -> AnyDriver:
        """The driver; exists while the node is configured.

        Raises:
            Refused: it is not.
        """
        if self._driver is None:
            raise Refused(
                "the driver is not configured: ros2 lifecycle set "
                f"{self.get_fully_qualified_name()} configure"
            )
        return self._driver

    # Lifecycle -----------------------------------------------------------------------------------

    async def configure(self) -> None:
        """Connect to robot and gripper; refused if the controller does not answer.

        A robot that answers but is not ready (emergency stop, no power) is no reason: the fault is
        latched and reported, and an operator resets it before activating.
        """
        config, rate_hz = read_config(partial(declare, self))
        self._stage = DriverStage(partial(declare, self))
        driver = self._driver = self._stage.make_driver(config)
        prefix = self.get_parameter("frame_prefix").value
        self._frame_id = f"{prefix}{config.servo.link.geometry.frame_id}"
        self._published_status = None
        self.diagnostics.hardware_id = f"UR controller {config.servo.link.host}"
        driver.connect()
        self._polls = [
            self.create_timer(_POLL_PERIOD_S, self._poll),
            self.create_timer(1.0 / rate_hz, self._publish_state),
        ]
        await self._wait_for_robot(driver)
        if driver.fault is not None and driver.fault.code is FaultCode.CONNECTION_LOST:
            raise TransitionRefused(f"{driver.fault.reason}; {driver.fault.operator_action}")

    async def activate(self) -> None:
        """Take over the arm where it is; refused while a fault is latched."""
        driver = self.driver
        await self._wait_for_robot(driver)
        driver.activate()
        await self.waiter.until(lambda: not driver.activating, _TAKE_OVER_TIMEOUT_S)
        if driver.activating or driver.state in (DriverState.IDLE, DriverState.FAULT):
            reason = driver.fault.reason if driver.fault else driver.notice
            self._report(driver.deactivate())
            raise TransitionRefused(
                reason or f"the arm was not taken over within {_TAKE_OVER_TIMEOUT_S:g} s"
            )

    def deactivate(self) -> None:
        """Stop the arm and let go of it."""
        self._report(self.driver.deactivate())

    def cleanup(self) -> None:
        """Stop the arm and end every connection."""
        for timer in self._polls:
            self.destroy_timer(timer)
        self._polls = []
        if self._driver is not None:
            driver, self._driver = self._driver, None
            driver.close()

    async def _wait_for_robot(self, driver: AnyDriver) -> None:
        """Wait until the robot is connected, or a fault says why it is not."""
        await self.waiter.until(
            lambda: driver.fault is not None or driver.ready_to_activate,
            driver.config.connect_timeout_s + 1.0,
        )

    # In ------------------------------------------------------------------------------------------

    def _on_command(self, message: DeltaCommand) -> None:
        if self._driver is None:
            self.get_logger().warning(
                "a command was dropped: the driver is not configured", throttle_duration_sec=2.0
            )
            return
        step = message.translation
        self._report(
            self.driver.submit(
                StepCommand(
                    episode_id=message.episode_id,
                    step_index=int(message.step_index),
                    closedness=message.gripper_closedness,
                    step_m=(step.x, step.y, step.z),
                    yaw_rad=message.yaw_rad,
                    age_s=self._age_s(message.header.stamp),
                    observation_age_s=self._age_s(message.observation_stamp),
                    tag=message,
                )
            )
        )
        self._publish_state()

    def _create_services(self) -> None:
        actions: dict[str, Callable[[], object]] = {
            "hold": lambda: self._report(self.driver.hold()),
            "resume": lambda: self.driver.resume(),
            "stop_motion": lambda: self._report(self.driver.stop_motion()),
            "open_gripper": lambda: self.driver.open_gripper(),
        }
        for name, action in actions.items():
            self.create_service(Trigger, f"~/{name}", self._trigger(action))
        self.create_service(ResetEpisode, "~/reset_episode", self._on_reset_episode)
        # Groups of their own: while they wait for the robot, everything else goes on.
        self.create_service(
            ResetFault,
            "~/reset_fault",
            self._on_reset_fault,
            callback_group=ReentrantCallbackGroup(),
        )
        ActionServer(
            self,
            GoHome,
            "~/go_home",
            execute_callback=self._go_home,
            goal_callback=lambda goal: GoalResponse.ACCEPT,
            cancel_callback=lambda goal: CancelResponse.ACCEPT,
        )

    @staticmethod
    def _trigger(
        action: Callable[[], object],
    ) -> Callable[[Trigger.Request, Trigger.Response], Trigger.Response]:
        def answer(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            try:
                action()
                response.success = True
            except Refused as refusal:
                response.message = str(refusal)
            return response

        return answer

    def _on_reset_episode(
        self, request: ResetEpisode.Request, response: ResetEpisode.Response
    ) -> ResetEpisode.Response:
        try:
            self._report(self.driver.stop_motion())
            self.driver.begin_episode(request.episode_id)
            response.accepted = True
        except Refused as refusal:
            response.message = str(refusal)
        return response

    async def _on_reset_fault(
        self, request: ResetFault.Request, response: ResetFault.Response
    ) -> ResetFault.Response:
        latched = None if self._driver is None else self._driver.fault
        self.get_logger().info(
            f"reset of fault {request.acknowledged.value} (fault_count {request.fault_count}) by "
            f"'{request.operator_name}'"
            + ("" if latched is None else f"; latched is {latched.reason}")
        )
        if not request.operator_name.strip():
            response.message = "operator_name is empty; say who has looked at the robot"
            response.state = DriverStateMsg(value=int(self.driver.state))
            return response
        try:
            driver = self.driver
            driver.begin_reset(
                _fault_code(int(request.acknowledged.value)), int(request.fault_count)
            )
            await self.waiter.until(lambda: not driver.resetting, _RESET_TIMEOUT_S)
            # A reset that nobody waits for any more must not clear the fault later by itself.
            missing = driver.abort_reset()
            response.success = driver.state is not DriverState.FAULT
            fault = driver.fault
            if missing and fault is not None:
                response.message = (
                    f"aborted after {_RESET_TIMEOUT_S:g} s, {missing}; see to it and reset again "
                    f"(latched: {fault.reason}; {fault.operator_action})"
                )
            elif fault is not None:
                response.message = f"{fault.reason}; {fault.operator_action}"
            else:
                response.message = (
                    "reset; the driver is inactive and nothing moves: activate it to go on from "
                    "where the arm is"
                )
        except Refused as refusal:
            response.message = str(refusal)
        state = DriverState.IDLE if self._driver is None else self._driver.state
        response.state = DriverStateMsg(value=int(state))
        return response

    async def _go_home(self, goal: Any) -> GoHome.Result:
        """Go home; the goal ends when the arm rests there, was stopped or cannot go on."""
        result = GoHome.Result()
        try:
            driver = self.driver
            driver.go_home()
        except Refused as refusal:
            goal.abort()
            result.message = str(refusal)
            return result
        while driver.homing:
            if goal.is_cancel_requested:
                self._report(driver.stop_motion())
                goal.canceled()
                result.message = "stopped on the way"
                return result
            goal.publish_feedback(GoHome.Feedback(distance_m=driver.distance_from_home_m))
            await self.waiter.until(
                lambda: not driver.homing or goal.is_cancel_requested, _FEEDBACK_PERIOD_S
            )
        at_home = driver.distance_from_home_m < _HOME_TOLERANCE_M
        result.success = driver.state is DriverState.HOLD and at_home
        if result.success:
            goal.succeed()
        else:
            goal.abort()
            result.message = driver.fault.reason if driver.fault else "did not arrive"
        return result

    # Out -----------------------------------------------------------------------------------------

    def _poll(self) -> None:
        driver = self.driver
        self._report(driver.poll())
        if self._guard.problems():
            # Somebody else commands or speaks for this driver: stop first, the guard has said who.
            self._report(driver.stop_motion())
        now = (
            driver.state,
            driver.fault,
            driver.notice,
            driver.episode_id,
            driver.speed_in_steps_of_5_percent,
        )
        if now != self._published_status:
            self._published_status = now
            status = messages.safety_status(driver, self._stamp(), self._frame_id)
            status.reasons = [*status.reasons, *filter(None, [self._stage.notice])]
            self._safety.publish(status)
            self._stage.saw((), driver.fault_count)
        if driver.state is DriverState.FAULT and self.is_active and self.executor is not None:
            # The arm was let go: whoever wants it back resets the fault and activates again.
            self.executor.create_task(self.change_state(Transition.TRANSITION_DEACTIVATE))

    def _publish_state(self) -> None:
        servo = self.driver.servo_state
        if servo is None:
            return
        # The time of measurement: after a loss the last state grows old, as it should.
        stamp = self._stamp_of(servo.heartbeat_s - servo.state_age_s)
        state = messages.robot_state(self.driver, stamp, self._frame_id)
        if state is not None:
            self._states.publish(state)
            self._joints.publish(messages.joint_state(servo, state.gripper_opening, stamp))
            self._poses.publish(messages.tcp_pose(servo, stamp, self._frame_id))

    def _health(self) -> Health | None:
        return None if self._driver is None else messages.health(self._driver)

    def _report(self, reports: list[StepReport]) -> None:
        self._stage.saw(reports, self.driver.fault_count if self._driver is not None else 0)
        for report in reports:
            stamps = (
                self._stamp_of(report.ended_s),
                self._stamp_of(report.received_s),
                self._stamp_of(report.motion_start_s),
            )
            self._executed.publish(messages.executed_command(report, stamps, self._frame_id))
            for reason in report.reasons:
                self.get_logger().info(f"step {report.command.step_index}: {reason}")

    # Time ----------------------------------------------------------------------------------------

    def _stamp(self) -> Time:
        return self.get_clock().now().to_msg()

    def _stamp_of(self, monotonic_s: float) -> Time:
        ago_ns = round((time.monotonic() - monotonic_s) * 1e9)
        return time_message(self.get_clock().now().nanoseconds - ago_ns)

    def _age_s(self, stamp: Time) -> float:
        return (self.get_clock().now().nanoseconds - nanoseconds(stamp)) / 1e9

    def release(self) -> None:
        """Stop the arm before leaving the graph, whatever the reason."""
        self.cleanup()

    def destroy_node(self) -> None:
        """Stop the arm, if nobody has done so yet, and leave the graph."""
        self.release()
        super().destroy_node()


def _fault_code(number: int) -> FaultCode:
    try:
        return FaultCode(number)
    except ValueError as error:
        known = ", ".join(f"{code.value} {code.name}" for code in FaultCode)
        raise Refused(f"acknowledged is {number}; known faults: {known}") from error


def main(args: list[str] | None = None) -> int:
    """Entry point of the node."""
    return run_node("rtde_driver", RtdeDriverNode, args, refusals=(ValueError,))


if __name__ == "__main__":
    sys.exit(main())
