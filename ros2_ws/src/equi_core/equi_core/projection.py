"""Clouds of several cameras -> one height map around the gripper, in a single compiled pass.

This is the robot's way to the heights that `equi_core.observation` draws from. Each point is moved
to base_link, dropped if it lies outside the view or on the robot, and kept if it is the highest
over its pixel. What the cameras could not see stays NaN until `fill_holes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from equi_core.contract import ImageSpec
from equi_core.observation import FloatImage, ObservationError

_NO_CAPSULES = np.zeros((0, 7))


@dataclass(frozen=True, eq=False)
class CameraCloud:
    """Points of one camera and where that camera stands."""

    points_m: NDArray[np.float32]
    """Points (N, C >= 3) in the camera's optical frame [m]; columns 0..2 are x, y, z, others are
    ignored, so a padded message can be passed as it is. Invalid points are NaN or (0, 0, 0)."""
    base_from_camera: NDArray[np.float64]
    """Pose (4, 4) of the optical frame in base_link."""


@dataclass(frozen=True, eq=False)
class HeightMap:
    """Fused heights, and how much each camera gave to them."""

    height_m: FloatImage
    """Heights (S, S) above z = 0 of base_link [m]; NaN where no point fell."""
    points_in_view: tuple[int, ...]
    """Valid points over the image per camera, without the robot's."""
    points_on_robot: tuple[int, ...]
    """Points dropped because they lie on the robot, per camera."""

    @property
    def hole_fraction(self) -> float:
        """Share of pixels that no camera saw."""
        return float(np.mean(np.isnan(self.height_m)))


def fuse_clouds(
    clouds: Sequence[CameraCloud],
    tcp_position_m: ArrayLike,
    image: ImageSpec,
    *,
    robot_capsules_m: ArrayLike | None = None,
    height_range_m: tuple[float, float] = (-0.02, 0.5),
) -> HeightMap:
    """Project clouds to the highest surface over each pixel around the TCP.

    Args:
        clouds: one cloud per camera.
        tcp_position_m: TCP position (3,) in base_link [m].
        image: image definition of the contract.
        robot_capsules_m: capsules (K, 7) that cover the robot in base_link [m]: two end points and
            a radius each. Points inside are dropped.
        height_range_m: points outside this range of heights are noise and dropped [m].
    """
    tcp = np.asarray(tcp_position_m, dtype=np.float64)
    if tcp.shape != (3,) or not np.all(np.isfinite(tcp)):
        raise ObservationError(f"TCP position {tcp.tolist()} must be three finite coordinates [m]")
    capsules = (
        _NO_CAPSULES
        if robot_capsules_m is None
        else np.ascontiguousarray(robot_capsules_m, dtype=np.float64)
    )
    if capsules.ndim != 2 or capsules.shape[1] != 7:
        raise ObservationError(f"robot capsules have shape {capsules.shape}; they must be (K, 7)")
    height_m = np.full((image.size_px, image.size_px), np.nan, dtype=np.float32)
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
            height_m,
        )
        in_view.append(int(seen))
        on_robot.append(int(dropped))
    return HeightMap(height_m, tuple(in_view), tuple(on_robot))


def fill_holes(height_m: FloatImage) -> FloatImage:
    """Replace unseen pixels by the lowest of the nearest seen ones around them.

    What hides behind an object is most likely the surface the object stands on, not the object, so
    a hole takes the lowest height found on its border. A map without any seen pixel cannot be
    filled and is refused.
    """
    holes = np.isnan(height_m)
    if not holes.any():
        return height_m.copy()
    if holes.all():
        raise ObservationError("no pixel of the height map was seen; check the cameras' poses")
    labels, count = ndimage.label(holes, structure=np.ones((3, 3)))
    filled = height_m.copy()
    for label, box in enumerate(ndimage.find_objects(labels, count), start=1):
        rows, columns = (slice(max(s.start - 1, 0), s.stop + 1) for s in box)
        hole = labels[rows, columns] == label
        border = ndimage.binary_dilation(hole, structure=np.ones((3, 3))) & ~hole
        seen = height_m[rows, columns][border]
        filled[rows, columns][hole] = np.nanpercentile(seen, 10)
    return filled


def _float_rows(points_m: NDArray[np.float32], index: int) -> NDArray[np.float32]:
    if points_m.dtype != np.float32 or points_m.ndim != 2 or points_m.shape[1] < 3:
        raise ObservationError(
            f"points of camera {index} are {points_m.dtype} of shape {points_m.shape}; "
            "they must be float32 of shape (N, 3 or more)"
        )
    return points_m


@numba.njit(cache=True, nogil=True)
def _splat(  # type: ignore[no-untyped-def]
    points, base_from_camera, tcp_x, tcp_y, pixel_m, z_low, z_high, capsules, height_m
):
    """Write the highest height per pixel into height_m; returns (points kept, points on robot)."""
    size = height_m.shape[0]
    r = base_from_camera
    per_pixel = 1.0 / pixel_m
    half = size / 2.0
    kept, on_robot = 0, 0
    for i in range(points.shape[0]):
        cx, cy, cz = points[i, 0], points[i, 1], points[i, 2]
        # Drivers mark an invalid point by NaN or by the origin, which is the lens itself.
        if not (cz != 0.0 or cx != 0.0 or cy != 0.0):
            continue
        x = r[0, 0] * cx + r[0, 1] * cy + r[0, 2] * cz + r[0, 3]
        y = r[1, 0] * cx + r[1, 1] * cy + r[1, 2] * cz + r[1, 3]
        row_position = (x - tcp_x) * per_pixel + half
        column_position = (y - tcp_y) * per_pixel + half
        # Written so that NaN fails the test, too.
        if not (0.0 <= row_position < size and 0.0 <= column_position < size):
            continue
        z = r[2, 0] * cx + r[2, 1] * cy + r[2, 2] * cz + r[2, 3]
        if not (z_low <= z <= z_high):
            continue
        if _inside_any(capsules, x, y, z):
            on_robot += 1
            continue
        kept += 1
        row, column = int(row_position), int(column_position)
        if not (height_m[row, column] >= z):
            height_m[row, column] = z
    return kept, on_robot


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
