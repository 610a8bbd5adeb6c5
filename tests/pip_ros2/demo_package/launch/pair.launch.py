# SPDX-License-Identifier: MIT
"""Talker and listener: arguments, parameter file, remapping, include, condition."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.conditions import IfCondition
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare


def generate_launch_description():
    share = FindPackageShare("pip_ros2_demo")
    return LaunchDescription(
        [
            DeclareLaunchArgument("text", default_value="hi", description="what the talker says"),
            DeclareLaunchArgument(
                "listen", default_value="true", choices=["true", "false"], description="listener?"
            ),
            Node(
                package="pip_ros2_demo",
                executable="talker",
                output="screen",
                parameters=[
                    PathJoinSubstitution([share, "config", "talker.yaml"]),
                    {"text": LaunchConfiguration("text")},
                ],
                remappings=[("chatter", "conversation")],
            ),
            IncludeLaunchDescription(
                PythonLaunchDescriptionSource(
                    PathJoinSubstitution([share, "launch", "listener.launch.py"])
                ),
                launch_arguments={"marker": ["got ", LaunchConfiguration("text"), ":"]}.items(),
                condition=IfCondition(LaunchConfiguration("listen")),
            ),
        ]
    )
