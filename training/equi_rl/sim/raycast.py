# SPDX-License-Identifier: MIT
"""Rays against primitive shapes, compiled: the one depth renderer of the project.

A scene is a table of convex shapes (`ShapeTable`). Two kernels look at it: `cast_heights` from
straight above (orthographic), `cast_pinhole` through a camera. Both visit, shape by shape, only the
pixels that the shape can cover and keep the nearest hit, so an image costs what is in it, and its
value does not depend on the order of the shapes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numba import njit
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class Kind(IntEnum):
    """Which primitive a row of the table is, and what its three sizes mean [m]."""

    BOX = 0
    """Half extents along x, y, z."""
    CYLINDER = 1
    """Radius, half length along z, unused."""
    SPHERE = 2
    """Radius, unused, unused."""
    CAPSULE = 3
    """Radius, half length of the straight part along z, unused."""


@dataclass(frozen=True)
class ShapeTable:
    """Primitive shapes with their poses in base_link; row i of every array is shape i."""

    kind: NDArray[np.int64]
    """(N,) values of `Kind`."""
    size_m: FloatArray
    """(N, 3) sizes, meaning by kind."""
    rotation: FloatArray
    """(N, 3, 3) base_from_shape rotations."""
    position_m: FloatArray
    """(N, 3) shape centres in base_link."""
    colour: FloatArray
    """(N, 3) albedo in [0, 1]."""
    body: NDArray[np.int64]
    """(N,) id of the body that the shape belongs to; what a segmentation image shows."""

    def __len__(self) -> int:
        return len(self.kind)

    @classmethod
    def empty(cls) -> ShapeTable:
        """A table without shapes."""
        return cls(
            np.zeros(0, dtype=np.int64),
            np.zeros((0, 3)),
            np.zeros((0, 3, 3)),
            np.zeros((0, 3)),
            np.zeros((0, 3)),
            np.zeros(0, dtype=np.int64),
        )

    @classmethod
    def joined(cls, *tables: ShapeTable) -> ShapeTable:
        """The shapes of several tables in one."""
        return cls(
            np.concatenate([table.kind for table in tables]),
            np.concatenate([table.size_m for table in tables]),
            np.concatenate([table.rotation for table in tables]),
            np.concatenate([table.position_m for table in tables]),
            np.concatenate([table.colour for table in tables]),
            np.concatenate([table.body for table in tables]),
        )


@njit(cache=True)
def _slab(low, high, origin, direction):  # type: ignore[no-untyped-def] # pragma: no cover
    """Entry and exit of a line through low <= u <= high."""
    if direction == 0.0:
        if origin < low or origin > high:
            return math.inf, -math.inf
        return -math.inf, math.inf
    a = (low - origin) / direction
    b = (high - origin) / direction
    return (a, b) if a < b else (b, a)


@njit(cache=True)
def _box(size, ox, oy, oz, dx, dy, dz):  # type: ignore[no-untyped-def] # pragma: no cover
    x_in, x_out = _slab(-size[0], size[0], ox, dx)
    y_in, y_out = _slab(-size[1], size[1], oy, dy)
    z_in, z_out = _slab(-size[2], size[2], oz, dz)
    t = max(x_in, y_in, z_in)
    if t > min(x_out, y_out, z_out):
        return math.inf, 0.0, 0.0, 0.0
    if t == z_in:
        return t, 0.0, 0.0, -math.copysign(1.0, dz)
    if t == x_in:
        return t, -math.copysign(1.0, dx), 0.0, 0.0
    return t, 0.0, -math.copysign(1.0, dy), 0.0


@njit(cache=True)
def _sphere(radius, ox, oy, oz, dx, dy, dz):  # type: ignore[no-untyped-def] # pragma: no cover
    a = dx * dx + dy * dy + dz * dz
    b = ox * dx + oy * dy + oz * dz
    inside = b * b - a * (ox * ox + oy * oy + oz * oz - radius * radius)
    if inside < 0.0:
        return math.inf, 0.0, 0.0, 0.0
    t = (-b - math.sqrt(inside)) / a
    return t, (ox + t * dx) / radius, (oy + t * dy) / radius, (oz + t * dz) / radius


@njit(cache=True)
def _tube(radius, half, capped, ox, oy, oz, dx, dy, dz):  # type: ignore[no-untyped-def] # pragma: no cover
    """A cylinder along z: with flat ends if `capped`, else only its round side."""
    z_in, z_out = _slab(-half, half, oz, dz)
    a = dx * dx + dy * dy
    b = ox * dx + oy * dy
    c = ox * ox + oy * oy - radius * radius
    if a == 0.0:
        side_in, side_out = (-math.inf, math.inf) if c <= 0.0 else (math.inf, -math.inf)
    else:
        inside = b * b - a * c
        if inside < 0.0:
            return math.inf, 0.0, 0.0, 0.0
        root = math.sqrt(inside)
        side_in, side_out = (-b - root) / a, (-b + root) / a
    t = max(z_in, side_in)
    if t > min(z_out, side_out) or t == -math.inf:
        return math.inf, 0.0, 0.0, 0.0
    if t == z_in:
        if capped:
            return t, 0.0, 0.0, -math.copysign(1.0, dz)
        return math.inf, 0.0, 0.0, 0.0
    return t, (ox + t * dx) / radius, (oy + t * dy) / radius, 0.0


@njit(cache=True)
def _capsule(radius, half, ox, oy, oz, dx, dy, dz):  # type: ignore[no-untyped-def] # pragma: no cover
    t, nx, ny, nz = _tube(radius, half, False, ox, oy, oz, dx, dy, dz)
    for end in (-half, half):
        t_end, ex, ey, ez = _sphere(radius, ox, oy, oz - end, dx, dy, dz)
        if t_end < t:
            t, nx, ny, nz = t_end, ex, ey, ez
    return t, nx, ny, nz


@njit(cache=True)
def hit(kind, size, rotation, position, ox, oy, oz, dx, dy, dz):  # type: ignore[no-untyped-def] # pragma: no cover
    """First crossing of a line with one shape: parameter t (inf if none) and world normal.

    t may be negative: the line has no start. A unit direction makes t a distance.
    """
    px, py, pz = ox - position[0], oy - position[1], oz - position[2]
    r = rotation
    lox = r[0, 0] * px + r[1, 0] * py + r[2, 0] * pz
    loy = r[0, 1] * px + r[1, 1] * py + r[2, 1] * pz
    loz = r[0, 2] * px + r[1, 2] * py + r[2, 2] * pz
    ldx = r[0, 0] * dx + r[1, 0] * dy + r[2, 0] * dz
    ldy = r[0, 1] * dx + r[1, 1] * dy + r[2, 1] * dz
    ldz = r[0, 2] * dx + r[1, 2] * dy + r[2, 2] * dz
    if kind == 0:
        t, nx, ny, nz = _box(size, lox, loy, loz, ldx, ldy, ldz)
    elif kind == 1:
        t, nx, ny, nz = _tube(size[0], size[1], True, lox, loy, loz, ldx, ldy, ldz)
    elif kind == 2:
        t, nx, ny, nz = _sphere(size[0], lox, loy, loz, ldx, ldy, ldz)
    else:
        t, nx, ny, nz = _capsule(size[0], size[1], lox, loy, loz, ldx, ldy, ldz)
    return (
        t,
        r[0, 0] * nx + r[0, 1] * ny + r[0, 2] * nz,
        r[1, 0] * nx + r[1, 1] * ny + r[1, 2] * nz,
        r[2, 0] * nx + r[2, 1] * ny + r[2, 2] * nz,
    )


@njit(cache=True)
def local_half_extents(kind, size):  # type: ignore[no-untyped-def] # pragma: no cover
    """Half extents of the box around a shape, in its own axes."""
    if kind == 0:
        return size[0], size[1], size[2]
    if kind == 1:
        return size[0], size[0], size[1]
    if kind == 2:
        return size[0], size[0], size[0]
    return size[0], size[0], size[0] + size[1]


@njit(cache=True)
def cast_heights(kind, size, rotation, position, xs, ys, ground, heights):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill `heights` (len(xs), len(ys)) with the top surface over each point (xs[i], ys[j])."""
    heights[:] = ground
    step = xs[1] - xs[0]
    for s in range(len(kind)):
        hx, hy, hz = local_half_extents(kind[s], size[s])
        r = rotation[s]
        reach_x = abs(r[0, 0]) * hx + abs(r[0, 1]) * hy + abs(r[0, 2]) * hz
        reach_y = abs(r[1, 0]) * hx + abs(r[1, 1]) * hy + abs(r[1, 2]) * hz
        row0 = max(0, math.floor((position[s, 0] - reach_x - xs[0]) / step))
        row1 = min(len(xs), math.ceil((position[s, 0] + reach_x - xs[0]) / step) + 1)
        col0 = max(0, math.floor((position[s, 1] - reach_y - ys[0]) / step))
        col1 = min(len(ys), math.ceil((position[s, 1] + reach_y - ys[0]) / step) + 1)
        for i in range(row0, row1):
            for j in range(col0, col1):
                # A line downwards from z = 0: the first crossing lies at t = -height, exactly.
                t, _, _, _ = hit(
                    kind[s], size[s], r, position[s], xs[i], ys[j], 0.0, 0.0, 0.0, -1.0
                )
                if -t > heights[i, j] and t != math.inf:
                    heights[i, j] = -t


