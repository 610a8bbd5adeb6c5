# SPDX-License-Identifier: MIT
"""Executables of the package. Nothing heavy is imported before the process can be stopped."""

from equi_ros.node_process import executable

robot_state_publisher = executable("equi_description.robot_state_publisher_node")
motion_marker_node = executable("equi_description.motion_marker_node")
