# SPDX-License-Identifier: MIT
"""Executable of the manager. Nothing heavy is imported before the process can be stopped."""

from equi_ros.node_process import executable

lifecycle_manager_node = executable("equi_ros.lifecycle.lifecycle_manager_node")