@njit(cache=True)
def cast_pinhole(kind, size, rotation, position, camera, intrinsics, near, depth, index, normal):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill depth along the optical axis, shape index (-1 nothing) and world normal per pixel.

    The first four arguments are columns of the shape table. `camera` is base_from_optical (4, 4)
    with optical x right, y down, z forward; `intrinsics` are fx, fy, cx, cy [px], and pixel (row v,
    column u) looks through (u, v). Nothing nearer than `near` [m] is seen. The outputs `depth`,
    `index` and `normal` have shapes (H, W), (H, W) and (H, W, 3).
    """
    rows, cols = depth.shape
    fx, fy, cx, cy = intrinsics
    depth[:] = math.inf
    index[:] = -1
    for s in range(len(kind)):
        r = rotation[s]
        u0, u1, v0, v1 = _screen_box(kind[s], size[s], r, position[s], camera, intrinsics, near)
        row0, row1 = max(0, v0), min(rows, v1 + 1)
        col0, col1 = max(0, u0), min(cols, u1 + 1)
        for v in range(row0, row1):
            for u in range(col0, col1):
                x, y = (u - cx) / fx, (v - cy) / fy
                dx = camera[0, 0] * x + camera[0, 1] * y + camera[0, 2]
                dy = camera[1, 0] * x + camera[1, 1] * y + camera[1, 2]
                dz = camera[2, 0] * x + camera[2, 1] * y + camera[2, 2]
                t, nx, ny, nz = hit(
                    kind[s],
                    size[s],
                    r,
                    position[s],
                    camera[0, 3],
                    camera[1, 3],
                    camera[2, 3],
                    dx,
                    dy,
                    dz,
                )
                # The direction has length 1 along the optical axis, so t is the depth itself.
                if near <= t < depth[v, u]:
                    depth[v, u] = t
                    index[v, u] = s
                    normal[v, u, 0], normal[v, u, 1], normal[v, u, 2] = nx, ny, nz


@njit(cache=True)
def _screen_box(kind, size, rotation, position, camera, intrinsics, near):  # type: ignore[no-untyped-def] # pragma: no cover
    """Pixel bounds (u0, u1, v0, v1) of a shape; everything if it reaches behind the near plane."""
    fx, fy, cx, cy = intrinsics
    hx, hy, hz = local_half_extents(kind, size)
    u_low, u_high, v_low, v_high = math.inf, -math.inf, math.inf, -math.inf
    for corner in range(8):
        lx = hx if corner & 1 else -hx
        ly = hy if corner & 2 else -hy
        lz = hz if corner & 4 else -hz
        wx = rotation[0, 0] * lx + rotation[0, 1] * ly + rotation[0, 2] * lz + position[0]
        wy = rotation[1, 0] * lx + rotation[1, 1] * ly + rotation[1, 2] * lz + position[1]
        wz = rotation[2, 0] * lx + rotation[2, 1] * ly + rotation[2, 2] * lz + position[2]
        px, py, pz = wx - camera[0, 3], wy - camera[1, 3], wz - camera[2, 3]
        depth = camera[0, 2] * px + camera[1, 2] * py + camera[2, 2] * pz
        if depth < near:
            return 0, 1 << 30, 0, 1 << 30
        u = fx * (camera[0, 0] * px + camera[1, 0] * py + camera[2, 0] * pz) / depth + cx
        v = fy * (camera[0, 1] * px + camera[1, 1] * py + camera[2, 1] * pz) / depth + cy
        u_low, u_high = min(u_low, u), max(u_high, u)
        v_low, v_high = min(v_low, v), max(v_high, v)
    low, high = -float(1 << 20), float(1 << 20)
    return (
        math.floor(max(low, u_low)),
        math.ceil(min(high, u_high)),
        math.floor(max(low, v_low)),
        math.ceil(min(high, v_high)),
    )
