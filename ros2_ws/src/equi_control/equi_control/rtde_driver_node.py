# SPDX-License-Identifier: MIT
"""`rtde_driver_node`: wires the driver to ROS; decides nothing itself.

In: `delta_command`. Out: `robot_state`, `executed_command`, `safety_status` (latched),
`joint_states`, `tcp_pose`, `diagnostics`. Services: `~/activate`, `~/deactivate`, `~/hold`,
`~/go_home`, `~/open_gripper`, `~/reset_episode`, `~/reset_fault`. Action: `~/go_home`.
Nothing moves before `~/activate`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import rclpy
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
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
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from equi_control import messages
from equi_control.driver.driver import Driver, Refused
from equi_control.driver.state import DriverState, FaultCode
from equi_control.driver.steps import StepReport
from equi_control.parameters import read_config
from equi_control.rtde.config import LinkError
from equi_core.motion.safety import StepCommand
from equi_ros import qos
from equi_ros.diagnostics import PERIOD_S as DIAGNOSTICS_PERIOD_S
from equi_ros.publisher_guard import PublisherGuard
from equi_ros.run_node import run_node
from equi_ros.stamps import nanoseconds, time_message

_POLL_PERIOD_S = 0.01
_RESET_TIMEOUT_S = 30.0
_HOME_TOLERANCE_M = 0.002


class RtdeDriverNode(Node):
    """Callbacks convert, call the driver, convert back."""

    def __init__(self) -> None:
        super().__init__("rtde_driver")
        config, rate_hz = read_config(self._declare)
        self.driver = Driver(config)
        self._frame_id = messages.frame_of(self.driver)
        self._executed = self.create_publisher(ExecutedCommand, "executed_command", qos.EXECUTED)
        self._states = self.create_publisher(RobotState, "robot_state", qos.ROBOT_STATE)
        self._safety = self.create_publisher(SafetyStatus, "safety_status", qos.LATCHED)
        self._joints = self.create_publisher(JointState, "joint_states", qos.JOINT_STATES)
        self._poses = self.create_publisher(PoseStamped, "tcp_pose", qos.ROBOT_STATE)
        self._diagnostics = self.create_publisher(DiagnosticArray, "diagnostics", qos.DIAGNOSTICS)
        self._published_status: Any = None
        self._home_goal: Any = None
        self._guard = PublisherGuard(self)
        for publisher in (self._executed, self._states, self._safety):
            self._guard.claim(publisher)
        self._guard.subscribe(
            DeltaCommand, "delta_command", self._on_command, qos.COMMAND, publisher="policy"
        )
        self._create_services()
        self.driver.connect()
        self.create_timer(_POLL_PERIOD_S, self._poll)
        self.create_timer(1.0 / rate_hz, self._publish_state)
        self.create_timer(DIAGNOSTICS_PERIOD_S, self._publish_diagnostics)

    # In ------------------------------------------------------------------------------------------

    def _on_command(self, message: DeltaCommand) -> None:
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
            "activate": self.driver.activate,
            "deactivate": lambda: self._report(self.driver.deactivate()),
            "hold": lambda: self._report(self.driver.hold()),
            "go_home": self.driver.go_home,
            "open_gripper": self.driver.open_gripper,
        }
        for name, action in actions.items():
            self.create_service(Trigger, f"~/{name}", self._trigger(action))
        self.create_service(ResetEpisode, "~/reset_episode", self._on_reset_episode)
        self.create_service(ResetFault, "~/reset_fault", self._on_reset_fault)
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
            if self.driver.state is DriverState.ACTIVE:
                self._report(self.driver.hold())
            self.driver.begin_episode(request.episode_id)
            response.accepted = True
        except Refused as refusal:
            response.message = str(refusal)
        return response

    def _on_reset_fault(
        self, request: ResetFault.Request, response: ResetFault.Response
    ) -> ResetFault.Response:
        self.get_logger().info(
            f"reset of fault {request.acknowledged.value} by '{request.operator_name}'"
        )
        try:
            self.driver.begin_reset(FaultCode(int(request.acknowledged.value)))
            deadline_s = time.monotonic() + _RESET_TIMEOUT_S
            while self.driver.resetting and time.monotonic() < deadline_s:
                self._poll()
                self._publish_state()
                time.sleep(_POLL_PERIOD_S)
            # A reset that nobody waits for any more must not clear the fault later by itself.
            missing = self.driver.abort_reset()
            response.success = self.driver.state is not DriverState.FAULT
            fault = self.driver.fault
            if missing and fault is not None:
                response.message = (
                    f"aborted after {_RESET_TIMEOUT_S:g} s, {missing}; see to it and reset again "
                    f"(latched: {fault.reason}; {fault.operator_action})"
                )
            elif fault is not None:
                response.message = f"{fault.reason}; {fault.operator_action}"
        except (Refused, ValueError) as refusal:
            response.message = str(refusal)
        response.state = DriverStateMsg(value=int(self.driver.state))
        return response

    async def _go_home(self, goal: Any) -> GoHome.Result:
        """The action: as the service, with an end."""
        result = GoHome.Result()
        try:
            self.driver.go_home()
        except Refused as refusal:
            goal.abort()
            result.message = str(refusal)
            return result
        while self.driver.homing:
            if goal.is_cancel_requested:
                self.driver.hold()
                goal.canceled()
                result.message = "stopped on the way"
                return result
            feedback = GoHome.Feedback(distance_m=self.driver.distance_from_home_m)
            goal.publish_feedback(feedback)
            await self._next_poll()
        at_home = self.driver.distance_from_home_m < _HOME_TOLERANCE_M
        result.success = self.driver.state is DriverState.HOLD and at_home
        if result.success:
            goal.succeed()
        else:
            goal.abort()
            result.message = self.driver.fault.reason if self.driver.fault else "did not arrive"
        return result

    def _next_poll(self) -> Any:
        """A future that is done after the next poll of the driver."""
        if self._home_goal is None:
            self._home_goal = rclpy.task.Future()
        return self._home_goal

    # Out -----------------------------------------------------------------------------------------

    def _poll(self) -> None:
        self._report(self.driver.poll())
        driver = self.driver
        if self._guard.problems() and driver.state is DriverState.ACTIVE:
            # Somebody else commands or speaks for this driver: stop first, the guard has said who.
            self._report(driver.hold())
        now = (driver.state, driver.fault, driver.notice, driver.episode_id)
        if now != self._published_status:
            self._published_status = now
            self._safety.publish(messages.safety_status(driver, self._stamp()))
        if self._home_goal is not None:
            waiting, self._home_goal = self._home_goal, None
            waiting.set_result(None)

    def _publish_state(self) -> None:
        servo = self.driver.servo_state
        if servo is None:
            return
        # The time of measurement: after a loss the last state grows old, as it should.
        stamp = self._stamp_of(servo.heartbeat_s - servo.state_age_s)
        state = messages.robot_state(self.driver, stamp)
        if state is not None:
            self._states.publish(state)
            self._joints.publish(messages.joint_state(servo, stamp))
            self._poses.publish(messages.tcp_pose(servo, stamp, self._frame_id))

    def _publish_diagnostics(self) -> None:
        self._diagnostics.publish(messages.diagnostics(self.driver, self._stamp()))

    def _report(self, reports: list[StepReport]) -> None:
        for report in reports:
            stamps = (
                self._stamp_of(report.ended_s),
                self._stamp_of(report.received_s),
                self._stamp_of(report.motion_start_s),
            )
            self._executed.publish(messages.executed_command(report, stamps, self._frame_id))
            for reason in report.reasons:
                self.get_logger().info(f"step {report.command.step_index}: {reason}")

    def _declare(self, name: str, default: Any, description: str) -> Any:
        descriptor = ParameterDescriptor(description=description, read_only=True)
        return self.declare_parameter(name, default, descriptor).value

    # Time ----------------------------------------------------------------------------------------

    def _stamp(self) -> Time:
        return self.get_clock().now().to_msg()

    def _stamp_of(self, monotonic_s: float) -> Time:
        ago_ns = round((time.monotonic() - monotonic_s) * 1e9)
        return time_message(self.get_clock().now().nanoseconds - ago_ns)

    def _age_s(self, stamp: Time) -> float:
        return (self.get_clock().now().nanoseconds - nanoseconds(stamp)) / 1e9

    def destroy_node(self) -> None:
        """Stop the arm before leaving the graph, whatever the reason."""
        self.driver.close()
        super().destroy_node()


def main(args: list[str] | None = None) -> int:
    """Entry point of the node."""
    return run_node("rtde_driver", RtdeDriverNode, args, refusals=(ValueError, LinkError))


if __name__ == "__main__":
    sys.exit(main())
