# SPDX-License-Identifier: MIT
"""The robot's description and its transforms, and with view:=true the next step as a marker.

ros2 launch equi_bringup description.launch.py cell:=lab
"""

from equi_bringup.arguments import BOOLEAN, COMMON, Argument, cell_argument
from equi_bringup.cell_launch import describe, package_is_installed
from equi_core.robot_description.urdf import robot_description

ARGUMENTS = (
    cell_argument(),
    *COMMON,
    Argument("view", "false", "show the policy's next step as a marker", BOOLEAN),
)
ROS_PACKAGE = "robot_state_publisher"


def start(launch):
    """ROS's robot_state_publisher where it is installed, otherwise ours with the same interface."""
    text = robot_description(launch.cell.arm, launch.cell.geometry)
    package = ROS_PACKAGE if package_is_installed(ROS_PACKAGE) else "equi_description"
    # Neither moves anything: without them a screen stays empty, and the robot works on.
    shown = {"block": "-", "required": False}
    own = {"robot_description": text}
    nodes = [launch.node(package, "robot_state_publisher", "robot_state_publisher", own, **shown)]
    if launch.flag("view"):
        nodes.append(
            launch.node("equi_description", "motion_marker_node", "motion_marker", {}, **shown)
        )
    return nodes


def generate_launch_description():
    """Arguments and the nodes."""
    return describe(__file__, ARGUMENTS, start)
