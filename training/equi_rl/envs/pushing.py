# SPDX-License-Identifier: MIT
"""Block pushing: of two identical cubes, only one slides; push it, without lifting, to a pad."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from equi_rl.envs.base import LEFT_WORKSPACE, HiddenPropertyEnv, Outcome, start_yaw
from equi_rl.envs.picking import LEAST_DISTANCE_M, PLACEMENT_HALF_M, cube_at
from equi_rl.envs.placement import Point, distance_m, draw_until, in_square
from equi_rl.sim.scene import Scene, WorldState

GOAL_HALF_M = 0.135
GOAL_CLEARANCE_M = 0.09
"""Least distance from the pad's centre to either cube at the start."""
DETOUR_M = 0.1
"""How much longer the way from movable cube to pad by way of the other one must be."""
GOAL_RADIUS_M = 0.05
LIFT_M = 0.005
LIFT_PENALTY = 0.1


class BlockPushing(HiddenPropertyEnv):
    """Reward 1 when the movable cube is within 5 cm of the pad; -0.1 for a step that lifts it."""

    task: ClassVar[str] = "block_pushing"

    def sample_scene(self, rng: np.random.Generator) -> Scene:
        """Two cubes and a pad, apart from each other, the immovable cube not in the way."""
        centre = self.contract.workspace.centre_xy_m

        def draw() -> tuple[Point, Point, Point]:
            return (
                in_square(rng, centre, PLACEMENT_HALF_M),
                in_square(rng, centre, PLACEMENT_HALF_M),
                in_square(rng, centre, GOAL_HALF_M),
            )

        def accept(places: tuple[Point, Point, Point]) -> bool:
            movable, fixed, goal = places
            detour = (
                distance_m(fixed, goal) + distance_m(fixed, movable) - distance_m(movable, goal)
            )
            return (
                distance_m(movable, fixed) > LEAST_DISTANCE_M
                and distance_m(movable, goal) > GOAL_CLEARANCE_M
                and distance_m(fixed, goal) > GOAL_CLEARANCE_M
                and detour > DETOUR_M
            )

        movable, fixed, goal = draw_until(draw, accept)
        yaws = rng.uniform(-math.pi / 4, math.pi / 4, 2)
        objects = [cube_at(movable, float(yaws[0]), True), cube_at(fixed, float(yaws[1]), False)]
        if rng.integers(2):
            objects.reverse()
        return Scene(
            objects=tuple(objects),
            tcp_position_m=(*centre, 0.2),
            yaw_rad=start_yaw(rng),
            goal_xy_m=goal,
        )

    def outcome(self, state: WorldState) -> Outcome:
        """Success near the pad; a lifted movable cube costs a penalty."""
        index = next(i for i, item in enumerate(state.scene.objects) if item.movable)
        now, before = state.scene.objects[index], self._start.scene.objects[index]
        lifted = abs(now.position_m[2] - before.position_m[2]) >= LIFT_M
        penalty = LIFT_PENALTY if lifted else 0.0
        if state.scene.goal_xy_m is not None and (
            distance_m(now.xy_m, state.scene.goal_xy_m) < GOAL_RADIUS_M
        ):
            return Outcome(reward=1.0 - penalty, success=True)
        return Outcome(0.0 - penalty, failure=LEFT_WORKSPACE if self._left_workspace(state) else "")
