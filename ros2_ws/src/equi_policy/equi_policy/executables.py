# SPDX-License-Identifier: MIT
"""Executables of the package. Nothing heavy is imported before the process can be stopped."""

from equi_ros.node_process import executable

policy_node = executable("equi_policy.policy_node")
