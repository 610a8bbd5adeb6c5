# SPDX-License-Identifier: MIT
"""The policy alone: observations in, commands out; offers the RunEpisode action.

ros2 launch equi_policy policy.launch.py model:=models/block_picking cell:=sim
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction

from equi_ros.launching import CellLaunch, cell_argument

HERE = Path(__file__).resolve().parent


def start(context):
    """The policy node, or the expert in its place."""
    launch = CellLaunch(context, HERE)
    own = {"model": str(launch.path(launch.value("model")))}
    if launch.value("driven_by") == "policy":
        return [launch.node("equi_policy", "policy_node", "policy", own)]
    own |= {"robot_ip": launch.robot_ip, "seed": int(launch.value("seed"))}
    return [launch.node("equi_cell_sim", "expert_policy_node", "policy", own)]


def generate_launch_description():
    """Arguments and the node."""
    return LaunchDescription(
        [
            cell_argument(),
            DeclareLaunchArgument("model", description="folder with contract.json and weights"),
            DeclareLaunchArgument(
                "driven_by",
                default_value="policy",
                choices=["policy", "expert"],
                description="expert: the scripted expert acts by ground truth (simulation only)",
            ),
            DeclareLaunchArgument("robot_ip", default_value="", description="for the expert"),
            DeclareLaunchArgument("seed", default_value="0", description="for the expert"),
            OpaqueFunction(function=start),
        ]
    )
