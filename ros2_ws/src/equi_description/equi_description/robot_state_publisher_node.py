# SPDX-License-Identifier: MIT
"""robot_state_publisher: description and transforms of the robot, where ROS's own is missing.

    ros2 run equi_description robot_state_publisher --ros-args -p robot_description:="$(cat x.urdf)"

Same name, parameters and topics as the node of ROS's package robot_state_publisher, which the
launch files take where it is installed: `robot_description` (latched), `tf_static` (once), `tf`
from `joint_states`. Frames get the parameter `frame_prefix` in front.
"""

from __future__ import annotations

import math
import sys

from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped
from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage

from equi_core.robot_description.joint_tree import DescriptionError, Joint, JointTree
from equi_ros import qos
from equi_ros.run_node import run_node
from equi_ros.stamps import nanoseconds
from equi_ros.transforms import TF_TOPIC, StaticFrames, transform_message

_MAX_RATE_HZ = 1000.0


class RobotStatePublisherNode(Node):
    """Joint states in, transforms out."""

    def __init__(self) -> None:
        super().__init__("robot_state_publisher")
        fixed = ParameterDescriptor(read_only=True, description="URDF of the robot, as text")
        text = str(self.declare_parameter("robot_description", "", fixed).value)
        if not text:
            raise DescriptionError("the parameter robot_description is empty; give it a URDF")
        self._tree = JointTree(text)
        prefix = ParameterDescriptor(read_only=True, description="in front of every frame")
        self._prefix = str(self.declare_parameter("frame_prefix", "", prefix).value)
        rate = ParameterDescriptor(
            description="highest rate of tf [Hz]; 0: with every joint state",
            floating_point_range=[FloatingPointRange(from_value=0.0, to_value=_MAX_RATE_HZ)],
            read_only=True,
        )
        rate_hz = float(self.declare_parameter("publish_frequency", 20.0, rate).value)
        self._period_ns = round(1e9 / rate_hz) if rate_hz > 0.0 else 0
        self._last_ns: int | None = None
        self._descriptions = self.create_publisher(String, "robot_description", qos.LATCHED)
        self._descriptions.publish(String(data=text))
        self._transforms = self.create_publisher(TFMessage, TF_TOPIC, qos.TRANSFORMS)
        stamp = self.get_clock().now().to_msg()
        self._static = StaticFrames(self)
        self._static.publish([self._message(joint, 0.0, stamp) for joint in self._tree.fixed])
        self.create_subscription(JointState, "joint_states", self._on_joints, qos.JOINT_STATES)
        moving = ", ".join(joint.name for joint in self._tree.moving)
        self.get_logger().info(f"ready: {self._tree.name}, joints {moving}")

    def _on_joints(self, message: JointState) -> None:
        stamp_ns = nanoseconds(message.header.stamp)
        # A stamp that goes back belongs to another player or a clock that was set: begin anew.
        if self._last_ns is not None and 0 <= stamp_ns - self._last_ns < self._period_ns:
            return
        if len(message.name) != len(message.position):
            self.get_logger().warning(
                f"a joint state names {len(message.name)} joints and gives "
                f"{len(message.position)} positions; it was dropped",
                throttle_duration_sec=2.0,
            )
            return
        positions = {
            name: position
            for name, position in zip(message.name, message.position, strict=True)
            if math.isfinite(position)
        }
        transforms = []
        for joint in self._tree.moving:
            position = self._tree.position(joint, positions)
            if position is not None:
                transforms.append(self._message(joint, position, message.header.stamp))
        if transforms:
            self._last_ns = stamp_ns
            self._transforms.publish(TFMessage(transforms=transforms))

    def _message(self, joint: Joint, position: float, stamp: Time) -> TransformStamped:
        return transform_message(
            self._prefix + joint.parent,
            self._prefix + joint.child,
            joint.transform(position),
            stamp,
        )


def main(args: list[str] | None = None) -> int:
    """Entry point of the node."""
    return run_node(
        "robot_state_publisher", RobotStatePublisherNode, args, refusals=(DescriptionError,)
    )


if __name__ == "__main__":
    sys.exit(main())
