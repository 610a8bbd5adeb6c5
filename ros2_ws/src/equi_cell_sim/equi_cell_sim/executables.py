# SPDX-License-Identifier: MIT
"""Executables of the package. Nothing heavy is imported before the process can be stopped."""

from equi_ros.node_process import executable

camera_node = executable("equi_cell_sim.camera_node")
scene_node = executable("equi_cell_sim.scene_node")
expert_policy_node = executable("equi_cell_sim.expert_policy_node")
emulator = executable("ur_emulator.main")
wait_ready = executable("equi_cell_sim.wait_ready")
