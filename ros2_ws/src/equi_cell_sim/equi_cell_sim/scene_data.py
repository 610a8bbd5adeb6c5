# SPDX-License-Identifier: MIT
"""Scenes as plain data on their way through the emulator's control API."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from equi_rl.sim.scene import ObjectKind, Scene, SceneObject, WorldState
from ur_emulator.client import EmulatorClient


class SceneDataError(ValueError):
    """A scene that cannot be understood; names what is wrong."""


def state_to_data(state: WorldState) -> dict[str, Any]:
    """A measured state as the answer to `get_scene`."""
    data = dataclasses.asdict(state.scene)
    data["objects"] = [_object_to_data(item) for item in state.scene.objects]
    return {**data, "holding": state.holding, "held_object": state.held_object}


def state_from_data(data: Mapping[str, Any]) -> WorldState:
    """The measured state from an answer to `get_scene`."""
    try:
        scene = Scene(
            objects=tuple(object_from_data(item) for item in data["objects"]),
            tcp_position_m=tuple(data["tcp_position_m"]),
            yaw_rad=float(data["yaw_rad"]),
            opening=float(data["opening"]),
            goal_xy_m=goal_from_data(data),
        )
        held = data["held_object"]
        return WorldState(
            scene=scene,
            holding=bool(data["holding"]),
            blocked=bool(data.get("blocked", False)),
            held_object=None if held is None else int(held),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise SceneDataError(f"the emulator's scene cannot be read: {error!r}") from error


def scene_request(scene: Scene) -> dict[str, Any]:
    """Objects and goal as `set_scene` takes them; every object stands upright."""
    objects = [_object_to_data(item) for item in scene.objects]
    for item in objects:
        item.pop("quaternion_xyzw")
    goal = scene.goal_xy_m
    return {"objects": objects, "goal_xy_m": None if goal is None else list(goal)}


def object_from_data(item: Mapping[str, Any]) -> SceneObject:
    """A scene object; raises SceneDataError with the fields' names if it is malformed."""
    known = {field.name for field in dataclasses.fields(SceneObject)}
    if set(item) - known or not {"kind", "position_m", "yaw_rad", "movable"} <= set(item):
        raise SceneDataError(
            f"scene object has fields {sorted(item)}; needed are kind, position_m, yaw_rad, "
            f"movable, and known besides {sorted(known - set(item))}"
        )
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in item.items()
    }
    values["kind"] = ObjectKind(values["kind"])
    return SceneObject(**values)


def goal_from_data(data: Mapping[str, Any]) -> tuple[float, float] | None:
    """The goal (x, y) [m] on the table, if there is one."""
    goal = data.get("goal_xy_m")
    return None if goal is None else (float(goal[0]), float(goal[1]))


def read_state(address: str) -> WorldState:
    """The measured state of the emulated cell at a loopback address."""
    with EmulatorClient(address) as cell:
        return state_from_data(cell.request("get_scene")["scene"])


def _object_to_data(item: SceneObject) -> dict[str, Any]:
    return {**dataclasses.asdict(item), "kind": item.kind.value}
