"""A node that is asked to end while it is busy finishes its callback and ends with status 0."""

from __future__ import annotations

import signal
import sys
from typing import Any

import pytest

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
        self._heard = 0
        self._publisher = self.create_publisher(String, "chatter", 10)
        self.create_subscription(String, "chatter", self._hear, 10)
        for _ in range(5):
            self.create_timer(0.0005, lambda: self._publisher.publish(String(data="x" * 100)))

    def _hear(self, message):
        self._heard += 1
        if self._heard == 20:
            print("busy", flush=True)

sys.exit(run_node(Busy))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_busy_node_ends_in_order(
    ros_domain_id: int, processes: Any, number: signal.Signals
) -> None:
    environment = {"ROS_DOMAIN_ID": str(ros_domain_id)}
    nodes = [processes.start([sys.executable, "-c", BUSY_NODE], environment) for _ in range(4)]
    for node in nodes:
        node.wait_for_text("busy")
        node.signal_alone(number)
    for node in nodes:
        assert node.wait_for_exit() == 0
        assert "Traceback" not in node.output
