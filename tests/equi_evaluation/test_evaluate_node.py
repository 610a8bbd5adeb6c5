# SPDX-License-Identifier: MIT
"""Stopping the evaluator stops the arm: whatever ends it, the running episode is cancelled."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from families import wait_until

pytestmark = [pytest.mark.ros, pytest.mark.timeout(300)]
PATIENCE_S = 90.0


class EndlessPolicy:
    """Offers episodes that end only when they are cancelled."""

    def __init__(self, probe: Any) -> None:
        from equi_interfaces.action import RunEpisode
        from rclpy.action import ActionServer, CancelResponse
        from rclpy.task import Future

        self.running = threading.Event()
        self.cancelled = threading.Event()
        stop = Future()

        def on_cancel(goal: Any) -> Any:
            stop.set_result(None)
            return CancelResponse.ACCEPT

        async def execute(goal: Any) -> Any:
            self.running.set()
            await stop
            goal.canceled()
            self.cancelled.set()
            return RunEpisode.Result(outcome=RunEpisode.Result.STOPPED, reason="cancelled")

        self._server = ActionServer(
            probe.node,
            RunEpisode,
            "/policy/run_episode",
            execute_callback=execute,
            cancel_callback=on_cancel,
        )


@pytest.fixture
def policy(ros_probe: Any) -> EndlessPolicy:
    return EndlessPolicy(ros_probe)


@pytest.fixture
def program() -> tuple[str, ...]:
    """What Python is started with."""
    return ("-m", "equi_evaluation.evaluate_node")


@pytest.fixture
def evaluator(
    policy: EndlessPolicy,
    program: tuple[str, ...],
    ros_domain_id: int,
    processes: Any,
    tmp_path: Path,
) -> Any:
    """The evaluation in the middle of an episode."""
    process = processes.start(
        [
            *(sys.executable, *program),
            *("--episodes", "1", "--ground-truth", "--record", "--side-view", "side_view"),
            *("--wait-s", str(PATIENCE_S), "--output", str(tmp_path / "run")),
        ],
        {"ROS_DOMAIN_ID": str(ros_domain_id)},
    )
    wait_until(policy.running.is_set, PATIENCE_S, "the episode runs")
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_cancels_the_episode_before_the_evaluator_ends(
    policy: EndlessPolicy, evaluator: Any, number: signal.Signals
) -> None:
    evaluator.signal_alone(number)

    wait_until(policy.cancelled.is_set, PATIENCE_S, "the episode is cancelled")
    assert evaluator.wait_for_exit(PATIENCE_S) == 130, evaluator.output
    assert "start again" in evaluator.output
    assert "did not confirm" not in evaluator.output


# The evaluator as it is, with an error in it that nobody expected.
BROKEN = """
import sys
from equi_evaluation import evaluate_node

def fail(monitor, text):
    raise RuntimeError("the monitor is broken")

evaluate_node.EpisodeMonitor.on_referee = fail
sys.exit(evaluate_node.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("program", [("-c", BROKEN)], ids=["broken"])
def test_an_error_cancels_the_episode_before_the_evaluator_fails(
    policy: EndlessPolicy, evaluator: Any, ros_probe: Any
) -> None:
    say_truth(ros_probe, "{}")

    wait_until(policy.cancelled.is_set, PATIENCE_S, "the episode is cancelled")
    assert evaluator.wait_for_exit(PATIENCE_S) == 1, evaluator.output
    assert "RuntimeError: the monitor is broken" in evaluator.output
    assert "did not confirm" not in evaluator.output


def say_truth(probe: Any, text: str) -> None:
    """Publish a label as the referee does."""
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from std_msgs.msg import String

    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    truth = probe.node.create_publisher(String, "/simulated_scene/ground_truth", latched)
    wait_until(truth.get_subscription_count, PATIENCE_S, "the evaluator listens")
    truth.publish(String(data=text))


def test_a_label_that_is_no_json_ends_neither_the_episode_nor_the_evaluator(
    policy: EndlessPolicy, evaluator: Any, ros_probe: Any
) -> None:
    from sensor_msgs.msg import Image

    say_truth(ros_probe, "no JSON")
    # It still hears what comes later.
    grey = Image(encoding="mono8", height=2, width=2, step=2, data=bytes(4))
    views = ros_probe.node.create_publisher(Image, "/side_view", 1)
    timer = ros_probe.node.create_timer(0.02, lambda: views.publish(grey))
    evaluator.wait_for_text("no side view is recorded", PATIENCE_S)
    timer.cancel()
    assert not policy.cancelled.is_set()

    evaluator.signal_alone(signal.SIGTERM)

    assert evaluator.wait_for_exit(PATIENCE_S) == 130, evaluator.output


def test_a_side_view_of_another_kind_is_left_out_with_one_warning(
    policy: EndlessPolicy, evaluator: Any, ros_probe: Any
) -> None:
    from sensor_msgs.msg import Image

    grey = Image(encoding="mono8", height=2, width=2, step=2, data=bytes(4))
    views = ros_probe.node.create_publisher(Image, "/side_view", 1)
    timer = ros_probe.node.create_timer(0.02, lambda: views.publish(grey))
    evaluator.wait_for_text("no side view is recorded: side_view is 'mono8'", PATIENCE_S)

    evaluator.signal_alone(signal.SIGTERM)

    assert evaluator.wait_for_exit(PATIENCE_S) == 130, evaluator.output
    assert evaluator.output.count("no side view is recorded") == 1
    timer.cancel()
