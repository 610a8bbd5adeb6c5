# SPDX-License-Identifier: MIT
"""Executables of the package. Nothing heavy is imported before the process can be stopped."""

from equi_ros.node_process import executable

depth_fusion_node = executable("equi_perception.depth_fusion_node")
