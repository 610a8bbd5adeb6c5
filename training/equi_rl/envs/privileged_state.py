# SPDX-License-Identifier: MIT
"""The simulator's state as numbers that do not change when the scene is rotated.

What a policy never sees and an asymmetric critic may see in training: which object is movable,
where everything is to the millimetre, how much time has passed. Positions are given in a frame of
the movable object: its origin is the block's centre or the drawer's handle, its x axis points to
the goal pad, into the cabinet, or to the other block. A quarter turn of scene and action changes
none of the numbers; other angles change only where the workspace's border lies.

A critic without symmetry, for comparison, gets the same numbers along the axes of base_link, and
the direction of that x axis instead of the border's (`StateFrame.BASE`).
"""

from __future__ import annotations

import math
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equi_rl.sim.object_parts import handle_position_m
from equi_rl.sim.scene import ObjectKind, SceneObject, Vector3, WorldState

_SCALES_M = (0.3, 0.08, 0.025)
"""Of a position: the first linear, the others saturate, so that millimetres count near zero."""
_LOW_M = 0.06
_NEAR_M = 0.11
_STEPS = 50.0


class StateFrame(str, Enum):
    """Along which axes positions, directions and actions are given to a critic."""

    SCENE = "scene"  # those of the movable object: invariant to rotations of the scene
    BASE = "base"  # those of base_link: not invariant


class PrivilegedState(NamedTuple):
    """The state at one frame."""

    values: NDArray[np.float32]
    """(STATE_SIZE,) numbers of order 1."""
    frame_rad: float
    """Angle from base_link x to the x axis of the frame that they are given in."""


class PrivilegedStateTracker:
    """Turns the states of one episode, in order, into numbers; remembers what was tried.

    Args:
        centre_xy_m: middle of the workspace in base_link.
        frame: along which axes the numbers are given.
    """

    def __init__(
        self, centre_xy_m: tuple[float, float], frame: StateFrame = StateFrame.SCENE
    ) -> None:
        self._centre_xy_m = centre_xy_m
        self._invariant = frame is StateFrame.SCENE
        self._start: tuple[Vector3, ...] = ()
        self._steps = 0
        self._low_steps = [0, 0]

    def observe(self, state: WorldState) -> PrivilegedState:
        """Numbers of the next state."""
        scene, objects = state.scene, state.scene.objects
        index = next(i for i, item in enumerate(objects) if item.movable)
        places = tuple(_place_m(item) for item in objects)
        self._start = self._start or places
        tcp = state.tcp_position_m
        if self._steps:
            for number, place in enumerate((places[index], places[1 - index])):
                near = math.hypot(place[0] - tcp[0], place[1] - tcp[1]) < _NEAR_M
                self._low_steps[number] += int(near and tcp[2] < _LOW_M)
        here, other, goal = places[index], places[1 - index], scene.goal_xy_m
        scene_rad = _frame_rad(objects[index], here, other, goal)
        frame = scene_rad if self._invariant else 0.0
        # Where the border that clips a step is, seen from the frame; or where the frame is.
        turned = 4 * frame if self._invariant else scene_rad
        goal_m = 0.0 if goal is None else math.hypot(goal[0] - here[0], goal[1] - here[1])
        angles = (scene.yaw_rad, objects[index].yaw_rad, objects[1 - index].yaw_rad)
        gripper, own, others = (angle - frame for angle in angles)
        elapsed = self._steps / _STEPS
        values = (
            *_at_scales(_rotated(tcp, here, frame)),
            *_at_scales((tcp[2] - 0.03,)),
            *_at_scales(_rotated(tcp, other, frame)),
            *(value / _SCALES_M[0] for value in _rotated(other, here, frame)),
            *(math.cos(2 * gripper), math.sin(2 * gripper)),
            *(math.cos(4 * own), math.sin(4 * own), math.cos(4 * others), math.sin(4 * others)),
            *(scene.opening, float(state.holding), float(state.blocked)),
            *(math.tanh(steps / 5.0) for steps in self._low_steps),
            float(self._low_steps[1] > 0),
            *_at_scales((objects[index].extension_m,), (0.05, 0.02, 0.008)),
            *_at_scales((math.dist(here, self._start[index]),), (0.3, 0.05, 0.01)),
            (here[2] - self._start[index][2]) / 0.05,
            *_at_scales((goal_m - 0.05 if goal is not None else 0.0,)),
            *(elapsed, elapsed**2),
            *(value / _SCALES_M[0] for value in _rotated(tcp, (*self._centre_xy_m, 0.0), frame)),
            *(math.cos(turned), math.sin(turned)),
        )
        self._steps += 1
        return PrivilegedState(np.array(values, dtype=np.float32), frame)


def _place_m(item: SceneObject) -> Vector3:
    return handle_position_m(item) if item.kind is ObjectKind.DRAWER else item.position_m


def _frame_rad(
    item: SceneObject, here: Vector3, other: Vector3, goal: tuple[float, float] | None
) -> float:
    if item.kind is ObjectKind.DRAWER:
        return item.yaw_rad
    x, y = goal if goal is not None else other[:2]
    return math.atan2(y - here[1], x - here[0])


def _rotated(point: Vector3, origin: Vector3, frame_rad: float) -> tuple[float, float]:
    """Horizontal part of a point, seen from an origin in a frame."""
    c, s = math.cos(frame_rad), math.sin(frame_rad)
    x, y = point[0] - origin[0], point[1] - origin[1]
    return c * x + s * y, c * y - s * x


def _at_scales(values: tuple[float, ...], scales_m: tuple[float, ...] = _SCALES_M) -> list[float]:
    coarse, *fine = scales_m
    return [
        number
        for value in values
        for number in (value / coarse, *(math.tanh(value / scale) for scale in fine))
    ]


STATE_SIZE = 45
"""Numbers of a state."""
