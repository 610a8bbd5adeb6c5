# SPDX-License-Identifier: MIT
"""The RunEpisode action over real ROS, with a referee that never answers."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from families import wait_until

from equi_core.contract import PolicyContract

pytestmark = [pytest.mark.ros, pytest.mark.timeout(300)]
PATIENCE_S = 60.0
NOBODY = (
    "home_action",
    "open_service",
    "stop_service",
    "driver_reset_service",
    "perception_reset_service",
)
FAULTED, STOPPED, REFUSED = 2, 5, 6


class StillPolicy:
    """Never sees anything, so never acts."""

    contract = PolicyContract(task="block_picking")

    def initial_state(self) -> None:
        return None


@pytest.fixture
def driver() -> SimpleNamespace:
    """The driver's state, as the test tells it: the name of one in DriverState.msg."""
    return SimpleNamespace(state="HOLD")


@pytest.fixture
def node(ros_probe: Any, driver: SimpleNamespace) -> Iterator[Any]:
    """A policy node whose arm is held still by the test, and whose referee is deaf."""
    import rclpy
    from equi_interfaces.msg import DriverState, RobotState
    from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
    from std_srvs.srv import Trigger

    from equi_policy.policy_node import PolicyNode
    from equi_ros import qos

    words = [word for name in NOBODY for word in ("-p", f"{name}:=''")]
    # No observation ever comes; that must not end an episode before the test does.
    words += ["-p", f"observation_timeout_s:={10 * PATIENCE_S}"]
    for topic in ("robot_state", "safety_status", "executed_command", "observation"):
        words += ["-p", f"publishers.{topic}:=test_probe"]
    rclpy.init(args=["--ros-args", *words, "-p", "success_service:=/referee/check_success"])

    class StillNode(PolicyNode):
        def load_policy(self) -> Any:
            return StillPolicy()

    node = StillNode()
    # On the graph, but in no executor: it takes requests and never answers.
    deaf = rclpy.create_node("referee", context=ros_probe.node.context)
    deaf.create_service(Trigger, "~/check_success", lambda request, response: response)
    states = ros_probe.node.create_publisher(RobotState, "/robot_state", qos.ROBOT_STATE)

    def hold_still() -> None:
        value = getattr(DriverState, driver.state)
        state = RobotState(state=DriverState(value=value))
        state.header.stamp = ros_probe.node.get_clock().now().to_msg()
        states.publish(state)

    ros_probe.node.create_timer(0.02, hold_still)
    executor = SingleThreadedExecutor()
    executor.add_node(node)

    def spin() -> None:
        with contextlib.suppress(ExternalShutdownException):
            executor.spin()

    thread = threading.Thread(target=spin, daemon=True)
    thread.start()
    for transition in ("configure", "activate"):
        assert ros_probe.change_state("/policy", transition)
    yield node
    executor.shutdown()
    rclpy.try_shutdown()
    thread.join(timeout=5.0)
    node.destroy_node()
    deaf.destroy_node()


