# SPDX-License-Identifier: MIT
"""The policy alone: observations in, commands out; offers the RunEpisode action.

ros2 launch equi_bringup policy.launch.py model:=block_picking cell:=sim
"""

from equi_bringup.arguments import (
    AUTOSTART,
    COMMON,
    DRIVEN_BY,
    MODEL,
    SEED,
    cell_argument,
    whole_number,
)
from equi_bringup.cell_launch import describe

ARGUMENTS = (cell_argument(), *COMMON, MODEL, DRIVEN_BY, SEED, AUTOSTART)


def start(launch):
    """The policy node, or the expert in its place."""
    own = {"model": str(launch.model)}
    if launch.value("driven_by") == "policy":
        node = launch.node("equi_policy", "policy_node", "policy", own)
    else:
        own |= {
            "robot_ip": launch.robot_ip,
            "seed": whole_number("seed", launch.value("seed")),
        }
        node = launch.node("equi_cell_sim", "expert_policy_node", "policy", own)
    return [node, *launch.own_manager("policy")]


def generate_launch_description():
    """Arguments and the node."""
    return describe(__file__, ARGUMENTS, start)
