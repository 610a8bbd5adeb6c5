# SPDX-License-Identifier: MIT
"""The RealSense cameras of a cell, by their serial numbers. Not verified on hardware.

ros2 launch equi_bringup cameras.launch.py cell:=lab
"""

from equi_bringup.arguments import COMMON, cell_argument
from equi_bringup.cell_launch import describe
from equi_bringup.realsense import EXECUTABLE, PACKAGE, realsense_parameters

ARGUMENTS = (cell_argument("lab"), *COMMON)


def start(launch):
    """A driver per camera. A dead camera ends nothing: perception says what is missing."""
    return [
        launch.node(
            PACKAGE,
            EXECUTABLE,
            name,
            realsense_parameters(name, camera.serial, launch.value("frame_prefix")),
            block="-",
            required=False,
        )
        for name, camera in launch.cell.cameras.items()
    ]


def generate_launch_description():
    """Arguments and the nodes."""
    return describe(__file__, ARGUMENTS, start)
