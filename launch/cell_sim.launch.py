"""The simulated cell alone: emulated UR5 and gripper, two depth cameras, scene and referee.

ros2 launch equi_policy cell_sim.launch.py task:=block_picking
"""

import os
import sys
import tempfile
from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, EmitEvent, ExecuteProcess, OpaqueFunction
from launch.events import Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from equi_core.cell_file import CellFile, find_project_root

HERE = Path(__file__).resolve().parent


def start(context):
    """Every process of the simulated cell."""
    root = find_project_root(HERE)
    name = LaunchConfiguration("cell").perform(context)
    path = Path(name) if name.endswith(".yaml") else root / "launch" / "cells" / f"{name}.yaml"
    cell = CellFile.load(path)
    address = LaunchConfiguration("robot_ip").perform(context) or cell.section("robot")["robot_ip"]
    seed = int(LaunchConfiguration("seed").perform(context))
    board = LaunchConfiguration("calibration_board").perform(context) == "true"
    overlay = "board" if board else ""
    folder = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()
    scene_file = f"{folder}/equi_cell_{address.replace('.', '_')}_{os.getpid()}.scene"
    ended = EmitEvent(event=Shutdown(reason="a process of the simulated cell ended"))
    cameras = [
        Node(
            package="equi_cell_sim",
            executable="camera_node",
            name=f"{camera}_camera",
            parameters=[
                {
                    "camera": camera,
                    "scene_file": scene_file,
                    "seed": seed,
                    "overlay": overlay,
                    "position_m": [float(value) for value in settings["position_m"]],
                    "target_m": [float(value) for value in settings["target_m"]],
                    **cell.section("simulation"),
                }
            ],
            output="screen",
        )
        for camera, settings in cell.section("cameras").items()
    ]
    return [
        ExecuteProcess(
            cmd=[
                sys.executable,
                "-m",
                "ur_emulator.main",
                "--address",
                address,
                "--arm",
                "physics",
                "--scene-file",
                scene_file,
                "--realtime",
            ],
            name="ur_emulator",
            output="screen",
            on_exit=ended,
        ),
        *cameras,
        Node(
            package="equi_cell_sim",
            executable="scene_node",
            name="simulated_scene",
            parameters=[
                {"robot_ip": address, "task": LaunchConfiguration("task").perform(context)}
            ],
            output="screen",
            on_exit=ended,
        ),
    ]


def generate_launch_description():
    """Arguments and processes."""
    return LaunchDescription(
        [
            DeclareLaunchArgument("cell", default_value="sim", description="cell name or file"),
            DeclareLaunchArgument(
                "robot_ip", default_value="", description="loopback address; empty: the cell's"
            ),
            DeclareLaunchArgument("task", default_value="block_picking", description="task"),
            DeclareLaunchArgument("seed", default_value="0", description="seed of the noise"),
            DeclareLaunchArgument(
                "calibration_board",
                default_value="false",
                choices=["true", "false"],
                description="the arm carries the calibration board",
            ),
            OpaqueFunction(function=start),
        ]
    )
