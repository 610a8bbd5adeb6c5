# SPDX-License-Identifier: MIT
"""The listener, in a namespace."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue


def generate_launch_description():
    return LaunchDescription(
        [
            DeclareLaunchArgument("marker", default_value="heard"),
            Node(
                package="pip_ros2_demo",
                executable="listener",
                name="ear",
                namespace="left",
                output="screen",
                parameters=[
                    {"marker": ParameterValue(LaunchConfiguration("marker"), value_type=str)}
                ],
                remappings=[("chatter", "/conversation")],
            ),
        ]
    )
