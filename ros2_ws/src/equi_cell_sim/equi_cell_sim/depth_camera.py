# SPDX-License-Identifier: MIT
"""A simulated depth camera of the cell: ray-cast shapes, then the errors of a stereo camera.

Depth is cast exactly (table plane and primitive shapes, robot included), converted to a disparity
of the two imagers, given the errors of a stereo matcher (`stereo_errors`), and converted back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from equi_cell_sim.camera_model import CameraSpec, NoiseSpec
from equi_cell_sim.stereo_errors import add_stereo_errors, noise_fields, to_disparity
from equi_rl.sim.raycast import ShapeTable, cast_pinhole

TABLE_X_M = (-0.25, 1.15)
TABLE_Y_M = (-0.80, 0.80)
"""Extent of the table top in base_link; beyond it the camera measures nothing."""
TABLE_COLOUR = (0.62, 0.60, 0.57)
_LIGHT = np.array([0.35, 0.25, 0.90]) / np.linalg.norm([0.35, 0.25, 0.90])
_TABLE_INDEX = -2


@dataclass(frozen=True, eq=False)
class DepthFrame:
    """One exposure."""

    depth_units: NDArray[np.uint16]
    """Depth (H, W) along the optical axis in `unit_m`; 0 where there is none."""
    unit_m: float
    colour: NDArray[np.uint8]
    """Colour image (H, W, 3), registered to the depth image."""


class DepthCamera:
    """One simulated camera; `capture` takes a frame."""

    def __init__(
        self,
        spec: CameraSpec,
        noise: NoiseSpec,
        base_from_camera: NDArray[np.float64],
        seed: int = 0,
    ) -> None:
        self.spec = spec
        self.noise = noise
        self._pose = np.ascontiguousarray(base_from_camera, dtype=np.float64)
        self._rng = np.random.default_rng([seed, *spec.name.encode()])
        shape = (spec.height_px, spec.width_px)
        self._intrinsics = (spec.focal_px, spec.focal_px, *spec.centre_px)
        self._table_depth = _table_depth(self._pose, self._intrinsics, shape)
        self._depth = np.empty(shape)
        self._disparity = np.empty(shape)
        self._index = np.empty(shape, dtype=np.int64)
        self._normal = np.zeros((*shape, 3))
        self._noise_fields = noise_fields(shape, noise.correlation_px)
        self._parameters = np.array(
            [
                noise.subpixel_px,
                noise.disparity_step_px,
                noise.edge_step_px,
                noise.edge_missing,
                noise.edge_mixed,
                noise.grazing_cosine,
                noise.missing,
                noise.depth_unit_m,
                1.0 + noise.scale_error,
            ]
        )

    def capture(self, table: ShapeTable, with_colour: bool = True) -> DepthFrame:
        """Take one frame of the shapes, over the table."""
        spec, noise = self.spec, self.noise
        cast_pinhole(
            table.kind,
            table.size_m,
            table.rotation,
            table.position_m,
            self._pose,
            self._intrinsics,
            spec.min_depth_m,
            self._depth,
            self._index,
            self._normal,
        )
        _add_table(self._depth, self._index, self._normal, self._table_depth)
        # An ideal camera has no baseline; any value cancels out.
        focal_baseline = spec.focal_px * (spec.baseline_m or 0.05)
        to_disparity(
            self._depth, spec.min_depth_m, spec.max_depth_m, focal_baseline, self._disparity
        )
        units = np.zeros(self._depth.shape, dtype=np.uint16)
        add_stereo_errors(
            self._disparity,
            self._normal,
            self._pose,
            np.array(self._intrinsics),
            focal_baseline,
            self._noise_fields[self._rng.integers(len(self._noise_fields))],
            self._rng.integers(0, spec.height_px),
            self._rng.integers(0, spec.width_px),
            self._parameters,
            noise.edge_band_px,
            noise.stereo_shadow and spec.baseline_m > 0,
            int(self._rng.integers(1, 2**31)),
            units,
        )
        colour = np.zeros((*units.shape, 3), dtype=np.uint8)
        if with_colour:
            _shade(self._index, self._normal, table.colour, np.array(TABLE_COLOUR), _LIGHT, colour)
        return DepthFrame(units, noise.depth_unit_m, colour)


@numba.njit(cache=True, nogil=True)
def points_of(units, unit_m, focal, cx, cy, ordered, columns, colour, out):  # type: ignore[no-untyped-def]
    """Write points into `out` (N, columns) as RealSense drivers lay them out; returns how many.

    Columns: x, y, z, padding and, with five of them, colour packed as B, G, R, 0. Unordered
    clouds hold valid points alone; in ordered ones an invalid point is (0, 0, 0).
    """
    rows, cols = units.shape
    packed = out.view(np.uint32)
    count = 0
    for v in range(rows):
        for u in range(cols):
            z = units[v, u] * unit_m
            if z == 0.0 and not ordered:
                continue
            out[count, 0] = (u - cx) / focal * z
            out[count, 1] = (v - cy) / focal * z
            out[count, 2] = z
            out[count, 3] = 0.0
            if columns == 5:
                packed[count, 4] = (
                    np.uint32(colour[v, u, 0]) << np.uint32(16)
                    | np.uint32(colour[v, u, 1]) << np.uint32(8)
                    | np.uint32(colour[v, u, 2])
                )
            count += 1
    return count


def _table_depth(
    pose: NDArray[np.float64], intrinsics: tuple[float, ...], shape: tuple[int, int]
) -> NDArray[np.float64]:
    """Depth (H, W) of the bare table from a fixed camera; inf beside it."""
    fx, fy, cx, cy = intrinsics
    v, u = np.mgrid[: shape[0], : shape[1]]
    rays = np.stack([(u - cx) / fx, (v - cy) / fy, np.ones(shape)], axis=-1) @ pose[:3, :3].T
    with np.errstate(divide="ignore"):
        depth = np.where(rays[..., 2] < 0, -pose[2, 3] / rays[..., 2], math.inf)
    hit = pose[:3, 3] + np.where(np.isfinite(depth), depth, 0.0)[..., None] * rays
    on_table = (
        (hit[..., 0] >= TABLE_X_M[0])
        & (hit[..., 0] <= TABLE_X_M[1])
        & (hit[..., 1] >= TABLE_Y_M[0])
        & (hit[..., 1] <= TABLE_Y_M[1])
    )
    return np.where(on_table, depth, math.inf)


@numba.njit(cache=True, nogil=True)
def _add_table(depth, index, normal, table_depth):  # type: ignore[no-untyped-def]
    rows, cols = depth.shape
    for v in range(rows):
        for u in range(cols):
            if table_depth[v, u] < depth[v, u]:
                depth[v, u] = table_depth[v, u]
                index[v, u] = _TABLE_INDEX
                normal[v, u, 0], normal[v, u, 1], normal[v, u, 2] = 0.0, 0.0, 1.0


@numba.njit(cache=True, nogil=True)
def _shade(index, normal, colours, table_colour, light, out):  # type: ignore[no-untyped-def]
    rows, cols = index.shape
    for v in range(rows):
        for u in range(cols):
            s = index[v, u]
            if s == -1:
                out[v, u, 0], out[v, u, 1], out[v, u, 2] = 30, 32, 36
                continue
            n = normal[v, u]
            lit = 0.45 + 0.55 * max(0.0, n[0] * light[0] + n[1] * light[1] + n[2] * light[2])
            for channel in range(3):
                albedo = table_colour[channel] if s == _TABLE_INDEX else colours[s, channel]
                out[v, u, channel] = int(min(255.0, 255.0 * albedo * lit))
