# SPDX-License-Identifier: MIT
"""Pinhole cameras that look at the world with the robot in it: colour, depth, segmentation.

The same ray caster that makes the observation makes these images. `render` is what a depth camera
delivers; `render_rgb` adds soft edges and shadows for people.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from equi_rl.sim.raycast import Kind, ShapeTable, cast_pinhole, hit
from equi_rl.sim.world import World

FloatArray = NDArray[np.float64]

TABLE_BODY, GOAL_BODY, NOTHING = -1, -2, -3
"""Ids in segmentation images, beside 0 for the robot and i + 1 for object i."""

_TABLE_COLOUR = (0.90, 0.89, 0.87)
_TABLE_EDGE_COLOUR = (0.62, 0.60, 0.57)
_GOAL_COLOUR = (0.42, 0.68, 0.48)
_AREA_COLOUR = (0.82, 0.84, 0.86)
_SKY_TOP = np.array([0.86, 0.90, 0.95])
_SKY_BOTTOM = np.array([0.97, 0.97, 0.98])
_MARK_M = 2e-4
"""Thickness of what is drawn on the table: far below what a depth camera resolves."""
_NEAR_M = 0.05


@dataclass(frozen=True)
class PinholeCamera:
    """Intrinsics and pose of an ideal camera."""

    width_px: int
    height_px: int
    fx_px: float
    fy_px: float
    cx_px: float
    cy_px: float
    base_from_optical: FloatArray
    """(4, 4); optical frame: x right, y down, z forward."""

    @classmethod
    def looking_at(
        cls,
        eye_m: ArrayLike,
        target_m: ArrayLike,
        size_px: tuple[int, int],
        horizontal_view_rad: float,
    ) -> PinholeCamera:
        """A camera at `eye_m` that has `target_m` in the middle and the horizon level.

        Args:
            eye_m: camera position (3,) in base_link [m].
            target_m: point (3,) it looks at [m]; not straight above or below it.
            size_px: width and height.
            horizontal_view_rad: opening angle across the width.
        """
        eye, target = np.asarray(eye_m, dtype=np.float64), np.asarray(target_m, dtype=np.float64)
        forward = (target - eye) / np.linalg.norm(target - eye)
        right = np.cross(forward, (0.0, 0.0, 1.0))
        if np.linalg.norm(right) < 1e-6:
            raise ValueError(f"a camera at {eye.tolist()} m cannot look straight up or down")
        right /= np.linalg.norm(right)
        pose = np.eye(4)
        pose[:3, 0], pose[:3, 1], pose[:3, 2] = right, np.cross(forward, right), forward
        pose[:3, 3] = eye
        width, height = size_px
        focal = width / 2 / math.tan(horizontal_view_rad / 2)
        return cls(width, height, focal, focal, (width - 1) / 2, (height - 1) / 2, pose)

    def scaled(self, factor: int) -> PinholeCamera:
        """The same view with `factor` times as many pixels along each side."""
        return PinholeCamera(
            self.width_px * factor,
            self.height_px * factor,
            self.fx_px * factor,
            self.fy_px * factor,
            (self.cx_px + 0.5) * factor - 0.5,
            (self.cy_px + 0.5) * factor - 0.5,
            self.base_from_optical,
        )

    @property
    def intrinsics(self) -> tuple[float, float, float, float]:
        """fx, fy, cx, cy [px]."""
        return self.fx_px, self.fy_px, self.cx_px, self.cy_px


@dataclass(frozen=True)
class CameraImage:
    """What a camera sees."""

    colour: NDArray[np.uint8]
    """(H, W, 3)."""
    depth_m: NDArray[np.float32]
    """(H, W) along the optical axis; +inf where there is nothing."""
    segmentation: NDArray[np.int32]
    """(H, W) body ids: 0 robot, i + 1 object i, TABLE_BODY, GOAL_BODY, NOTHING."""


def side_view_camera(size_px: tuple[int, int] = (480, 360)) -> PinholeCamera:
    """The view in which people are shown the cell: from the front left, over the workspace."""
    return PinholeCamera.looking_at((1.20, 0.62, 0.70), (0.50, 0.02, 0.08), size_px, 0.68)


def render(world: World, camera: PinholeCamera) -> CameraImage:
    """Colour, depth and segmentation of the cell as it is now, robot included."""
    table = scene_table(world)
    depth, index, normal = _cast(table, camera)
    light = np.array(_LIGHT)
    shade = 0.55 + 0.45 * np.clip(normal @ light, 0.0, 1.0)
    seen = index >= 0
    colour = _background(camera)
    colour[seen] = table.colour[index[seen]] * shade[seen][:, None]
    segmentation = np.full(index.shape, NOTHING, dtype=np.int32)
    segmentation[seen] = table.body[index[seen]]
    return CameraImage(_to_bytes(colour), depth.astype(np.float32), segmentation)


def render_rgb(world: World, camera: PinholeCamera, smooth: int = 2) -> NDArray[np.uint8]:
    """Image (H, W, 3) for people: anti-aliased, with soft shading and shadows."""
    table = scene_table(world)
    fine = camera.scaled(smooth)
    depth, index, normal = _cast(table, fine)
    colour = _background(fine)
    shapes = (table.kind, table.size_m, table.rotation, table.position_m, table.colour)
    view = (np.ascontiguousarray(fine.base_from_optical), *fine.intrinsics)
    _shade(shapes, view, np.array(_LIGHT), depth, index, normal, colour)
    height, width = camera.height_px, camera.width_px
    return _to_bytes(colour.reshape(height, smooth, width, smooth, 3).mean(axis=(1, 3)))


_LIGHT = tuple(np.array([0.35, 0.30, 0.89]) / np.linalg.norm([0.35, 0.30, 0.89]))


def scene_table(world: World) -> ShapeTable:
    """Every shape that a camera can see: robot, objects, table, and what is marked on it."""
    boxes = [((0.42, 0.0, -0.02), (0.60, 0.62, 0.02), _TABLE_COLOUR, TABLE_BODY)]
    boxes.append(((0.5, 0.0, -_MARK_M), (0.2, 0.2, 1.5 * _MARK_M), _AREA_COLOUR, TABLE_BODY))
    if world.goal_xy_m is not None:
        boxes.append(((*world.goal_xy_m, 0.0), (0.045, 0.045, _MARK_M), _GOAL_COLOUR, GOAL_BODY))
    centres, halves, colours, bodies = zip(*boxes, strict=True)
    flat = ShapeTable(
        np.full(len(boxes), Kind.BOX, dtype=np.int64),
        np.array(halves),
        np.tile(np.eye(3), (len(boxes), 1, 1)),
        np.array(centres),
        np.array(colours),
        np.array(bodies, dtype=np.int64),
    )
    return ShapeTable.joined(flat, world.shapes(with_robot=True))


def _cast(
    table: ShapeTable, camera: PinholeCamera
) -> tuple[FloatArray, NDArray[np.int64], FloatArray]:
    shape = (camera.height_px, camera.width_px)
    depth = np.empty(shape)
    index = np.empty(shape, dtype=np.int64)
    normal = np.zeros((*shape, 3))
    cast_pinhole(
        table.kind,
        table.size_m,
        table.rotation,
        table.position_m,
        np.ascontiguousarray(camera.base_from_optical),
        camera.intrinsics,
        _NEAR_M,
        depth,
        index,
        normal,
    )
    return depth, index, normal


def _background(camera: PinholeCamera) -> FloatArray:
    fraction = np.linspace(0.0, 1.0, camera.height_px)[:, None, None]
    rows = _SKY_TOP * (1 - fraction) + _SKY_BOTTOM * fraction
    return np.repeat(rows, camera.width_px, axis=1)


def _to_bytes(colour: FloatArray) -> NDArray[np.uint8]:
    return (np.clip(colour, 0.0, 1.0) * 255 + 0.5).astype(np.uint8)


@njit(cache=True)
def _shade(shapes, view, light, depth, index, normal, colour):  # type: ignore[no-untyped-def] # pragma: no cover
    """Light every seen pixel: part from the sky, part from a lamp that casts shadows."""
    albedo = shapes[4]
    camera, fx, fy, cx, cy = view
    for v in range(depth.shape[0]):
        for u in range(depth.shape[1]):
            s = index[v, u]
            if s < 0:
                continue
            z = depth[v, u]
            x, y = (u - cx) / fx * z, (v - cy) / fy * z
            n = normal[v, u]
            lamp = max(0.0, n[0] * light[0] + n[1] * light[1] + n[2] * light[2])
            if lamp > 0.0:
                # Start a little off the surface, so that it does not shade itself.
                px = camera[0, 0] * x + camera[0, 1] * y + camera[0, 2] * z + camera[0, 3]
                py = camera[1, 0] * x + camera[1, 1] * y + camera[1, 2] * z + camera[1, 3]
                pz = camera[2, 0] * x + camera[2, 1] * y + camera[2, 2] * z + camera[2, 3]
                if _in_shadow(shapes, px + 1e-4 * n[0], py + 1e-4 * n[1], pz + 1e-4 * n[2], light):
                    lamp *= 0.25
            brightness = 0.56 + 0.12 * n[2] + 0.40 * lamp
            for c in range(3):
                colour[v, u, c] = albedo[s, c] * brightness


@njit(cache=True)
def _in_shadow(shapes, px, py, pz, light):  # type: ignore[no-untyped-def] # pragma: no cover
    kind, size, rotation, position, _ = shapes
    for s in range(len(kind)):
        dx, dy, dz = position[s, 0] - px, position[s, 1] - py, position[s, 2] - pz
        along = dx * light[0] + dy * light[1] + dz * light[2]
        reach = size[s, 0] + size[s, 1] + size[s, 2]
        # Skip what the ray cannot come near to.
        if along < -reach or dx * dx + dy * dy + dz * dz - along * along > reach * reach:
            continue
        t, _, _, _ = hit(
            kind[s],
            size[s],
            rotation[s],
            position[s],
            px,
            py,
            pz,
            light[0],
            light[1],
            light[2],
        )
        if 0.0 < t < math.inf:
            return True
    return False
