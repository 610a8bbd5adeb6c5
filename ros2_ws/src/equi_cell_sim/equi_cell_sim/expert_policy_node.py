# SPDX-License-Identifier: MIT
"""expert_policy_node: the policy node with the scripted expert in place of learned weights.

    ros2 run equi_cell_sim expert_policy_node --ros-args -p robot_ip:=127.0.0.2 \
        -p model:=path/to/a/folder/with/contract.json

Simulated cell only: the expert reads the emulator's ground truth. Everything else (session, reset,
commands, RunEpisode) is the code that runs a trained policy.
"""

from __future__ import annotations

import sys
from pathlib import Path

import rclpy
from rclpy.node import Node

from equi_cell_sim.expert_policy import ExpertPolicy
from equi_cell_sim.scene_data import read_state
from equi_core.contract import PolicyContract
from equi_policy.policy_node import PolicyNode
from equi_ros.run_node import run_node


def make_node() -> Node:
    """A policy node driven by the expert."""
    settings = rclpy.create_node("policy_settings")
    model = Path(str(settings.declare_parameter("model", "").value))
    address = str(settings.declare_parameter("robot_ip", "127.0.0.2").value)
    seed = int(settings.declare_parameter("seed", 0).value)
    settings.destroy_node()

    contract = PolicyContract.load(model / "contract.json")
    node = PolicyNode(ExpertPolicy(contract, lambda: read_state(address), seed))
    node.get_logger().warning("the scripted EXPERT acts on ground truth; not a learned policy")
    return node


def main(args: list[str] | None = None) -> int:
    """Entry point of the node."""
    return run_node("policy", make_node, args, refusals=(ValueError,))


if __name__ == "__main__":
    sys.exit(main())
