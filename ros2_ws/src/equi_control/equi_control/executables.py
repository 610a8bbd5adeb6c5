# SPDX-License-Identifier: MIT
"""Executables of the package. Nothing heavy is imported before the process can be stopped."""

from equi_ros.node_process import executable

rtde_driver_node = executable("equi_control.rtde_driver_node")
