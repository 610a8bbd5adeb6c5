"""Quality of service of the streams that perception reads and writes, in one place."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

CLOUD = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
"""The newest cloud beats a complete series; best effort also matches reliable drivers."""
ROBOT_STATE = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
OBSERVATION = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
"""Depth 1: a stale image must never queue ahead of a recurrent policy."""
LATCHED = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
"""Whoever joins late still learns the present state."""
DIAGNOSTICS = QoSProfile(depth=10)
