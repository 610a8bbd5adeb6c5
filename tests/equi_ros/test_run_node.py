# SPDX-License-Identifier: MIT
"""The main function of a node: what its exit code says, and that it cleans up on the way out."""

from __future__ import annotations

import signal
import sys
from typing import Any

import pytest

from equi_ros.run_node import EXIT_OK, EXIT_REFUSED

pytestmark = [pytest.mark.ros, pytest.mark.timeout(180)]

# Talks to itself without a pause, so that a signal nearly always comes in the middle of something.
BUSY_NODE = """
import sys
from rclpy.node import Node
from std_msgs.msg import String
from equi_ros.run_node import run_node

class Busy(Node):
    def __init__(self):
        super().__init__("busy")
        self._received = 0
        self._publisher = self.create_publisher(String, "chatter", 10)
        self.create_subscription(String, "chatter", self._on_message, 10)
        for _ in range(5):
            self.create_timer(0.0005, lambda: self._publisher.publish(String(data="x" * 100)))

    def _on_message(self, message):
        self._received += 1
        if self._received == 20:
            print("busy", flush=True)

    def destroy_node(self):
        print("cleaned up", flush=True)
        super().destroy_node()

sys.exit(run_node("busy", Busy))
"""
FAILING_NODE = """
import sys
from equi_ros.run_node import run_node

def make():
    raise {error}("model.json is missing")

sys.exit(run_node("failing", make, refusals=(ValueError,)))
"""
FAILING_LATER = """
import sys
from rclpy.node import Node
from equi_ros.run_node import run_node

class Late(Node):
    def __init__(self):
        super().__init__("late")
        self.create_timer(0.05, self._fail)

    def _fail(self):
        raise ValueError("broken while running")

    def destroy_node(self):
        print("cleaned up", flush=True)
        super().destroy_node()

sys.exit(run_node("late", Late, refusals=(ValueError,)))
"""


def start(processes: Any, ros_domain_id: int, code: str) -> Any:
    return processes.start([sys.executable, "-c", code], {"ROS_DOMAIN_ID": str(ros_domain_id)})


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_busy_node_that_receives_a_signal_finishes_its_callback_and_ends_with_0(
    ros_domain_id: int, processes: Any, number: signal.Signals
) -> None:
    nodes = [start(processes, ros_domain_id, BUSY_NODE) for _ in range(4)]
    for node in nodes:
        node.wait_for_text("busy")
        node.signal_alone(number)
    for node in nodes:
        assert node.wait_for_exit() == EXIT_OK
        assert "Traceback" not in node.output
        assert "cleaned up" in node.output


def test_a_node_that_refuses_to_start_says_why_in_one_sentence(
    ros_domain_id: int, processes: Any
) -> None:
    node = start(processes, ros_domain_id, FAILING_NODE.format(error="ValueError"))

    assert node.wait_for_exit() == EXIT_REFUSED
    assert "[failing]: refused to start: model.json is missing" in node.output
    assert "Traceback" not in node.output


def test_an_unexpected_error_at_start_keeps_its_traceback(
    ros_domain_id: int, processes: Any
) -> None:
    node = start(processes, ros_domain_id, FAILING_NODE.format(error="KeyError"))

    assert node.wait_for_exit() == 1
    assert "Traceback" in node.output


def test_an_error_while_running_is_no_refusal_and_still_cleans_up(
    ros_domain_id: int, processes: Any
) -> None:
    node = start(processes, ros_domain_id, FAILING_LATER)

    assert node.wait_for_exit() == 1
    assert "broken while running" in node.output
    assert "refused to start" not in node.output
    assert "cleaned up" in node.output
