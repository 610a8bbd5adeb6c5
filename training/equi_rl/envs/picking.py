# SPDX-License-Identifier: MIT
"""Block picking: of two identical cubes, only one can be lifted; lift it."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from equi_rl.envs.base import LEFT_WORKSPACE, HiddenPropertyEnv, Outcome, start_yaw
from equi_rl.envs.placement import Point, distance_m, draw_until, in_square
from equi_rl.sim.scene import ObjectKind, Scene, SceneObject, WorldState

CUBE_M = 0.05
PLACEMENT_HALF_M = 0.14
"""Cubes lie in a square of this half side about the middle of the workspace."""
LEAST_DISTANCE_M = 0.12
LIFTED_M = 0.08
"""Height of the movable cube's centre that counts as picked."""


def cube_at(place: Point, yaw_rad: float, movable: bool) -> SceneObject:
    """A cube standing on the table."""
    return SceneObject(
        ObjectKind.BLOCK,
        (*place, CUBE_M / 2),
        yaw_rad,
        movable,
        size_m=(CUBE_M, CUBE_M, CUBE_M),
        mass_kg=0.1,
        friction=0.6,
    )


class BlockPicking(HiddenPropertyEnv):
    """Reward 1 when the movable cube is held with its centre above 8 cm."""

    task: ClassVar[str] = "block_picking"

    def sample_scene(self, rng: np.random.Generator) -> Scene:
        """Two cubes anywhere in the placement square, at least 12 cm apart, at any yaw."""
        centre = self.contract.workspace.centre_xy_m
        first, second = draw_until(
            lambda: (
                in_square(rng, centre, PLACEMENT_HALF_M),
                in_square(rng, centre, PLACEMENT_HALF_M),
            ),
            lambda pair: distance_m(*pair) > LEAST_DISTANCE_M,
        )
        movable = bool(rng.integers(2))
        yaws = rng.uniform(-math.pi / 4, math.pi / 4, 2)
        return Scene(
            objects=(
                cube_at(first, float(yaws[0]), movable),
                cube_at(second, float(yaws[1]), not movable),
            ),
            tcp_position_m=(*centre, 0.2),
            yaw_rad=start_yaw(rng),
        )

    def outcome(self, state: WorldState) -> Outcome:
        """Success when the movable cube is held high enough."""
        held = state.held_object
        if held is not None:
            item = state.scene.objects[held]
            if item.movable and item.position_m[2] > LIFTED_M:
                return Outcome(reward=1.0, success=True)
        return Outcome(0.0, failure=LEFT_WORKSPACE if self._left_workspace(state) else "")
