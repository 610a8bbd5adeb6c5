"""Quality of service of the streams that the policy node reads and writes, in one place."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

OBSERVATION = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
"""Depth 1: a stale image must never queue ahead of a recurrent policy."""
ROBOT_STATE = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
COMMAND = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
EXECUTED = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
LATCHED = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
DIAGNOSTICS = QoSProfile(depth=10)
