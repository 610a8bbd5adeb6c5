"""Perception alone: clouds and robot state in, observations out.

ros2 launch equi_policy perception.launch.py cell:=sim model:=models/block_picking
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
    """The fusion node with the settings of the cell."""
    root = find_project_root(HERE)
    name = LaunchConfiguration("cell").perform(context)
    path = Path(name) if name.endswith(".yaml") else root / "launch" / "cells" / f"{name}.yaml"
    cell = CellFile.load(path)
    calibration = LaunchConfiguration("calibration").perform(context)
    cameras = cell.section("cameras")
    parameters = {
        "model": str(root / LaunchConfiguration("model").perform(context)),
        "calibration": str(root / (calibration or f"calibration/results/{cell.name}")),
        "cell": cell.name,
        "cameras": list(cameras),
        "ignore_calibration_verdict": LaunchConfiguration("ignore_calibration").perform(context)
        == "true",
        **cell.section("perception"),
    }
    for camera, settings in cameras.items():
        for key in ("topic", "serial"):
            parameters[f"{camera}.{key}"] = str(settings.get(key, ""))
    return [
        Node(
            package="equi_perception",
            executable="depth_fusion_node",
            name="depth_fusion",
            parameters=[parameters],
            output="screen",
            on_exit=EmitEvent(event=Shutdown(reason="depth_fusion ended")),
        )
    ]


def generate_launch_description():
    """Arguments and the node."""
    return LaunchDescription(
        [
            DeclareLaunchArgument("cell", default_value="sim", description="cell name or file"),
            DeclareLaunchArgument("model", description="folder with contract.json"),
            DeclareLaunchArgument(
                "calibration", default_value="", description="folder; empty: that of the cell"
            ),
            DeclareLaunchArgument(
                "ignore_calibration",
                default_value="false",
                choices=["true", "false"],
                description="use a calibration that failed, expired or belongs to another cell",
            ),
            OpaqueFunction(function=start),
        ]
    )
