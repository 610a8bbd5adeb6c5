# SPDX-License-Identifier: MIT
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

from equi_ros.launching import BOOLEAN, CellLaunch, cell_argument

HERE = Path(__file__).resolve().parent


def start(context):
    """Every process of the simulated cell."""
    launch = CellLaunch(context, HERE)
    address = launch.robot_ip
    folder = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()
    scene_file = f"{folder}/equi_cell_{address.replace('.', '_')}_{os.getpid()}.scene"
    emulator = [sys.executable, "-m", "ur_emulator.main", "--address", address]
    return [
        ExecuteProcess(
            cmd=[*emulator, "--arm", "physics", "--scene-file", scene_file, "--realtime"],
            name="ur_emulator",
            output="screen",
            on_exit=EmitEvent(event=Shutdown(reason="ur_emulator ended")),
        ),
        *[camera_node(launch, name, scene_file) for name in launch.cell.camera_names],
        launch.node(
            "equi_cell_sim",
            "scene_node",
            "simulated_scene",
            {"robot_ip": address, "task": launch.value("task")},
        ),
    ]


def camera_node(launch, name, scene_file):
    """One camera of the cell. A dead camera ends nothing: perception says what is missing."""
    camera = launch.cell.cameras[name]
    own = {
        "camera": name,
        "scene_file": scene_file,
        "seed": int(launch.value("seed")),
        "overlay": "board" if launch.flag("calibration_board") else "",
        "position_m": list(camera.position_m),
        "target_m": list(camera.target_m),
    }
    return launch.node(
        "equi_cell_sim", "camera_node", f"{name}_camera", own, block="camera", required=False
    )


def generate_launch_description():
    """Arguments and processes."""
    return LaunchDescription(
        [
            cell_argument(),
            DeclareLaunchArgument(
                "robot_ip", default_value="", description="loopback address; empty: the cell's"
            ),
            DeclareLaunchArgument("task", default_value="block_picking", description="task"),
            DeclareLaunchArgument("seed", default_value="0", description="seed of the noise"),
            DeclareLaunchArgument(
                "calibration_board",
                default_value="false",
                choices=BOOLEAN,
                description="the arm carries the calibration board",
            ),
            OpaqueFunction(function=start),
        ]
    )
