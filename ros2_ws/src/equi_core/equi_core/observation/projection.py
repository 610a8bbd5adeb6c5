# SPDX-License-Identifier: MIT
"""Clouds of several cameras -> one height map around the gripper, in a single compiled pass.

This is the robot's way to the heights that `image` draws from. Each point is moved
to base_link, dropped if it lies outside the view or on the robot, and kept if it is the highest
near the centre of its pixel, or the highest in the pixel where none is near the centre. Training
casts a ray through the centre: the highest of a whole pixel would make every object half a pixel
wider on each side. What the cameras could not see stays NaN until
`equi_core.observation.height_repair` fills it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from equi_core.contract import ImageSpec
from equi_core.observation.image import FloatImage, ObservationError

_NO_CAPSULES = np.zeros((0, 7))
_NO_BOXES = np.zeros((0, 15))
_CHUNK = 1024
_NEAR_CENTRE_PX = 0.25
"""Points so near the centre of a pixel, along both axes, count before all others of the pixel."""


@dataclass(frozen=True, eq=False)
class CameraCloud:
    """Points of one camera and the pose of that camera."""

    points_m: NDArray[np.float32]
    """Points (N, C >= 3) in the camera's optical frame [m]; columns 0..2 are x, y, z, others are
    ignored, so a padded message can be passed as it is. Invalid points are NaN or (0, 0, 0)."""
    base_from_camera: NDArray[np.float64]
    """Pose (4, 4) of the optical frame in the frame of the heights (the task frame)."""


@dataclass(frozen=True, eq=False)
class HeightMap:
    """Fused heights, and how much each camera gave to them."""

    height_m: FloatImage
    """Heights (S, S) above z = 0 of base_link [m]; NaN where no point fell."""
    points_in_view: tuple[int, ...]
    """Valid points over the image per camera, without the robot's."""
    points_on_robot: tuple[int, ...]
    """Points dropped because they lie on the robot, per camera."""


def fuse_clouds(
    clouds: Sequence[CameraCloud],
    tcp_position_m: ArrayLike,
    image: ImageSpec,
    *,
    height_range_m: tuple[float, float],
    robot_capsules_m: ArrayLike | None = None,
    robot_boxes_m: ArrayLike | None = None,
) -> HeightMap:
    """Project clouds to the highest surface over each pixel around the TCP.

    Args:
        clouds: one cloud per camera.
        tcp_position_m: TCP position (3,) in base_link [m].
        image: image definition of the contract.
        height_range_m: points outside this range of heights are noise and dropped [m].
        robot_capsules_m: capsules (K, 7) that cover the robot in base_link [m]: two end points and
            a radius each. Points inside are dropped.
        robot_boxes_m: boxes (B, 15) that cover the gripper in base_link [m]: centre, half extents
            and rotation row by row (`robot_shape`). Points inside are dropped.
    """
    tcp = np.asarray(tcp_position_m, dtype=np.float64)
    if tcp.shape != (3,) or not np.all(np.isfinite(tcp)):
        raise ObservationError(f"TCP position {tcp.tolist()} must be three finite coordinates [m]")
    capsules = _rows(robot_capsules_m, _NO_CAPSULES, "capsules")
    boxes = _rows(robot_boxes_m, _NO_BOXES, "boxes")
    anywhere_m = np.full((image.size_px, image.size_px), np.nan, dtype=np.float32)
    height_m = anywhere_m.copy()
    in_view, on_robot = [], []
    for index, cloud in enumerate(clouds):
        points = _float_rows(cloud.points_m, index)
        base_from_camera = np.ascontiguousarray(cloud.base_from_camera, dtype=np.float64)
        if base_from_camera.shape != (4, 4) or not np.all(np.isfinite(base_from_camera)):
            raise ObservationError(f"pose of camera {index} is not a finite (4, 4) matrix")
        seen, dropped = _splat(
            points,
            base_from_camera,
            tcp[0],
            tcp[1],
            image.pixel_m,
            height_range_m[0],
            height_range_m[1],
            capsules,
            boxes,
            anywhere_m,
            height_m,
        )
        in_view.append(int(seen))
        on_robot.append(int(dropped))
    np.copyto(height_m, anywhere_m, where=np.isnan(height_m))
    return HeightMap(height_m, tuple(in_view), tuple(on_robot))


