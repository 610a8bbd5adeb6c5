# SPDX-License-Identifier: MIT
"""The robot driver alone: it connects; in a real cell an operator activates it.

ros2 launch equi_policy control.launch.py cell:=lab model:=models/block_picking
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction

from equi_ros.launching import CellLaunch, autostart_argument, cell_argument

HERE = Path(__file__).resolve().parent


def start(context):
    """The driver with the settings of the cell and the limits of the contract."""
    launch = CellLaunch(context, HERE)
    own = {
        "robot_ip": launch.robot_ip,
        "contract": str(launch.path(launch.value("model")) / "contract.json"),
    }
    node = launch.node("equi_control", "rtde_driver_node", "rtde_driver", own)
    return [node, *launch.own_manager("rtde_driver")]


def generate_launch_description():
    """Arguments and the node."""
    return LaunchDescription(
        [
            cell_argument(),
            autostart_argument(),
            DeclareLaunchArgument(
                "robot_ip", default_value="", description="address; empty: the cell's"
            ),
            DeclareLaunchArgument("model", description="folder with contract.json"),
            OpaqueFunction(function=start),
        ]
    )
