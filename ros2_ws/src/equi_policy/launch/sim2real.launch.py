# SPDX-License-Identifier: MIT
"""Everything: cameras to motion, in the simulated cell or on the robot.

ros2 launch equi_policy sim2real.launch.py --show-args

The front door; the file itself, its cells and its pieces are in the package equi_bringup.
"""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource


def generate_launch_description():
    """The file of the same name in equi_bringup, with all of its arguments."""
    # A plain path, so that --show-args can look into it.
    file = Path(get_package_share_directory("equi_bringup"), "launch", "sim2real.launch.py")
    return LaunchDescription([IncludeLaunchDescription(PythonLaunchDescriptionSource(str(file)))])
