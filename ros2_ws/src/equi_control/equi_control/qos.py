"""Quality of service of the streams that the driver reads and writes, in one place."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

COMMAND = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
"""Depth 1: an old step must never queue behind a newer one."""
EXECUTED = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
ROBOT_STATE = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
JOINT_STATES = QoSProfile(depth=10)
LATCHED = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
"""Whoever joins late still learns of a fault."""
DIAGNOSTICS = QoSProfile(depth=10)
