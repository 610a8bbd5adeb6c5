# SPDX-License-Identifier: MIT
"""A stiff arm's fingers cannot pass through the edge of a block: they meet it, and stop."""

from __future__ import annotations

import dataclasses

from equi_rl.envs import make_env
from equi_rl.envs.arm_options import arm_options

SEED = 900_000_006
ACTIONS = (
    (0.138, -0.703, 0.455, -0.998, -0.345),
    (0.054, -0.167, -0.108, -0.947, -0.136),
    (0.094, 0.029, -0.045, -0.499, -0.648),
    (0.094, 0.114, -0.067, -0.152, -0.919),
    (0.069, 0.436, 0.186, -0.523, -0.943),
)
"""Of a policy that had learned to cut the corner: the last one leads a finger onto the block."""


def test_a_finger_that_comes_down_on_the_edge_of_a_block_is_blocked() -> None:
    env = make_env("block_pushing", **dict(arm_options(stiff=True)))
    try:
        scene = dataclasses.replace(env.scene_of_seed(SEED), yaw_rad=0.0)
        env.reset(seed=SEED, options={"scene": scene})
        blocked = [env.step(action)[4]["blocked"] for action in ACTIONS]
    finally:
        env.close()
    assert blocked == [False, False, False, False, True]
