"""The robot driver alone; it connects and waits to be activated.

ros2 launch equi_policy control.launch.py cell:=lab model:=models/block_picking
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
    """The driver with the settings of the cell and the limits of the contract."""
    root = find_project_root(HERE)
    name = LaunchConfiguration("cell").perform(context)
    path = Path(name) if name.endswith(".yaml") else root / "launch" / "cells" / f"{name}.yaml"
    cell = CellFile.load(path)
    parameters = {**cell.section("robot"), **cell.section("safety")}
    robot_ip = LaunchConfiguration("robot_ip").perform(context)
    if robot_ip:
        parameters["robot_ip"] = robot_ip
    model = LaunchConfiguration("model").perform(context)
    parameters["contract"] = str(root / model / "contract.json")
    return [
        Node(
            package="equi_control",
            executable="rtde_driver_node",
            name="rtde_driver",
            parameters=[parameters],
            output="screen",
            on_exit=EmitEvent(event=Shutdown(reason="rtde_driver ended")),
        )
    ]


def generate_launch_description():
    """Arguments and the node."""
    return LaunchDescription(
        [
            DeclareLaunchArgument("cell", default_value="sim", description="cell name or file"),
            DeclareLaunchArgument(
                "robot_ip", default_value="", description="address; empty: the cell's"
            ),
            DeclareLaunchArgument("model", description="folder with contract.json"),
            OpaqueFunction(function=start),
        ]
    )
