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

from equi_cell_sim.expert_policy import ExpertPolicy
from equi_cell_sim.scene_data import read_state
from equi_core.contract import PolicyContract
from equi_policy.policy_node import PolicyNode
from equi_ros.parameters import declare
from equi_ros.run_node import run_node


class ExpertPolicyNode(PolicyNode):
    """A policy node driven by the expert."""

    def __init__(self) -> None:
        super().__init__()
        declare(self, "robot_ip", "127.0.0.2", "address of the emulated robot")
        declare(self, "seed", 0, "seed of the expert's choices", read_only=False)

    def load_policy(self) -> ExpertPolicy:
        """The expert for the contract of the parameter `model`."""
        model = Path(str(self.get_parameter("model").value))
        address = str(self.get_parameter("robot_ip").value)
        seed = int(self.get_parameter("seed").value)
        self.get_logger().warning("the scripted EXPERT acts on ground truth; not a learned policy")
        contract = PolicyContract.load(model / "contract.json", allow_unsigned=True)
        return ExpertPolicy(contract, lambda: read_state(address), seed)


def main(args: list[str] | None = None) -> int:
    """Entry point of the node."""
    return run_node("policy", ExpertPolicyNode, args, refusals=(ValueError,))


if __name__ == "__main__":
    sys.exit(main())
