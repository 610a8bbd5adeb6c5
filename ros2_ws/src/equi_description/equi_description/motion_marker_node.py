# SPDX-License-Identifier: MIT
"""motion_marker: shows where the policy's next step would take the TCP, as markers for RViz.

Reads `delta_command` and `robot_state`, publishes `motion_marker`: an arrow from the TCP to its
target, and the two fingers there as they would open. It commands nothing.
"""

from __future__ import annotations

import math
import sys

from equi_interfaces.msg import DeltaCommand, RobotState
from geometry_msgs.msg import Point, Vector3
from rclpy.duration import Duration
from rclpy.node import Node
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from equi_core.robot_description.urdf import finger_position_m
from equi_ros import qos
from equi_ros.run_node import run_node

_LIFETIME_S = 5.0
_ARROW_M = Vector3(x=0.006, y=0.014, z=0.02)
"""Diameters of shaft and head, length of the head [m]."""
_PAD_M = Vector3(x=0.01, y=0.022, z=0.03)
_BLUE = ColorRGBA(r=0.16, g=0.43, b=0.67, a=0.9)
_ORANGE = ColorRGBA(r=0.90, g=0.55, b=0.15, a=0.8)


class MotionMarkerNode(Node):
    """The newest step, drawn in the frame of the robot state."""

    def __init__(self) -> None:
        super().__init__("motion_marker")
        self._robot: RobotState | None = None
        self._markers = self.create_publisher(MarkerArray, "motion_marker", qos.LATCHED)
        self.create_subscription(RobotState, "robot_state", self._on_robot, qos.ROBOT_STATE)
        self.create_subscription(DeltaCommand, "delta_command", self._on_command, qos.COMMAND)

    def _on_robot(self, message: RobotState) -> None:
        self._robot = message

    def _on_command(self, command: DeltaCommand) -> None:
        robot = self._robot
        step = command.translation
        numbers = (step.x, step.y, step.z, command.yaw_rad, command.gripper_closedness)
        if robot is None or not all(math.isfinite(value) for value in numbers):
            return
        start = robot.tcp_pose.position
        end = Point(x=start.x + step.x, y=start.y + step.y, z=start.z + step.z)
        arrow = self._marker(robot, 0, Marker.ARROW, _ARROW_M, _BLUE)
        arrow.points = [start, end]
        markers = [arrow]
        yaw_rad = robot.tcp_yaw_rad + command.yaw_rad
        offset_m = finger_position_m(1.0 - command.gripper_closedness) + _PAD_M.x / 2
        for number, side in ((1, 1.0), (2, -1.0)):
            pad = self._marker(robot, number, Marker.CUBE, _PAD_M, _ORANGE)
            pad.pose.position = Point(
                x=end.x + side * offset_m * math.cos(yaw_rad),
                y=end.y + side * offset_m * math.sin(yaw_rad),
                z=end.z + _PAD_M.z / 2,
            )
            pad.pose.orientation.z = math.sin(yaw_rad / 2)
            pad.pose.orientation.w = math.cos(yaw_rad / 2)
            markers.append(pad)
        self._markers.publish(MarkerArray(markers=markers))

    def _marker(
        self, robot: RobotState, number: int, kind: int, scale: Vector3, colour: ColorRGBA
    ) -> Marker:
        marker = Marker(ns="next_step", id=number, type=kind, action=Marker.ADD)
        marker.header.stamp = robot.header.stamp
        marker.header.frame_id = robot.header.frame_id
        marker.scale, marker.color = scale, colour
        marker.lifetime = Duration(seconds=_LIFETIME_S).to_msg()
        marker.pose.orientation.w = 1.0
        return marker


def main(args: list[str] | None = None) -> int:
    """Entry point of the node."""
    return run_node("motion_marker", MotionMarkerNode, args)


if __name__ == "__main__":
    sys.exit(main())
