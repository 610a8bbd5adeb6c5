# SPDX-License-Identifier: MIT
"""What of a running cell goes into a record, and QoS between rclpy and bags."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from equi_interfaces.msg import (
    DeltaCommand,
    ExecutedCommand,
    Observation,
    PerceptionStatus,
    RobotState,
    SafetyStatus,
)
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import (
    DurabilityPolicy,
    HistoryPolicy,
    LivelinessPolicy,
    QoSProfile,
    ReliabilityPolicy,
)
from sensor_msgs.msg import CameraInfo, Image, JointState, PointCloud2
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import MarkerArray

from equi_evaluation.bag.metadata import UNLIMITED_NS, OfferedQos
from equi_ros import qos

_PERIOD_NS = 100_000_000
"""Shortest time between two messages of a fast topic, unless all are wanted [ns]."""
_STATIC_FRAMES = QoSProfile(depth=16, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""Several nodes publish static transforms, each once."""


@dataclass(frozen=True)
class RecordedTopic:
    """One topic that is recorded."""

    name: str
    """Relative to the namespace."""
    kind: Any
    """Message class."""
    profile: QoSProfile
    """Of the subscription."""
    fast: bool = False
    """Thinned out unless the sensors are recorded."""
    latched: int = 0
    """How many of its messages from before the episode belong to the record."""


ALWAYS = (
    RecordedTopic("observation", Observation, qos.RECORDED),
    RecordedTopic("delta_command", DeltaCommand, qos.RECORDED),
    RecordedTopic("executed_command", ExecutedCommand, qos.RECORDED),
    RecordedTopic("robot_state", RobotState, qos.ROBOT_STATE_HISTORY, fast=True),
    RecordedTopic("joint_states", JointState, qos.JOINT_STATES, fast=True),
    RecordedTopic("tf", TFMessage, qos.RECORDED, fast=True),
    RecordedTopic("tf_static", TFMessage, _STATIC_FRAMES, latched=16),
    RecordedTopic("robot_description", String, qos.LATCHED, latched=1),
    RecordedTopic("safety_status", SafetyStatus, qos.LATCHED, latched=1),
    RecordedTopic("perception_status", PerceptionStatus, qos.LATCHED, latched=1),
    RecordedTopic("diagnostics", DiagnosticArray, qos.RECORDED),
    RecordedTopic("belief_marker", MarkerArray, qos.RECORDED),
)


def recorded_topics(sensors: str, cameras: Sequence[str]) -> tuple[RecordedTopic, ...]:
    """Everything to record.

    Args:
        sensors: none, depth (16-bit images and camera info) or clouds.
        cameras: names, the first part of their topics.
    """
    wanted = {
        "none": (),
        "depth": (("depth/image_rect_raw", Image), ("depth/camera_info", CameraInfo)),
        "clouds": (("depth/points", PointCloud2),),
    }[sensors]
    return ALWAYS + tuple(
        RecordedTopic(f"{camera}/{name}", kind, qos.RECORDED_SENSOR)
        for camera in cameras
        for name, kind in wanted
    )


def periods_ns(topics: Sequence[RecordedTopic], sensors: str) -> dict[str, int]:
    """Shortest times between messages; none when a record must drive perception again."""
    if sensors != "none":
        return {}
    return {topic.name: _PERIOD_NS for topic in topics if topic.fast}


def offered_qos(node: Node, topic: str) -> tuple[OfferedQos, ...]:
    """What the present publishers of a topic (full name) offer."""
    return tuple(
        OfferedQos(
            # The graph does not tell history and depth; rosbag2 writes it so as well.
            depth=max(info.qos_profile.depth, 1),
            reliability=info.qos_profile.reliability.name.lower(),
            durability=info.qos_profile.durability.name.lower(),
            liveliness=info.qos_profile.liveliness.name.lower(),
            deadline_ns=_bounded(info.qos_profile.deadline),
            lifespan_ns=_bounded(info.qos_profile.lifespan),
            liveliness_lease_ns=_bounded(info.qos_profile.liveliness_lease_duration),
        )
        for info in node.get_publishers_info_by_topic(topic)
    )


def playing_qos(offered: Sequence[OfferedQos], depth: int = 10) -> QoSProfile:
    """A profile that serves every subscriber whom the recorded publishers served.

    Deadline, lifespan and liveliness are left out: a player keeps other times than they did.
    """
    best_effort = offered and any(item.reliability == "best_effort" for item in offered)
    latched = offered and all(item.durability == "transient_local" for item in offered)
    return QoSProfile(
        depth=max([depth, *(item.depth for item in offered)]),
        history=HistoryPolicy.KEEP_LAST,
        reliability=ReliabilityPolicy.BEST_EFFORT if best_effort else ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
        liveliness=LivelinessPolicy.AUTOMATIC,
    )


def type_name_of(kind: Any) -> str:
    """package/msg/Name of a message class."""
    package, folder = kind.__module__.split(".")[:2]
    return f"{package}/{folder}/{kind.__name__}"


def message_class(type_name: str) -> Any:
    """The class of package/msg/Name; ImportError or AttributeError if it is not installed."""
    package, folder, name = type_name.split("/")
    return getattr(importlib.import_module(f"{package}.{folder}"), name)


def _bounded(duration: Duration) -> int:
    return min(int(duration.nanoseconds), UNLIMITED_NS)
