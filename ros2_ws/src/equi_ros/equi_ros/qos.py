# SPDX-License-Identifier: MIT
"""Quality of service of every stream, in one place: both ends of a topic use the same profile."""

from __future__ import annotations

from rclpy.duration import Duration
from rclpy.qos import DurabilityPolicy, LivelinessPolicy, QoSProfile, ReliabilityPolicy

NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
"""The newest message beats a complete series; best effort also matches reliable publishers."""
POINT_CLOUD = NEWEST
"""Subscribe; camera drivers publish with profiles of their own."""
CAMERA = QoSProfile(depth=2, reliability=ReliabilityPolicy.RELIABLE)
"""Publish clouds, images and camera info, as a RealSense driver does."""
ROBOT_STATE = NEWEST
ROBOT_STATE_HISTORY = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Subscribe: for a reader that must see the states between two of its callbacks as well."""
JOINT_STATES = QoSProfile(depth=10)
TRANSFORMS = QoSProfile(depth=100)
"""Of tf, as tf2_ros has it."""
OBSERVATION = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
"""Depth 1: a stale image must never queue ahead of a recurrent policy."""
COMMAND = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
"""Depth 1: an old step must never queue behind a newer one."""
EXECUTED = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
LATCHED = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
"""A subscriber that joins late still receives the present state."""
DIAGNOSTICS = QoSProfile(depth=10)
RECORDED = QoSProfile(depth=50, reliability=ReliabilityPolicy.RELIABLE)
"""Subscribe: a recorder must not lose messages while it writes."""
RECORDED_SENSOR = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Subscribe: any camera driver is heard; a few large messages may wait, not many."""
HEARTBEAT_LEASE_S = 5.0
"""A node that gave no sign of life for this long is dead or hangs [s]."""
HEARTBEAT = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    liveliness=LivelinessPolicy.MANUAL_BY_TOPIC,
    liveliness_lease_duration=Duration(seconds=HEARTBEAT_LEASE_S),
)
"""DDS tells every subscriber when the publisher stops: by its end, or by silence."""
