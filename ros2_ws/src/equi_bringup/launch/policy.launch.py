# SPDX-License-Identifier: MIT
"""The policy alone: observations in, commands out; offers the RunEpisode action.

ros2 launch equi_policy policy.launch.py model:=models/block_picking cell:=sim
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction

from equi_ros.launching import CellLaunch, autostart_argument, cell_argument

HERE = Path(__file__).resolve().parent


def start(context):
    """The policy node, or the expert in its place."""
    launch = CellLaunch(context, HERE)
    own = {"model": str(launch.path(launch.value("model")))}
    if launch.value("driven_by") == "policy":
        node = launch.node("equi_policy", "policy_node", "policy", own)
    else:
        own |= {"robot_ip": launch.robot_ip, "seed": int(launch.value("seed"))}
        node = launch.node("equi_cell_sim", "expert_policy_node", "policy", own)
    return [node, *launch.own_manager("policy")]


def generate_launch_description():
    """Arguments and the node."""
    return LaunchDescription(
        [
            cell_argument(),
            autostart_argument(),
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
