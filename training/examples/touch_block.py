# SPDX-License-Identifier: MIT
"""A task without a secret: go down to either of two blocks, both of which can be moved.

    export PYTHONPATH=training/examples EQUI_PLUGINS=touch_block
    equi-train slac --task touch_block --folder runs/touch_block

One observation says all that the task needs, so an agent that fails here fails for another reason
than partial observability. The page on SLAC says how far SLAC gets here.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from equi_core.contract import PolicyContract
from equi_rl.envs.base import LEFT_WORKSPACE, HiddenPropertyEnv, Outcome, start_yaw
from equi_rl.envs.picking import LEAST_DISTANCE_M, PLACEMENT_HALF_M, cube_at
from equi_rl.envs.placement import distance_m, draw_until, in_square
from equi_rl.envs.registry import register_task
from equi_rl.experts import TaskPlan, register_expert
from equi_rl.experts.skills import Goal, pick
from equi_rl.sim.scene import Scene, WorldState

TOUCHED_WITHIN_M = 0.03
"""Horizontal distance from gripper to block that counts as above it."""
TOUCHED_BELOW_M = 0.06
"""Height of the gripper that counts as down at a block of 5 cm."""


class TouchBlock(HiddenPropertyEnv):
    """Reward 1 when the gripper is down at a block."""

    task: ClassVar[str] = "touch_block"

    def sample_scene(self, rng: np.random.Generator) -> Scene:
        """Two cubes as in block picking, both movable."""
        centre = self.contract.workspace.centre_xy_m
        places = draw_until(
            lambda: tuple(in_square(rng, centre, PLACEMENT_HALF_M) for _ in range(2)),
            lambda pair: distance_m(*pair) > LEAST_DISTANCE_M,
        )
        yaws = rng.uniform(-math.pi / 4, math.pi / 4, 2)
        return Scene(
            objects=tuple(
                cube_at(place, float(yaw), movable=True)
                for place, yaw in zip(places, yaws, strict=True)
            ),
            tcp_position_m=(*centre, 0.2),
            yaw_rad=start_yaw(rng),
        )

    def outcome(self, state: WorldState) -> Outcome:
        """Success when the gripper is low and above a block."""
        x, y, z = state.tcp_position_m
        near = min(distance_m((x, y), item.xy_m) for item in state.scene.objects)
        if z < TOUCHED_BELOW_M and near < TOUCHED_WITHIN_M:
            return Outcome(reward=1.0, success=True)
        return Outcome(0.0, failure=LEFT_WORKSPACE if self._left_workspace(state) else "")


def go_down(state: WorldState, index: int, contract: PolicyContract) -> Goal:
    """The skill: as for a grasp."""
    return pick(state, index)


register_task("touch_block", f"{__name__}:TouchBlock")
register_expert("touch_block", TaskPlan(go_down, tries=11, rises=5, reach_m=0.06))
