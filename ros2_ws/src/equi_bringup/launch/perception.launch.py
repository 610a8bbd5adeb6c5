# SPDX-License-Identifier: MIT
"""Perception alone: clouds and robot state in, observations out.

ros2 launch equi_policy perception.launch.py cell:=sim model:=models/block_picking
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction

from equi_ros.launching import BOOLEAN, CellLaunch, autostart_argument, cell_argument

HERE = Path(__file__).resolve().parent


def start(context):
    """The fusion node with the settings of the cell."""
    launch = CellLaunch(context, HERE)
    calibration = launch.value("calibration") or f"calibration/results/{launch.cell.name}"
    own = {
        "model": str(launch.path(launch.value("model"))),
        "calibration": str(launch.path(calibration)),
        "ignore_calibration_verdict": launch.flag("ignore_calibration"),
    }
    node = launch.node("equi_perception", "depth_fusion_node", "depth_fusion", own)
    return [node, *launch.own_manager("depth_fusion")]


def generate_launch_description():
    """Arguments and the node."""
    return LaunchDescription(
        [
            cell_argument(),
            autostart_argument(),
            DeclareLaunchArgument("model", description="folder with contract.json"),
            DeclareLaunchArgument(
                "calibration", default_value="", description="folder; empty: that of the cell"
            ),
            DeclareLaunchArgument(
                "ignore_calibration",
                default_value="false",
                choices=BOOLEAN,
                description="use a calibration that failed, expired or belongs to another cell",
            ),
            OpaqueFunction(function=start),
        ]
    )
