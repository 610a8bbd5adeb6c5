# SPDX-License-Identifier: MIT
"""The driver node over real ROS: topics, services and the action, on the emulated robot."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from ur_emulator.launching import EmulatorProcess

pytestmark = [pytest.mark.ros, pytest.mark.timeout(300)]
PATIENCE_S = 90.0


@pytest.fixture
def emulator() -> Iterator[EmulatorProcess]:
    with EmulatorProcess() as running:
        yield running


@pytest.fixture
def driver_node(emulator: EmulatorProcess, ros_domain_id: int, processes: Any) -> Any:
    """The node on the emulated robot, with ages wide enough for a loaded machine."""
    parameters = {
        "robot_ip": emulator.address,
        "link.watchdog_hz": 1.0,
        "servo.max_state_age_s": 30.0,
        "servo_silence_s": 30.0,
        "connect_timeout_s": PATIENCE_S,
        "limits.max_command_age_s": 30.0,
        "limits.max_state_age_s": 30.0,
        "max_command_observation_age_s": 30.0,
        "publishers.delta_command": "test_probe",
        "frame_prefix": "left_",
    }
    words = [word for name, value in parameters.items() for word in ("-p", f"{name}:={value}")]
    return processes.start(
        [sys.executable, "-m", "equi_control.rtde_driver_node", "--ros-args", *words],
        {"ROS_DOMAIN_ID": str(ros_domain_id)},
    )


@pytest.fixture
def robot(driver_node: Any, ros_probe: Any) -> RobotOverRos:
    assert ros_probe.change_state("/rtde_driver", "configure", PATIENCE_S), driver_node.output
    return RobotOverRos(ros_probe, driver_node)


class RobotOverRos:
    """A client of the driver, as the policy and an operator are."""

    def __init__(self, probe: Any, process: Any) -> None:
        from equi_interfaces.msg import DeltaCommand, ExecutedCommand

        from equi_ros import qos

        self.probe = probe
        self.process = process
        self.executed: list[Any] = []
        self._commands = probe.node.create_publisher(DeltaCommand, "/delta_command", qos.COMMAND)
        probe.node.create_subscription(
            ExecutedCommand, "/executed_command", self.executed.append, qos.EXECUTED
        )

    def state(self, wanted: Callable[[Any], bool]) -> Any:
        from equi_interfaces.msg import RobotState

        from equi_ros import qos

        return self.probe.wait_for_message(
            RobotState, "/robot_state", wanted, PATIENCE_S, qos.ROBOT_STATE
        )

    def safety(self, wanted: Callable[[Any], bool]) -> Any:
        from equi_interfaces.msg import SafetyStatus

        from equi_ros import qos

        return self.probe.wait_for_message(
            SafetyStatus, "/safety_status", wanted, PATIENCE_S, qos.LATCHED
        )

    def trigger(self, name: str) -> Any:
        from std_srvs.srv import Trigger

        return self.probe.call(Trigger, f"/rtde_driver/{name}", Trigger.Request(), PATIENCE_S)

    def take_over(self) -> None:
        self.transition("activate")
        self.state(lambda state: state.state.value == 2)

    def transition(self, name: str) -> None:
        done = self.probe.change_state("/rtde_driver", name, PATIENCE_S)
        assert done, f"{name}: {self.process.output}"

    def begin_episode(self, name: str) -> None:
        from equi_interfaces.srv import ResetEpisode

        request = ResetEpisode.Request(episode_id=name)
        answer = self.probe.call(ResetEpisode, "/rtde_driver/reset_episode", request, PATIENCE_S)
        assert answer.accepted

    def command(self, episode: str, index: int, step: tuple[float, float, float]) -> Any:
        """Send one step and return what the driver reports on it."""
        from equi_interfaces.msg import DeltaCommand
        from families import wait_until

        message = DeltaCommand(episode_id=episode, step_index=index)
        message.header.stamp = self.probe.node.get_clock().now().to_msg()
        message.observation_stamp = message.header.stamp
        message.translation.x, message.translation.y, message.translation.z = step
        known = len(self.executed)
        wait_until(
            lambda: self._commands.get_subscription_count() > 0, PATIENCE_S, "the driver listens"
        )
        self._commands.publish(message)
        wait_until(lambda: len(self.executed) > known, PATIENCE_S, "the report on a command")
        return self.executed[-1]

    def go_home(self) -> Any:
        from equi_interfaces.action import GoHome
        from families import wait_until
        from rclpy.action import ActionClient

        client = ActionClient(self.probe.node, GoHome, "/rtde_driver/go_home")
        wait_until(client.server_is_ready, PATIENCE_S, "the go_home action")
        sent = client.send_goal_async(GoHome.Goal())
        wait_until(sent.done, PATIENCE_S, "the goal is accepted")
        result = sent.result().get_result_async()
        wait_until(result.done, PATIENCE_S, "the arm is home")
        return result.result().result


def test_a_policy_can_drive_the_arm_over_ros_and_a_fault_latches_until_reset(
    robot: RobotOverRos, emulator: EmulatorProcess
) -> None:
    from equi_interfaces.msg import FaultCode
    from equi_interfaces.srv import ResetFault
    from families import wait_until

    # Nothing moves before it is asked to: a command before activation is refused.
    robot.state(lambda state: state.state.value == 0)
    refused = robot.command("", 0, (0.05, 0.0, 0.0))
    assert refused.outcome == 2
    assert refused.reasons[0].startswith("not_active")

    robot.take_over()
    home = robot.go_home()
    assert home.success, home.message
    robot.begin_episode("first")
    done = robot.command("first", 0, (0.03, -0.02, 0.01))
    assert done.outcome == 0, done.reasons
    moved = [
        getattr(done.end_pose.position, axis) - getattr(done.start_pose.position, axis)
        for axis in "xyz"
    ]
    np.testing.assert_allclose(moved, (0.03, -0.02, 0.01), atol=2e-3)
    state = robot.state(lambda state: state.executed_steps == 1)
    assert state.episode_id == "first"
    assert state.gripper_connected
    assert state.tcp_pose.position.x == pytest.approx(0.53, abs=2e-3)
    assert len(state.joint_positions) == 6
    # Two cells may share a tree of frames.
    assert {done.header.frame_id, state.header.frame_id} == {"left_base_link"}

    not_a_number = robot.command("first", 1, (float("nan"), 0.0, 0.0))
    assert not_a_number.outcome == 2
    assert not_a_number.reasons[0].startswith("not_finite")

    emulator.api.request("emergency_stop")
    status = robot.safety(lambda status: status.state.value == 3)
    assert status.fault.value == FaultCode.EMERGENCY_STOP
    assert "release the button" in status.operator_action
    assert status.header.frame_id == "left_base_link"
    # The arm was let go; it is not taken over again before the fault is reset.
    wait_until(
        lambda: robot.probe.lifecycle_state("/rtde_driver") == "inactive", PATIENCE_S, "inactive"
    )
    assert not robot.probe.change_state("/rtde_driver", "activate", PATIENCE_S)

    # A reset while the button is down changes nothing.
    nameless = ResetFault.Request()
    nameless.acknowledged.value = FaultCode.EMERGENCY_STOP
    answer = robot.probe.call(ResetFault, "/rtde_driver/reset_fault", nameless, PATIENCE_S)
    assert not answer.success
    assert "say who" in answer.message

    # Another fault than the latched one, and a number that is none: told what is latched, and what
    # to do about it.
    for number, words in ((FaultCode.GRIPPER, "release the button"), (77, "known faults: 0 NONE")):
        other = ResetFault.Request(operator_name="test")
        other.acknowledged.value = number
        answer = robot.probe.call(ResetFault, "/rtde_driver/reset_fault", other, PATIENCE_S)
        assert not answer.success
        assert words in answer.message

    request = ResetFault.Request(operator_name="test")
    request.acknowledged.value = FaultCode.EMERGENCY_STOP
    request.fault_count = status.fault_count
    answer = robot.probe.call(ResetFault, "/rtde_driver/reset_fault", request, PATIENCE_S)
    assert not answer.success
    assert "release the button" in answer.message
    status = robot.safety(lambda status: status.fault_count == 2)
    assert status.fault.value == FaultCode.EMERGENCY_STOP

    # What was acknowledged is not what is latched now, although it has the same code.
    answer = robot.probe.call(ResetFault, "/rtde_driver/reset_fault", request, PATIENCE_S)
    assert not answer.success
    assert "fault_count 1 was acknowledged, but 2 is latched" in answer.message


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ((), "refused to configure: robot address is empty"),
        (("robot_ip:=127.0.0.1", "limits.max_speed_m_s:=-1.0"), "max_speed_m_s"),
        (("robot_ip:=127.0.0.97", "connect_timeout_s:=0.5"), "no connection to 127.0.0.97"),
    ],
)
def test_what_cannot_be_configured_is_refused_in_one_sentence_and_can_be_mended(
    ros_domain_id: int, processes: Any, ros_probe: Any, parameters: tuple[str, ...], words: str
) -> None:
    given = [word for parameter in parameters for word in ("-p", parameter)]
    node = processes.start(
        [sys.executable, "-m", "equi_control.rtde_driver_node", "--ros-args", *given],
        {"ROS_DOMAIN_ID": str(ros_domain_id)},
    )

    assert not ros_probe.change_state("/rtde_driver", "configure", PATIENCE_S)
    node.wait_for_text(words)
    assert "Traceback" not in node.output
    assert ros_probe.lifecycle_state("/rtde_driver") == "unconfigured"
    # An impossible request does not end the process either.
    assert not ros_probe.change_state("/rtde_driver", "activate", PATIENCE_S)
    assert node.is_running


def test_the_arm_is_let_go_and_taken_over_again_by_transitions(robot: RobotOverRos) -> None:
    robot.take_over()
    robot.transition("deactivate")
    robot.state(lambda state: state.state.value == 0)
    refused = robot.command("", 0, (0.05, 0.0, 0.0))
    assert refused.reasons[0].startswith("not_active")
    robot.take_over()
    for transition in ("deactivate", "cleanup", "configure", "activate", "shutdown"):
        robot.transition(transition)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_node_in_order(
    robot: RobotOverRos, driver_node: Any, number: signal.Signals
) -> None:
    robot.state(lambda state: True)

    driver_node.signal_alone(number)

    assert driver_node.wait_for_exit(PATIENCE_S) == 0
    assert "Traceback" not in driver_node.output


def test_a_fault_is_on_rosout_and_a_reset_that_waits_holds_nothing_else_up(
    robot: RobotOverRos, emulator: EmulatorProcess
) -> None:
    from equi_interfaces.msg import FaultCode, RobotState
    from equi_interfaces.srv import ResetFault
    from families import wait_until
    from rcl_interfaces.msg import Log
    from rclpy.qos import qos_profile_system_default

    from equi_ros import qos

    node, lines, states = robot.probe.node, [], []
    node.create_subscription(Log, "/rosout", lines.append, qos_profile_system_default)
    node.create_subscription(RobotState, "/robot_state", states.append, qos.ROBOT_STATE)
    robot.take_over()
    emulator.api.request("refuse", service="gripper", on=True)
    emulator.api.request("cut", service="gripper")
    status = robot.safety(lambda status: status.fault.value == FaultCode.GRIPPER)
    wait_until(
        lambda: any("rtde_driver" in it.name and "FAULT gripper" in it.msg for it in lines),
        PATIENCE_S,
        "the fault on /rosout",
    )

    client = node.create_client(ResetFault, "/rtde_driver/reset_fault")
    request = ResetFault.Request(operator_name="test", fault_count=status.fault_count)
    request.acknowledged.value = FaultCode.GRIPPER
    answer = client.call_async(request)
    wait_until(lambda: any("by 'test'" in it.msg for it in lines), PATIENCE_S, "reset begun")
    known = len(states)
    assert not robot.trigger("open_gripper").success, "nothing moves while a fault is latched"
    wait_until(lambda: len(states) > known + 10, PATIENCE_S, "states go on")
    assert not answer.done(), "the gripper is still away: the reset waits"

    emulator.api.request("refuse", service="gripper", on=False)
    wait_until(answer.done, PATIENCE_S, "the gripper is back")
    assert answer.result().success, answer.result().message


def test_while_a_stranger_publishes_commands_nobodys_is_executed(robot: RobotOverRos) -> None:
    import rclpy
    from equi_interfaces.msg import DeltaCommand
    from families import wait_until

    from equi_ros import qos

    robot.take_over()
    robot.begin_episode("guarded")
    stranger = rclpy.create_node("stranger", context=robot.probe.node.context)
    commands = stranger.create_publisher(DeltaCommand, "/delta_command", qos.COMMAND)
    wait_until(lambda: commands.get_subscription_count() > 0, PATIENCE_S, "the driver listens")
    foreign = DeltaCommand(episode_id="guarded", step_index=0)
    foreign.header.stamp = stranger.get_clock().now().to_msg()
    foreign.observation_stamp = foreign.header.stamp
    foreign.translation.x = 0.05
    for _ in range(700):
        commands.publish(foreign)
    robot.state(lambda state: True)
    assert not robot.executed, "a foreign command is neither executed nor answered"
    stranger.destroy_node()

    # The driver learns of his departure a moment later than the test: what it drops until then has
    # no answer, so the expected publisher repeats its step until there is one.
    own = DeltaCommand(episode_id="guarded", step_index=0)
    own.translation.z = -0.03

    def executed() -> list[Any]:
        own.header.stamp = robot.probe.node.get_clock().now().to_msg()
        own.observation_stamp = own.header.stamp
        robot._commands.publish(own)
        return [report for report in robot.executed if report.outcome != 2]  # repeats: REJECTED

    wait_until(executed, PATIENCE_S, "the expected publisher is heard again")
    assert all(report.requested.translation.x == 0.0 for report in robot.executed)
    assert executed()[0].outcome == 0, executed()[0].reasons
