# SPDX-License-Identifier: MIT
"""Transform messages, and the static ones a node publishes once.

Topics are relative: in the root namespace `tf` and `tf_static` are those that ROS knows,
in a namespace each cell has its own tree, as Nav2 does it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped
from numpy.typing import ArrayLike
from rclpy.node import Node
from tf2_msgs.msg import TFMessage

from equi_core.geometry import quaternion_xyzw
from equi_ros import qos

TF_TOPIC = "tf"
TF_STATIC_TOPIC = "tf_static"


def transform_message(
    parent: str, child: str, parent_from_child: ArrayLike, stamp: Time
) -> TransformStamped:
    """The message of a pose (4, 4) of one frame in another."""
    pose = np.asarray(parent_from_child, dtype=np.float64)
    message = TransformStamped(child_frame_id=child)
    message.header.stamp, message.header.frame_id = stamp, parent
    translation, rotation = message.transform.translation, message.transform.rotation
    translation.x, translation.y, translation.z = (float(value) for value in pose[:3, 3])
    rotation.x, rotation.y, rotation.z, rotation.w = (
        float(value) for value in quaternion_xyzw(pose[:3, :3])
    )
    return message


class StaticFrames:
    """The transforms of one node that never change, for those who join later too."""

    def __init__(self, node: Node) -> None:
        self._publisher = node.create_publisher(TFMessage, TF_STATIC_TOPIC, qos.LATCHED)

    def publish(self, transforms: Sequence[TransformStamped]) -> None:
        """Publish all of them; they replace what this node said before."""
        self._publisher.publish(TFMessage(transforms=list(transforms)))
