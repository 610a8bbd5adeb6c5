# SPDX-License-Identifier: MIT
"""Bodies of blocks and drawers: the shapes they are made of, and their PyBullet counterparts.

Movable and immovable bodies are built from the same shapes at the same place, and look the same
until something happens to them. A simulated body that is free to move sinks into its support by
some hundredths of a millimetre, which would give it away; so an object reports, and is drawn at,
exactly the pose at which it was put until it was displaced by more than `AT_REST_M`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from equi_rl.sim.bullet import BulletClient, pybullet
from equi_rl.sim.object_parts import LIE_ALONG_Y, Part, handle_position_m, parts_of
from equi_rl.sim.raycast import Kind, ShapeTable
from equi_rl.sim.scene import ObjectKind, Quaternion, SceneObject, Vector3

FloatArray = NDArray[np.float64]

__all__ = ["SimObject", "handle_position_m"]

DRAWER_STROKE_M = 0.10
DRAWER_FRICTION_N = 4.0
"""Force that moves the unlocked drawer: it stops with the hand that pulls it."""
AT_REST_M = 1e-4
"""Displacement below which an object still counts as untouched."""
_AT_REST_TURN = 1e-3
_SLEEPING = pybullet.ACTIVATION_STATE_SLEEP | pybullet.ACTIVATION_STATE_ENABLE_SLEEPING


class SimObject:
    """One object in a running simulation."""

    def __init__(self, client: BulletClient, spec: SceneObject, body: int) -> None:
        """Build the object; `body` is its id in segmentation images."""
        self.spec = spec
        self._client = client
        self._parts = parts_of(spec.kind, spec.size_m)
        self._rest_quaternion = spec.quaternion_xyzw or _yaw_quaternion(spec.yaw_rad)
        self._displaced = False
        self._slides = np.array([part.slides for part in self._parts])
        self._local_centre = np.array([part.centre_m for part in self._parts], dtype=np.float64)
        self._local_rotation = np.array(
            [LIE_ALONG_Y if part.along_y else np.eye(3) for part in self._parts]
        )
        self._table = ShapeTable(
            np.array([part.kind for part in self._parts], dtype=np.int64),
            np.array([part.size_m for part in self._parts], dtype=np.float64),
            self._local_rotation,
            self._local_centre,
            np.array([part.colour for part in self._parts], dtype=np.float64),
            np.full(len(self._parts), body, dtype=np.int64),
        )
        build = _build_block if spec.kind is ObjectKind.BLOCK else _build_drawer
        self.body_id = build(client, spec, self._parts)

    def pose(self) -> tuple[Vector3, Quaternion]:
        """Position in base_link [m] and quaternion x, y, z, w."""
        if not self.spec.movable or self.spec.kind is ObjectKind.DRAWER:
            return self.spec.position_m, self._rest_quaternion
        position, quaternion = self._client.getBasePositionAndOrientation(self.body_id)
        if not self._displaced:
            moved = max(abs(a - b) for a, b in zip(position, self.spec.position_m, strict=True))
            rotated = max(
                abs(a - b) for a, b in zip(quaternion, self._rest_quaternion, strict=True)
            )
            self._displaced = moved > AT_REST_M or rotated > _AT_REST_TURN
            if not self._displaced:
                return self.spec.position_m, self._rest_quaternion
            # From now on it stays awake: a sleeping block would hang in the air when let go.
            self._client.changeDynamics(
                self.body_id, -1, activationState=pybullet.ACTIVATION_STATE_DISABLE_SLEEPING
            )
        return position, quaternion

    def extension_m(self) -> float:
        """How far a drawer is pulled out; 0 for blocks."""
        if not self.spec.movable or self.spec.kind is ObjectKind.BLOCK:
            return self.spec.extension_m
        extension = float(self._client.getJointState(self.body_id, 0)[0])
        if not self._displaced:
            self._displaced = abs(extension - self.spec.extension_m) > AT_REST_M
        return extension if self._displaced else self.spec.extension_m

    def speed_m_s(self) -> float:
        """Speed of what can move of it."""
        if not self.spec.movable:
            return 0.0
        if self.spec.kind is ObjectKind.DRAWER:
            return abs(float(self._client.getJointState(self.body_id, 0)[1]))
        linear, _ = self._client.getBaseVelocity(self.body_id)
        return math.sqrt(linear[0] ** 2 + linear[1] ** 2 + linear[2] ** 2)

    def measured(self) -> SceneObject:
        """The object as it is now."""
        position, quaternion = self.pose()
        yaw = _yaw(quaternion)
        upright = quaternion[0] == 0.0 and quaternion[1] == 0.0
        return SceneObject(
            kind=self.spec.kind,
            position_m=position,
            yaw_rad=yaw,
            movable=self.spec.movable,
            size_m=self.spec.size_m,
            mass_kg=self.spec.mass_kg,
            friction=self.spec.friction,
            extension_m=self.extension_m(),
            quaternion_xyzw=None if upright else quaternion,
        )

    def posed_shapes(self) -> ShapeTable:
        """Its shapes in base_link as they are now."""
        position, quaternion = self.pose()
        base_rotation = _matrix(quaternion)
        centre = self._local_centre
        extension = self.extension_m()
        if extension != 0.0:
            centre = centre.copy()
            centre[self._slides, 0] -= extension
        return ShapeTable(
            self._table.kind,
            self._table.size_m,
            base_rotation @ self._local_rotation,
            centre @ base_rotation.T + np.asarray(position),
            self._table.colour,
            self._table.body,
        )


def _build_block(client: BulletClient, spec: SceneObject, parts: tuple[Part, ...]) -> int:
    shape = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=parts[0].size_m)
    quaternion = spec.quaternion_xyzw or _yaw_quaternion(spec.yaw_rad)
    body: int = client.createMultiBody(
        spec.mass_kg if spec.movable else 0.0,
        shape,
        basePosition=spec.position_m,
        baseOrientation=quaternion,
        useMaximalCoordinates=True,
    )
    client.changeDynamics(
        body,
        -1,
        lateralFriction=spec.friction,
        restitution=0.0,
        linearDamping=0.04,
        angularDamping=0.04,
        activationState=_SLEEPING,
    )
    return body


def _build_drawer(client: BulletClient, spec: SceneObject, parts: tuple[Part, ...]) -> int:
    fixed = [part for part in parts if not (part.slides and spec.movable)]
    slot: dict[str, object] = {}
    if spec.movable:
        sliding = [part for part in parts if part.slides]
        slot = {
            "linkMasses": [spec.mass_kg],
            "linkCollisionShapeIndices": [_compound(client, sliding, 0.0)],
            "linkVisualShapeIndices": [-1],
            "linkPositions": [(0.0, 0.0, 0.0)],
            "linkOrientations": [(0.0, 0.0, 0.0, 1.0)],
            "linkInertialFramePositions": [(0.0, 0.0, 0.02)],
            "linkInertialFrameOrientations": [(0.0, 0.0, 0.0, 1.0)],
            "linkParentIndices": [0],
            "linkJointTypes": [pybullet.JOINT_PRISMATIC],
            "linkJointAxis": [(-1.0, 0.0, 0.0)],
        }
    extension = 0.0 if spec.movable else spec.extension_m
    body: int = client.createMultiBody(
        0.0,
        _compound(client, fixed, extension),
        basePosition=spec.position_m,
        baseOrientation=_yaw_quaternion(spec.yaw_rad),
        **slot,
    )
    client.changeDynamics(body, -1, lateralFriction=spec.friction, restitution=0.0)
    if spec.movable:
        client.changeDynamics(
            body,
            0,
            lateralFriction=spec.friction,
            restitution=0.0,
            jointLowerLimit=-0.0005,
            jointUpperLimit=DRAWER_STROKE_M,
            jointDamping=0.0,
            linearDamping=0.0,
            angularDamping=0.0,
        )
        client.resetJointState(body, 0, spec.extension_m)
        # A motor that wants no speed, with little force, is dry friction.
        client.setJointMotorControl2(
            body, 0, pybullet.VELOCITY_CONTROL, targetVelocity=0.0, force=DRAWER_FRICTION_N
        )
    return body


def _compound(client: BulletClient, parts: list[Part], extension_m: float) -> int:
    types, halves, radii, lengths, centres, orientations = [], [], [], [], [], []
    for part in parts:
        is_box = part.kind is Kind.BOX
        types.append(pybullet.GEOM_BOX if is_box else pybullet.GEOM_CAPSULE)
        halves.append(part.size_m if is_box else (0.0, 0.0, 0.0))
        radii.append(0.0 if is_box else part.size_m[0])
        lengths.append(0.0 if is_box else 2 * part.size_m[1])
        shift = extension_m if part.slides else 0.0
        centres.append((part.centre_m[0] - shift, part.centre_m[1], part.centre_m[2]))
        orientations.append(
            tuple(Rotation.from_matrix(LIE_ALONG_Y).as_quat())
            if part.along_y
            else (0.0, 0.0, 0.0, 1.0)
        )
    shape: int = client.createCollisionShapeArray(
        shapeTypes=types,
        halfExtents=halves,
        radii=radii,
        lengths=lengths,
        collisionFramePositions=centres,
        collisionFrameOrientations=orientations,
    )
    return shape


def _yaw_quaternion(yaw_rad: float) -> Quaternion:
    return (0.0, 0.0, math.sin(yaw_rad / 2), math.cos(yaw_rad / 2))


def _yaw(quaternion: Quaternion) -> float:
    x, y, z, w = quaternion
    return math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def _matrix(quaternion: Quaternion) -> FloatArray:
    x, y, z, w = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
