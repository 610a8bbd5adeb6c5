# SPDX-License-Identifier: MIT
"""Scenes and success of the simulated cell, by the task definitions that training uses.

The scene of a seed is the one that the training environment draws, and a measured state succeeds or
fails by the environment's own rule. That needs a physics world of its own, because "do the blocks
touch" is a question to the physics, not to a list of poses.
"""

from __future__ import annotations

import dataclasses
import math

from equi_core.contract import PolicyContract
from equi_rl.envs import make_env
from equi_rl.envs.base import Outcome
from equi_rl.sim.objects import handle_position_m
from equi_rl.sim.scene import ObjectKind, Scene, WorldState

REACHED_M = 0.06
"""A gripper this near to an object's axis, and lower than `LOW_M`, tries that object [m]."""
LOW_M = 0.09


class GroundTruth:
    """Draws scenes of one task and evaluates measured states."""

    def __init__(self, task: str, contract: PolicyContract | None = None) -> None:
        self.task = task
        self._env = make_env(task, contract=contract)

    def scene(self, seed: int) -> Scene:
        """The scene with which the training environment starts under this seed."""
        self._env.reset(seed=seed)
        return self._env.state().scene

    def begin(self, scene: Scene) -> None:
        """Remember the start of an episode: some rules compare with it."""
        self._env.reset(seed=0, options={"scene": scene})

    def outcome(self, state: WorldState) -> Outcome:
        """Success or failure of the task in a measured state."""
        self._env.world.reset(dataclasses.replace(state.scene, tcp_position_m=(0.5, 0.0, 0.25)))
        return self._env.outcome(state)

    def first_tried(self, state: WorldState) -> int | None:
        """The object that the gripper is at, low and near enough to try it; None if at none."""
        x, y, z = state.tcp_position_m
        if z > LOW_M:
            return None
        handles_m = [
            handle_position_m(item)[:2] if item.kind is ObjectKind.DRAWER else item.xy_m
            for item in state.scene.objects
        ]
        distances_m = [math.hypot(handle[0] - x, handle[1] - y) for handle in handles_m]
        nearest = min(range(len(distances_m)), key=distances_m.__getitem__, default=None)
        reach_m = REACHED_M + (
            0.0 if nearest is None else max(state.scene.objects[nearest].size_m[:2]) / 2 - 0.025
        )
        return nearest if nearest is not None and distances_m[nearest] <= reach_m else None

    def close(self) -> None:
        """Release the physics world."""
        self._env.close()
