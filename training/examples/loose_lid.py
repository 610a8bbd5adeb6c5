# SPDX-License-Identifier: MIT
"""A task of one's own: two lids look alike, one of them is stuck; lift the loose one.

    export PYTHONPATH=training/examples EQUI_PLUGINS=loose_lid
    equi-demos record --task loose_lid --output lids.npz
    equi-train robot --task loose_lid --preset ship --folder runs/loose_lid

One file holds all that a task needs: where the objects are at the start, what counts as success,
and what an expert does. The audit of its symmetry, training, evaluation and export come with the
base class.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from equi_core.contract import PolicyContract
from equi_rl.envs.base import LEFT_WORKSPACE, HiddenPropertyEnv, Outcome, start_yaw
from equi_rl.envs.placement import distance_m, draw_until, in_square
from equi_rl.envs.registry import register_task
from equi_rl.experts import TaskPlan, VisibleFailure, register_expert
from equi_rl.experts.skills import Goal, pick
from equi_rl.sim.scene import ObjectKind, Scene, SceneObject, WorldState

LID_M = (0.05, 0.05, 0.035)
"""At most 5 cm: across its diagonal a lid still fits between the open fingers (8.5 cm)."""
PLACEMENT_HALF_M = 0.13
LEAST_DISTANCE_M = 0.13
LIFTED_M = 0.07
"""Height of the loose lid's centre that counts as lifted."""


class LooseLid(HiddenPropertyEnv):
    """Reward 1 when the loose lid is held with its centre above 7 cm."""

    task: ClassVar[str] = "loose_lid"

    def sample_scene(self, rng: np.random.Generator) -> Scene:
        """Two lids anywhere in a square, turned by a random angle: no heading is special."""
        centre = self.contract.workspace.centre_xy_m
        places = draw_until(
            lambda: tuple(in_square(rng, centre, PLACEMENT_HALF_M) for _ in range(2)),
            lambda pair: distance_m(*pair) > LEAST_DISTANCE_M,
        )
        loose = int(rng.integers(2))
        lids = tuple(
            SceneObject(
                ObjectKind.BLOCK,
                (*place, LID_M[2] / 2),
                float(rng.uniform(-math.pi / 4, math.pi / 4)),
                movable=index == loose,
                size_m=LID_M,
                mass_kg=0.05,
                friction=0.6,
            )
            for index, place in enumerate(places)
        )
        return Scene(objects=lids, tcp_position_m=(*centre, 0.2), yaw_rad=start_yaw(rng))

    def outcome(self, state: WorldState) -> Outcome:
        """Success when the loose lid is up and in the gripper."""
        held = state.held_object
        if held is not None and state.scene.objects[held].position_m[2] > LIFTED_M:
            return Outcome(reward=1.0, success=True)
        return Outcome(0.0, failure=LEFT_WORKSPACE if self._left_workspace(state) else "")


def lift(state: WorldState, index: int, contract: PolicyContract) -> Goal:
    """The skill: grasp a lid and raise it, as with a block."""
    return pick(state, index)


register_task("loose_lid", f"{__name__}:LooseLid")
register_expert(
    "loose_lid",
    TaskPlan(lift, tries=11, rises=5, reach_m=0.06, failure=VisibleFailure.SLIPPED),
)
