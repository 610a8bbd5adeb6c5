# SPDX-License-Identifier: MIT
"""Perception alone: clouds and robot state in, observations out.

ros2 launch equi_bringup perception.launch.py cell:=sim model:=block_picking
"""

from equi_bringup.arguments import (
    AUTOSTART,
    CALIBRATION,
    COMMON,
    IGNORE_CALIBRATION,
    MODEL,
    cell_argument,
)
from equi_bringup.cell_launch import describe

ARGUMENTS = (cell_argument(), *COMMON, MODEL, CALIBRATION, IGNORE_CALIBRATION, AUTOSTART)


def start(launch):
    """The fusion node with the settings of the cell."""
    own = {
        "model": str(launch.model),
        "calibration": str(launch.calibration),
        "ignore_calibration_verdict": launch.flag("ignore_calibration"),
    }
    node = launch.node("equi_perception", "depth_fusion_node", "depth_fusion", own)
    return [node, *launch.own_manager("depth_fusion")]


def generate_launch_description():
    """Arguments and the node."""
    return describe(__file__, ARGUMENTS, start)
