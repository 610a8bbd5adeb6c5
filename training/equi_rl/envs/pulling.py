# SPDX-License-Identifier: MIT
"""Block pulling: of two identical flat blocks, only one slides; bring it against the other."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from equi_rl.envs.base import LEFT_WORKSPACE, HiddenPropertyEnv, Outcome, start_yaw
from equi_rl.envs.placement import draw_until
from equi_rl.sim.scene import ObjectKind, Scene, SceneObject, WorldState

BLOCK_M = (0.10, 0.10, 0.05)
PLACEMENT_HALF_M = 0.115
LEAST_DISTANCE_M = 0.17


class BlockPulling(HiddenPropertyEnv):
    """Reward 1 when the two blocks touch."""

    task: ClassVar[str] = "block_pulling"

    def sample_scene(self, rng: np.random.Generator) -> Scene:
        """Two blocks 17 to 23 cm apart on a line at any heading through the placement circle."""
        centre = self.contract.workspace.centre_xy_m
        aside = float(rng.uniform(-PLACEMENT_HALF_M, PLACEMENT_HALF_M))
        along = draw_until(
            lambda: rng.uniform(-PLACEMENT_HALF_M, PLACEMENT_HALF_M, 2),
            lambda pair: abs(float(pair[0] - pair[1])) > LEAST_DISTANCE_M,
        )
        movable = bool(rng.integers(2))
        yaws = rng.uniform(-math.pi / 4, math.pi / 4, 2)
        objects = tuple(
            SceneObject(
                ObjectKind.BLOCK,
                (centre[0] + aside, centre[1] + float(place), BLOCK_M[2] / 2),
                float(yaw),
                mobility,
                size_m=BLOCK_M,
                mass_kg=0.5,
                friction=0.5,
            )
            for place, yaw, mobility in zip(along, yaws, (movable, not movable), strict=True)
        )
        scene = Scene(objects=objects, tcp_position_m=(*centre, 0.2), yaw_rad=start_yaw(rng))
        return scene.rotated(float(rng.uniform(0.0, 2 * math.pi)), centre)

    def outcome(self, state: WorldState) -> Outcome:
        """Success on contact between the blocks."""
        if self.world.in_contact(0, 1):
            return Outcome(reward=1.0, success=True)
        return Outcome(0.0, failure=LEFT_WORKSPACE if self._left_workspace(state) else "")