@pytest.fixture
def awaiting_referee(node: Any, ros_probe: Any) -> Any:
    """An episode that waits for the referee's answer: its goal handle and a way to its outcome."""
    from equi_interfaces.action import RunEpisode
    from rclpy.action import ActionClient

    client = ActionClient(ros_probe.node, RunEpisode, "/policy/run_episode")
    wait_until(client.server_is_ready, PATIENCE_S, "the RunEpisode action")
    sent = client.send_goal_async(RunEpisode.Goal(episode_id="refereed"))
    wait_until(sent.done, PATIENCE_S, "the goal is accepted")
    handle = sent.result()
    result = handle.get_result_async()
    wait_until(
        lambda: node.session.episode_id == "refereed" and node.episodes.may_act(),
        PATIENCE_S,
        "the episode runs",
    )

    def asks_the_referee() -> bool:
        node.episodes.after_step()
        return not node.episodes.may_act()

    wait_until(asks_the_referee, PATIENCE_S, "the referee is asked")

    def outcome() -> int:
        wait_until(result.done, PATIENCE_S, "the episode ends")
        return int(result.result().result.outcome)

    return SimpleNamespace(handle=handle, outcome=outcome)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The referee is waited for as long as the test may take."""
    monkeypatch.setattr("equi_policy.ros_episode_server._REFEREE_TIMEOUT_S", 1e6)


def test_a_fault_ends_the_episode_while_the_referee_thinks(
    patient: None, awaiting_referee: Any, ros_probe: Any
) -> None:
    from equi_interfaces.msg import DriverState, SafetyStatus

    from equi_ros import qos

    status = SafetyStatus(state=DriverState(value=DriverState.FAULT), reasons=["a red button"])
    ros_probe.node.create_publisher(SafetyStatus, "/safety_status", qos.LATCHED).publish(status)

    assert awaiting_referee.outcome() == FAULTED


def test_a_request_to_stop_ends_the_episode_while_the_referee_thinks(
    patient: None, awaiting_referee: Any
) -> None:
    awaiting_referee.handle.cancel_goal_async()

    assert awaiting_referee.outcome() == STOPPED


def test_a_referee_that_does_not_answer_is_given_up_and_the_episode_goes_on(
    monkeypatch: pytest.MonkeyPatch, node: Any, awaiting_referee: Any
) -> None:
    monkeypatch.setattr("equi_policy.ros_episode_server._REFEREE_TIMEOUT_S", 0.2)

    wait_until(node.episodes.may_act, PATIENCE_S, "the policy may act again")

    awaiting_referee.handle.cancel_goal_async()
    assert awaiting_referee.outcome() == STOPPED


@pytest.fixture
def running(node: Any, ros_probe: Any) -> Any:
    """An episode that runs and has nothing to act on yet."""
    from equi_interfaces.action import RunEpisode
    from rclpy.action import ActionClient

    client = ActionClient(ros_probe.node, RunEpisode, "/policy/run_episode")
    wait_until(client.server_is_ready, PATIENCE_S, "the RunEpisode action")

    def run(episode_id: str) -> Any:
        sent = client.send_goal_async(RunEpisode.Goal(episode_id=episode_id))
        wait_until(sent.done, PATIENCE_S, "the goal is accepted")
        return sent.result().get_result_async()

    result = run("guarded")
    wait_until(lambda: node.session.episode_id == "guarded", PATIENCE_S, "the episode runs")
    return SimpleNamespace(result=result, run=run)


def ended(result: Any) -> Any:
    wait_until(result.done, PATIENCE_S, "the episode ends")
    return result.result().result


@pytest.mark.parametrize("topic", ["delta_command", "observation"])
def test_a_second_publisher_ends_the_episode_by_name_and_none_begins_beside_it(
    topic: str, node: Any, running: Any, ros_probe: Any
) -> None:
    import rclpy
    from equi_interfaces.msg import DeltaCommand, Observation

    from equi_ros import qos

    kind = {"delta_command": DeltaCommand, "observation": Observation}[topic]
    ros_probe.node.create_publisher(Observation, "/observation", qos.OBSERVATION)
    stranger = rclpy.create_node("stranger", context=ros_probe.node.context)
    stranger.create_publisher(kind, f"/{topic}", qos.OBSERVATION)
    try:
        first = ended(running.result)
        again = ended(running.run("beside"))
    finally:
        stranger.destroy_node()

    assert first.outcome == STOPPED
    assert f"second_publisher: 2 publishers on /{topic}" in first.reason
    assert again.outcome == REFUSED
    assert "stranger" in again.reason


@pytest.mark.parametrize(
    ("state", "words"),
    [("IDLE", "nothing may move before somebody activates it"), ("PAUSED", "paused the arm")],
)
def test_an_arm_that_waits_for_a_person_ends_the_episode_and_no_other_wakes_it(
    state: str, words: str, driver: SimpleNamespace, running: Any
) -> None:
    driver.state = state

    first = ended(running.result)
    again = ended(running.run("uninvited"))

    assert first.outcome == STOPPED
    assert again.outcome == REFUSED
    assert words in first.reason
    assert words in again.reason


def test_reports_that_mean_nothing_are_dropped_and_counted_and_the_node_lives(
    node: Any, running: Any, ros_probe: Any
) -> None:
    from equi_interfaces.msg import ExecutedCommand

    from equi_ros import qos

    reports = ros_probe.node.create_publisher(ExecutedCommand, "/executed_command", qos.EXECUTED)
    wait_until(lambda: reports.get_subscription_count() > 0, PATIENCE_S, "the policy listens")
    nonsense = ExecutedCommand(yaw_rad=float("nan"))
    from_the_future = ExecutedCommand()
    from_the_future.header.stamp.sec = 2**31 - 1
    for message in (nonsense, from_the_future):
        message.requested.episode_id = "guarded"
        reports.publish(message)

    wait_until(
        lambda: node.guard.counts().get("dropped /executed_command malformed") == "2",
        PATIENCE_S,
        "both are dropped",
    )
    assert node.session.episode_id == "guarded"
