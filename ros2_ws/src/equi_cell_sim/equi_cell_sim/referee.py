"""Scenes and verdicts of the simulated cell, by the task definitions that training uses.

The referee draws the scene of a seed exactly as the training environment does, and judges measured
states by the environment's own rule. It owns a shadow world, because "do the blocks touch" is a
question to the physics, not to a list of poses.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from equi_core.contract import PolicyContract
from equi_rl.envs import make_env
from equi_rl.envs.base import Outcome
from equi_rl.sim.objects import handle_position_m
from equi_rl.sim.scene import ObjectKind, Scene, SceneObject, WorldState

REACHED_M = 0.06
"""A gripper this near to an object's axis, and this low over it, tries that object [m]."""
LOW_M = 0.09


class RefereeError(ValueError):
    """A scene description that cannot be understood."""


class Referee:
    """Draws and judges episodes of one task."""

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

    def judge(self, state: WorldState) -> Outcome:
        """The task's verdict on a measured state."""
        self._env.world.reset(dataclasses.replace(state.scene, tcp_position_m=(0.5, 0.0, 0.25)))
        return self._env.judge(state)

    def first_tried(self, state: WorldState) -> int | None:
        """The object that the gripper is at, low and near enough to try it; None if at none."""
        x, y, z = state.tcp_position_m
        if z > LOW_M:
            return None
        places = [
            handle_position_m(item)[:2] if item.kind is ObjectKind.DRAWER else item.xy_m
            for item in state.scene.objects
        ]
        distances = [math.hypot(place[0] - x, place[1] - y) for place in places]
        nearest = min(range(len(distances)), key=distances.__getitem__, default=None)
        reach_m = REACHED_M + (
            0.0 if nearest is None else max(state.scene.objects[nearest].size_m[:2]) / 2 - 0.025
        )
        return nearest if nearest is not None and distances[nearest] <= reach_m else None

    def close(self) -> None:
        """Release the shadow world."""
        self._env.close()


def scene_request(scene: Scene) -> dict[str, Any]:
    """The scene as the emulator's control API takes it."""
    objects = []
    for item in scene.objects:
        plain = dataclasses.asdict(item)
        plain["kind"] = item.kind.value
        plain.pop("quaternion_xyzw", None)
        objects.append(plain)
    goal = scene.goal_xy_m
    return {"objects": objects, "goal_xy_m": None if goal is None else list(goal)}


def world_state(answer: Mapping[str, Any]) -> WorldState:
    """The measured state from the emulator's answer to `get_scene`."""
    try:
        objects = tuple(
            SceneObject(
                kind=ObjectKind(item["kind"]),
                position_m=tuple(item["position_m"]),
                yaw_rad=float(item["yaw_rad"]),
                movable=bool(item["movable"]),
                size_m=tuple(item["size_m"]),
                mass_kg=float(item["mass_kg"]),
                friction=float(item["friction"]),
                extension_m=float(item["extension_m"]),
                quaternion_xyzw=None
                if item.get("quaternion_xyzw") is None
                else tuple(item["quaternion_xyzw"]),
            )
            for item in answer["objects"]
        )
        goal = answer.get("goal_xy_m")
        scene = Scene(
            objects=objects,
            tcp_position_m=tuple(answer["tcp_position_m"]),
            yaw_rad=float(answer["yaw_rad"]),
            opening=float(answer["opening"]),
            goal_xy_m=None if goal is None else (float(goal[0]), float(goal[1])),
        )
        held = answer["held_object"]
        return WorldState(
            scene=scene,
            holding=bool(answer["holding"]),
            blocked=bool(answer.get("blocked", False)),
            held_object=None if held is None else int(held),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RefereeError(f"the emulator's scene cannot be read: {error!r}") from error
