# SPDX-License-Identifier: MIT
"""The simulated cell alone: emulated UR5 and gripper, two depth cameras, scene and referee.

ros2 launch equi_bringup cell_sim.launch.py task:=block_picking
"""

import os
import tempfile

from equi_bringup.arguments import (
    BOOLEAN,
    COMMON,
    PROFILE,
    SEED,
    TASK,
    Argument,
    cell_argument,
    whole_number,
)
from equi_bringup.cell_launch import describe

ARGUMENTS = (
    cell_argument(),
    *COMMON,
    TASK,
    SEED,
    PROFILE,
    Argument("calibration_board", "false", "the arm carries the calibration board", BOOLEAN),
)


def start(launch):
    """Every process of the simulated cell."""
    address = launch.robot_ip
    folder = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()
    scene_file = f"{folder}/equi_cell_{address.replace('.', '_')}_{os.getpid()}.scene"
    return [
        launch.process(
            *("equi_cell_sim", "equi-ur-emulator", "--address", address, "--arm", "physics"),
            *("--scene-file", scene_file, "--profile", launch.value("profile"), "--realtime"),
            # A driver lets go of the arm before the robot vanishes, as on a real one.
            *("--linger-s", "1.5"),
            name="ur_emulator",
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
        "seed": whole_number("seed", launch.value("seed")),
        "overlay": "board" if launch.flag("calibration_board") else "",
        "position_m": list(camera.position_m),
        "target_m": list(camera.target_m),
    }
    return launch.node(
        "equi_cell_sim", "camera_node", f"{name}_camera", own, block="camera", required=False
    )


def generate_launch_description():
    """Arguments and processes."""
    return describe(__file__, ARGUMENTS, start)
