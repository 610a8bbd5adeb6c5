# SPDX-License-Identifier: MIT
"""Executables of the package. Nothing heavy is imported before the process can be stopped."""

from equi_ros.node_process import executable

evaluate = executable("equi_evaluation.evaluate_node")
play_bag = executable("equi_evaluation.bag.play_bag_node")