def _rows(value: ArrayLike | None, none: NDArray[np.float64], what: str) -> NDArray[np.float64]:
    if value is None:
        return none
    rows = np.ascontiguousarray(value, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != none.shape[1]:
        raise ObservationError(
            f"robot {what} have shape {rows.shape}; they must be (N, {none.shape[1]})"
        )
    return rows


def _float_rows(points_m: NDArray[np.float32], index: int) -> NDArray[np.float32]:
    if points_m.dtype != np.float32 or points_m.ndim != 2 or points_m.shape[1] < 3:
        raise ObservationError(
            f"points of camera {index} are {points_m.dtype} of shape {points_m.shape}; "
            "they must be float32 of shape (N, 3 or more)"
        )
    return points_m


@numba.njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "arcp"})
def _splat(  # type: ignore[no-untyped-def]
    points,
    base_from_camera,
    tcp_x,
    tcp_y,
    pixel_m,
    z_low,
    z_high,
    capsules,
    boxes,
    anywhere_m,
    centre_m,
):
    """Write the highest height per pixel, and near its centre; returns (points kept, on robot).

    Points are taken in chunks: a first loop without branches, which the compiler vectorises,
    finds their pixels; a second one looks only at those over the image. Most points fall outside.
    """
    size = anywhere_m.shape[0]
    count = points.shape[0]
    per_pixel = 1.0 / pixel_m
    half = size / 2.0
    # Folding the pixel grid into the transform leaves three products per coordinate.
    m00 = np.float32(base_from_camera[0, 0] * per_pixel)
    m01 = np.float32(base_from_camera[0, 1] * per_pixel)
    m02 = np.float32(base_from_camera[0, 2] * per_pixel)
    m03 = np.float32((base_from_camera[0, 3] - tcp_x) * per_pixel + half)
    m10 = np.float32(base_from_camera[1, 0] * per_pixel)
    m11 = np.float32(base_from_camera[1, 1] * per_pixel)
    m12 = np.float32(base_from_camera[1, 2] * per_pixel)
    m13 = np.float32((base_from_camera[1, 3] - tcp_y) * per_pixel + half)
    r20, r21, r22 = base_from_camera[2, 0], base_from_camera[2, 1], base_from_camera[2, 2]
    r23 = base_from_camera[2, 3]
    lowest_robot = _lowest(capsules, boxes)
    edge = np.float32(size)
    zero, middle, near = np.float32(0.0), np.float32(0.5), np.float32(_NEAR_CENTRE_PX)
    rows = np.empty(_CHUNK, dtype=np.float32)
    columns = np.empty(_CHUNK, dtype=np.float32)
    kept, on_robot = 0, 0
    for start in range(0, count, _CHUNK):
        length = min(_CHUNK, count - start)
        for j in range(length):
            cx, cy, cz = points[start + j, 0], points[start + j, 1], points[start + j, 2]
            rows[j] = m00 * cx + m01 * cy + m02 * cz + m03
            columns[j] = m10 * cx + m11 * cy + m12 * cz + m13
        for j in range(length):
            row_position, column_position = rows[j], columns[j]
            # Written so that NaN fails the test, too.
            if not (zero <= row_position < edge and zero <= column_position < edge):
                continue
            cx, cy, cz = points[start + j, 0], points[start + j, 1], points[start + j, 2]
            # Drivers mark an invalid point by NaN or by the origin, which is the lens itself.
            if cz == zero and cx == zero and cy == zero:
                continue
            z = r20 * cx + r21 * cy + r22 * cz + r23
            if not (z_low <= z <= z_high):
                continue
            if z >= lowest_robot:
                x = (row_position - half) * pixel_m + tcp_x
                y = (column_position - half) * pixel_m + tcp_y
                if _inside_any_box(boxes, x, y, z) or _inside_any(capsules, x, y, z):
                    on_robot += 1
                    continue
            kept += 1
            row, column = int(row_position), int(column_position)
            if not (anywhere_m[row, column] >= z):
                anywhere_m[row, column] = z
            off_row, off_column = row_position - row - middle, column_position - column - middle
            if (
                abs(off_row) <= near
                and abs(off_column) <= near
                and not (centre_m[row, column] >= z)
            ):
                centre_m[row, column] = z
    return kept, on_robot


@numba.njit(cache=True, nogil=True)
def _lowest(capsules, boxes):  # type: ignore[no-untyped-def]
    """Height below which no part of the robot reaches: most points lie there, on the table."""
    lowest = np.inf
    for k in range(capsules.shape[0]):
        lowest = min(lowest, min(capsules[k, 2], capsules[k, 5]) - capsules[k, 6])
    for k in range(boxes.shape[0]):
        reach = (
            abs(boxes[k, 12]) * boxes[k, 3]
            + abs(boxes[k, 13]) * boxes[k, 4]
            + abs(boxes[k, 14]) * boxes[k, 5]
        )
        lowest = min(lowest, boxes[k, 2] - reach)
    return lowest


@numba.njit(cache=True, nogil=True)
def _inside_any_box(boxes, x, y, z):  # type: ignore[no-untyped-def]
    """Whether a point lies in one of the boxes (B, 15): centre, half extents, rotation."""
    for k in range(boxes.shape[0]):
        px, py, pz = x - boxes[k, 0], y - boxes[k, 1], z - boxes[k, 2]
        if (
            abs(boxes[k, 6] * px + boxes[k, 9] * py + boxes[k, 12] * pz) <= boxes[k, 3]
            and abs(boxes[k, 7] * px + boxes[k, 10] * py + boxes[k, 13] * pz) <= boxes[k, 4]
            and abs(boxes[k, 8] * px + boxes[k, 11] * py + boxes[k, 14] * pz) <= boxes[k, 5]
        ):
            return True
    return False


@numba.njit(cache=True, nogil=True)
def _inside_any(capsules, x, y, z):  # type: ignore[no-untyped-def]
    """Whether a point lies in one of the capsules (K, 7): end points and radius."""
    for k in range(capsules.shape[0]):
        ax, ay, az = capsules[k, 0], capsules[k, 1], capsules[k, 2]
        bx, by, bz = capsules[k, 3] - ax, capsules[k, 4] - ay, capsules[k, 5] - az
        px, py, pz = x - ax, y - ay, z - az
        length2 = bx * bx + by * by + bz * bz
        t = 0.0
        if length2 > 0.0:
            t = min(1.0, max(0.0, (px * bx + py * by + pz * bz) / length2))
        dx, dy, dz = px - t * bx, py - t * by, pz - t * bz
        if dx * dx + dy * dy + dz * dz <= capsules[k, 6] * capsules[k, 6]:
            return True
    return False
