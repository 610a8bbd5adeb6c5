# SPDX-License-Identifier: MIT
"""What lies on the table and where the gripper is: plain, immutable data.

A `Scene` is what a world is built from and what it reports back, so a test can rotate a scene by a
quarter turn, an environment can draw one, and an expert can read poses, all without physics.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from equi_core.geometry import rotation_about_z
from equi_rl.sim.errors import SceneError

Vector3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]


class ObjectKind(Enum):
    """What an object is."""

    BLOCK = "block"
    DRAWER = "drawer"


@dataclass(frozen=True)
class SceneObject:
    """A block, or a drawer in its cabinet, standing on the table."""

    kind: ObjectKind
    position_m: Vector3
    """Block: its centre. Drawer: centre of the cabinet's foot on the table. In base_link."""
    yaw_rad: float
    """Rotation about the vertical. A drawer at yaw 0 opens towards base_link -x."""
    movable: bool
    """Whether it yields to a push: the hidden property. Nothing else may depend on it."""
    size_m: Vector3 = (0.05, 0.05, 0.05)
    """Block: extents. Drawer: extents of the cabinet."""
    mass_kg: float = 0.1
    """Block, or sliding part of the drawer."""
    friction: float = 1.0
    """Coulomb coefficient against the table and, times the fingers' own, against the fingers."""
    extension_m: float = 0.0
    """Drawer: how far it is pulled out."""
    quaternion_xyzw: Quaternion | None = None
    """Full orientation where a block is tipped; None means upright with `yaw_rad`."""

    def __post_init__(self) -> None:
        numbers = [*self.position_m, self.yaw_rad, *self.size_m, self.mass_kg, self.friction]
        if not all(math.isfinite(number) for number in numbers):
            raise SceneError(f"{self.kind.value}: every number must be finite, got {numbers}")
        if min(self.size_m) <= 0 or self.mass_kg <= 0 or self.friction < 0:
            raise SceneError(
                f"{self.kind.value}: size {self.size_m} and mass {self.mass_kg} must be positive, "
                f"friction {self.friction} not negative"
            )

    @property
    def xy_m(self) -> tuple[float, float]:
        """Place on the table [m]."""
        return self.position_m[0], self.position_m[1]

    @property
    def heading(self) -> tuple[float, float]:
        """Unit vector of the object's x axis on the table."""
        return math.cos(self.yaw_rad), math.sin(self.yaw_rad)


@dataclass(frozen=True)
class Scene:
    """Everything that an episode starts from, or is in at some moment."""

    objects: tuple[SceneObject, ...]
    tcp_position_m: Vector3 = (0.5, 0.0, 0.2)
    yaw_rad: float = 0.0
    """Angle from base_link x to the axis along which the fingers open, up to half a turn."""
    opening: float = 1.0
    """Gap between the pads as a fraction of the full opening."""
    goal_xy_m: tuple[float, float] | None = None
    """Centre of the goal pad, in tasks that have one."""

    def rotated(self, angle_rad: float, about_xy_m: Sequence[float]) -> Scene:
        """The same scene rotated counter-clockwise about a vertical axis."""
        return dataclasses.replace(
            self,
            objects=tuple(
                dataclasses.replace(
                    item,
                    position_m=_rotated(item.position_m, angle_rad, about_xy_m),
                    yaw_rad=item.yaw_rad + angle_rad,
                    quaternion_xyzw=None
                    if item.quaternion_xyzw is None
                    else _turned_quaternion(item.quaternion_xyzw, angle_rad),
                )
                for item in self.objects
            ),
            tcp_position_m=_rotated(self.tcp_position_m, angle_rad, about_xy_m),
            yaw_rad=self.yaw_rad + angle_rad,
            goal_xy_m=None
            if self.goal_xy_m is None
            else _rotated((*self.goal_xy_m, 0.0), angle_rad, about_xy_m)[:2],
        )

    def with_mobility_swapped(self) -> Scene:
        """The same scene with the hidden property exchanged: movable becomes immovable."""
        return dataclasses.replace(
            self,
            objects=tuple(
                dataclasses.replace(item, movable=not item.movable) for item in self.objects
            ),
        )


@dataclass(frozen=True)
class WorldState:
    """A scene as measured, with what the robot reports of itself."""

    scene: Scene
    holding: bool
    """The gripper was stopped by something between its fingers while closing."""
    blocked: bool
    """The last move was stopped short by something."""
    held_object: int | None
    """Index of the object that both pads touch while `holding`; None if it is none of them."""

    @property
    def tcp_position_m(self) -> Vector3:
        """Measured TCP position in base_link."""
        return self.scene.tcp_position_m

    @property
    def yaw_rad(self) -> float:
        """Measured gripper yaw."""
        return self.scene.yaw_rad


def _rotated(position_m: Vector3, angle_rad: float, about_xy_m: Sequence[float]) -> Vector3:
    pivot = np.array([*about_xy_m, 0.0])
    x, y, z = rotation_about_z(angle_rad) @ (np.asarray(position_m) - pivot) + pivot
    return float(x), float(y), float(z)


def _turned_quaternion(quaternion: Quaternion, angle_rad: float) -> Quaternion:
    """Product of a rotation about z with a quaternion x, y, z, w."""
    s, c = math.sin(angle_rad / 2), math.cos(angle_rad / 2)
    x, y, z, w = quaternion
    return (c * x - s * y, c * y + s * x, c * z + s * w, c * w - s * z)
