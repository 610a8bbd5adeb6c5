"""Bodies of blocks and drawers: the shapes they are made of, and their PyBullet counterparts.

Movable and immovable bodies are built from the same shapes at the same place, and look the same
until something happens to them. A simulated body that is free to move sinks into its support by
some hundredths of a millimetre, which would give it away; so an object reports, and is drawn at,
exactly the pose at which it was put until it was displaced by more than `AT_REST_M`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from equi_rl.sim.bullet import BulletClient, pybullet
from equi_rl.sim.raycast import Kind, ShapeTable
from equi_rl.sim.scene import ObjectKind, Quaternion, SceneObject, Vector3

FloatArray = NDArray[np.float64]

BLOCK_COLOUR = (0.87, 0.42, 0.28)
CABINET_COLOUR = (0.80, 0.66, 0.47)
FRONT_COLOUR = (0.91, 0.80, 0.62)
HANDLE_COLOUR = (0.35, 0.37, 0.40)

# The handle is a round bar in front of the drawer's face, on two posts.
HANDLE_LENGTH_M = 0.10
HANDLE_RADIUS_M = 0.0075
HANDLE_HEIGHT_M = 0.027
HANDLE_REACH_M = 0.05
"""From the cabinet's face to the bar's axis."""
DRAWER_STROKE_M = 0.10
DRAWER_FRICTION_N = 4.0
"""Force that moves the unlocked drawer: it stops with the hand that pulls it."""
AT_REST_M = 1e-4
"""Displacement below which an object still counts as untouched."""
_AT_REST_TURN = 1e-3
_POST_THICKNESS_M = 0.010
_POST_SPACING_M = 0.07
_WALL_M = 0.004
_FRONT_M = 0.008

_SLEEPING = pybullet.ACTIVATION_STATE_SLEEP | pybullet.ACTIVATION_STATE_ENABLE_SLEEPING


@dataclass(frozen=True)
class Part:
    """One convex shape of a body, in the body's (or its sliding part's) frame."""

    kind: Kind
    size_m: Vector3
    """As `Kind` says."""
    centre_m: Vector3
    colour: Vector3
    slides: bool = False
    """Whether it belongs to the part of a drawer that is pulled out."""
    along_y: bool = False
    """Whether the shape's own z axis lies along the body's y axis (the handle bar)."""


@lru_cache(maxsize=64)
def parts_of(kind: ObjectKind, size_m: Vector3) -> tuple[Part, ...]:
    """The shapes of an object of a given size."""
    length, width, height = size_m
    if kind is ObjectKind.BLOCK:
        return (Part(Kind.BOX, (length / 2, width / 2, height / 2), (0, 0, 0), BLOCK_COLOUR),)
    inner_width, depth = width - 2 * _WALL_M, length - _FRONT_M - _WALL_M
    face = -length / 2
    tray_top = height - 0.012
    wall_centre_x = face + _FRONT_M + depth / 2

    def box(extents: Vector3, centre: Vector3, colour: Vector3, slides: bool) -> Part:
        half: Vector3 = (extents[0] / 2, extents[1] / 2, extents[2] / 2)
        return Part(Kind.BOX, half, centre, colour, slides)

    side_y = width / 2 - _WALL_M / 2
    tray_y = inner_width / 2 - _WALL_M
    shell_x, shell_length = _FRONT_M / 2, length - _FRONT_M
    front_height = height - _WALL_M - 0.003
    bar_x = face - HANDLE_REACH_M
    post_x, post_length = face - HANDLE_REACH_M / 2, HANDLE_REACH_M
    post_side = _POST_THICKNESS_M
    return (
        box((length, width, _WALL_M), (0, 0, height - _WALL_M / 2), CABINET_COLOUR, False),
        box((shell_length, _WALL_M, height), (shell_x, side_y, height / 2), CABINET_COLOUR, False),
        box((shell_length, _WALL_M, height), (shell_x, -side_y, height / 2), CABINET_COLOUR, False),
        box(
            (_WALL_M, width, height),
            (length / 2 - _WALL_M / 2, 0, height / 2),
            CABINET_COLOUR,
            False,
        ),
        box(
            (_FRONT_M, width, front_height),
            (face + _FRONT_M / 2, 0, front_height / 2 + 0.002),
            FRONT_COLOUR,
            True,
        ),
        box((depth, inner_width, _WALL_M), (wall_centre_x, 0, 0.005), FRONT_COLOUR, True),
        box(
            (depth, _WALL_M, tray_top),
            (wall_centre_x, tray_y, tray_top / 2 + 0.003),
            FRONT_COLOUR,
            True,
        ),
        box(
            (depth, _WALL_M, tray_top),
            (wall_centre_x, -tray_y, tray_top / 2 + 0.003),
            FRONT_COLOUR,
            True,
        ),
        Part(
            Kind.CAPSULE,
            (HANDLE_RADIUS_M, HANDLE_LENGTH_M / 2 - HANDLE_RADIUS_M, 0.0),
            (bar_x, 0, HANDLE_HEIGHT_M),
            HANDLE_COLOUR,
            slides=True,
            along_y=True,
        ),
        *(
            box(
                (post_length, post_side, post_side),
                (post_x, side * _POST_SPACING_M / 2, HANDLE_HEIGHT_M),
                HANDLE_COLOUR,
                True,
            )
            for side in (-1, 1)
        ),
    )


def handle_position_m(drawer: SceneObject) -> Vector3:
    """Centre of a drawer's handle bar in base_link."""
    x, y, z = drawer.position_m
    c, s = drawer.heading
    reach = drawer.size_m[0] / 2 + HANDLE_REACH_M + drawer.extension_m
    return (x - c * reach, y - s * reach, z + HANDLE_HEIGHT_M)


_LIE_ALONG_Y = Rotation.from_euler("x", -math.pi / 2).as_matrix()


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
            [_LIE_ALONG_Y if part.along_y else np.eye(3) for part in self._parts]
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
            turned = max(abs(a - b) for a, b in zip(quaternion, self._rest_quaternion, strict=True))
            self._displaced = moved > AT_REST_M or turned > _AT_REST_TURN
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
    types, halves, radii, lengths, centres, turns = [], [], [], [], [], []
    for part in parts:
        is_box = part.kind is Kind.BOX
        types.append(pybullet.GEOM_BOX if is_box else pybullet.GEOM_CAPSULE)
        halves.append(part.size_m if is_box else (0.0, 0.0, 0.0))
        radii.append(0.0 if is_box else part.size_m[0])
        lengths.append(0.0 if is_box else 2 * part.size_m[1])
        shift = extension_m if part.slides else 0.0
        centres.append((part.centre_m[0] - shift, part.centre_m[1], part.centre_m[2]))
        turns.append(
            tuple(Rotation.from_matrix(_LIE_ALONG_Y).as_quat())
            if part.along_y
            else (0.0, 0.0, 0.0, 1.0)
        )
    shape: int = client.createCollisionShapeArray(
        shapeTypes=types,
        halfExtents=halves,
        radii=radii,
        lengths=lengths,
        collisionFramePositions=centres,
        collisionFrameOrientations=turns,
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
