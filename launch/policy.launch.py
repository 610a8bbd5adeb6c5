"""The policy alone: observations in, commands out; offers the RunEpisode action.

ros2 launch equi_policy policy.launch.py model:=models/block_picking cell:=sim
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, EmitEvent, OpaqueFunction
from launch.events import Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from equi_core.cell_file import CellFile, find_project_root

HERE = Path(__file__).resolve().parent


def start(context):
    """The policy node, or the expert in its place."""
    root = find_project_root(HERE)
    name = LaunchConfiguration("cell").perform(context)
    path = Path(name) if name.endswith(".yaml") else root / "launch" / "cells" / f"{name}.yaml"
    cell = CellFile.load(path)
    expert = LaunchConfiguration("driven_by").perform(context) == "expert"
    parameters = {
        "model": str(root / LaunchConfiguration("model").perform(context)),
        **cell.section("policy"),
    }
    if cell.simulated:
        parameters["scene_reset_service"] = "simulated_scene/reset_episode"
        parameters["judge_service"] = "simulated_scene/judge"
    else:
        parameters["judge_service"] = "evaluator/judge"
    if expert:
        robot_ip = LaunchConfiguration("robot_ip").perform(context)
        parameters["robot_ip"] = robot_ip or cell.section("robot")["robot_ip"]
        parameters["seed"] = int(LaunchConfiguration("seed").perform(context))
    return [
        Node(
            package="equi_cell_sim" if expert else "equi_policy",
            executable="expert_policy_node" if expert else "policy_node",
            name="policy",
            parameters=[parameters],
            output="screen",
            on_exit=EmitEvent(event=Shutdown(reason="policy ended")),
        )
    ]


def generate_launch_description():
    """Arguments and the node."""
    return LaunchDescription(
        [
            DeclareLaunchArgument("cell", default_value="sim", description="cell name or file"),
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
