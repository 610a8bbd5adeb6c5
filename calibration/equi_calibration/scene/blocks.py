# SPDX-License-Identifier: MIT
"""Positions of blocks of a known size, as each camera sees them, and whether the cameras agree.

A box is fitted to all its visible faces. Edges are left out of it on purpose: a depth camera loses
the far edge of a face and keeps the near one, so centres of outlines are off by millimetres, each
camera's in another direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.optimize import least_squares

from equi_calibration.cell_file import Box
from equi_calibration.scene.depth import TablePlane

FloatArray = NDArray[np.float64]

_CELL_M = 0.003
_FEWEST_POINTS = 60
_LOSS_SCALE_M = 0.0015
_MOST_POINTS = 1500


@dataclass(frozen=True, eq=False)
class Block:
    """A block as one camera sees it."""

    centre_m: FloatArray
    """(3,) middle of its top face in base_link."""
    yaw_rad: float
    """Modulo a quarter turn, in [-pi/4, pi/4)."""
    points: int
    rms_mm: float
    """Spread of its points about its faces."""


def find_blocks(
    points_base_m: FloatArray, table: TablePlane, workspace: Box, size_m: Sequence[float]
) -> list[Block]:
    """Blocks of a known size in a cloud (N, 3) given in base_link.

    Heights count from the table as this camera sees it, so a wrong height of the camera does not
    hide its blocks.
    """
    length, width, height = size_m
    above = points_base_m[:, 2] - table.height_at(points_base_m[:, :2])
    inside = np.all(points_base_m[:, :2] > np.asarray(workspace.low_m[:2]), axis=1) & np.all(
        points_base_m[:, :2] < np.asarray(workspace.high_m[:2]), axis=1
    )
    points, above = points_base_m[inside], above[inside]
    top = points[np.abs(above - height) < min(0.008, 0.3 * height)]
    blocks = []
    for face in _clusters(top, workspace, length * width):
        middle = face[:, :2].mean(axis=0)
        reach = 0.75 * float(np.hypot(length, width))
        near = (
            (np.linalg.norm(points[:, :2] - middle, axis=1) < reach)
            & (above > 0.2 * height)
            & (above < 1.3 * height)
        )
        block = _fit_box(points[near], above[near], middle, (length, width, height))
        if block is not None:
            blocks.append(block)
    return blocks


def match_blocks(
    first: Sequence[Block], second: Sequence[Block], reach_m: float = 0.03
) -> list[tuple[Block, Block]]:
    """Blocks that two cameras see at nearly the same position."""
    pairs = []
    for block in first:
        distances = [float(np.linalg.norm(block.centre_m[:2] - b.centre_m[:2])) for b in second]
        if distances and min(distances) < reach_m:
            pairs.append((block, second[int(np.argmin(distances))]))
    return pairs


def block_shift_mm(pairs: Sequence[tuple[Block, Block]]) -> float:
    """RMS distance of the blocks that two cameras see, in the table's plane [mm]; NaN if none."""
    if not pairs:
        return float("nan")
    gaps = [np.linalg.norm(a.centre_m[:2] - b.centre_m[:2]) for a, b in pairs]
    return 1000 * float(np.sqrt(np.mean(np.square(gaps))))


def disagreement_mm(
    tables: Sequence[TablePlane], pairs: Sequence[tuple[Block, Block]], workspace: Box
) -> float:
    """RMS distance over the workspace between what two cameras call the same point [mm].

    Heights and tilts come from the two table planes, shift and rotation on the table from the
    blocks. Without any common block only the heights are compared.
    """
    corners = workspace.corners_m()[:4, :2]
    middle = workspace.centre_m[:2]
    positions = np.concatenate([corners, (corners + middle) / 2, middle[None]])
    vertical = tables[0].height_at(positions) - tables[1].height_at(positions)
    horizontal = np.zeros((len(positions), 2))
    if pairs:
        first = np.array([a.centre_m[:2] for a, _ in pairs])
        shift = first - np.array([b.centre_m[:2] for _, b in pairs])
        rotation_rad = 0.0
        around = first - first.mean(axis=0)
        lever = float(np.sum(around**2))
        if len(pairs) > 1 and lever > 1e-4:
            rotation_rad = float(
                np.sum(around[:, 0] * shift[:, 1] - around[:, 1] * shift[:, 0]) / lever
            )
        offset = positions - first.mean(axis=0)
        horizontal = shift.mean(axis=0) + rotation_rad * np.column_stack(
            [-offset[:, 1], offset[:, 0]]
        )
    return 1000 * float(np.sqrt(np.mean(vertical**2 + np.sum(horizontal**2, axis=1))))


def _clusters(top: FloatArray, workspace: Box, area_m2: float) -> list[FloatArray]:
    """Groups of top-face points that have the size of a block's top face."""
    if len(top) == 0:
        return []
    cells = np.floor((top[:, :2] - np.asarray(workspace.low_m[:2])) / _CELL_M).astype(int)
    grid = np.zeros(cells.max(axis=0) + 1, dtype=bool)
    grid[cells[:, 0], cells[:, 1]] = True
    labels, count = ndimage.label(ndimage.binary_closing(grid, np.ones((3, 3))), np.ones((3, 3)))
    of_point = labels[cells[:, 0], cells[:, 1]]
    groups = []
    for label in range(1, count + 1):
        face = top[of_point == label]
        area = float((labels == label).sum()) * _CELL_M**2
        if 0.5 * area_m2 < area < 1.7 * area_m2 and len(face) >= _FEWEST_POINTS:
            groups.append(face)
    return groups


def _fit_box(
    points: FloatArray, above: FloatArray, middle: FloatArray, size_m: tuple[float, float, float]
) -> Block | None:
    """Robust fit of x, y, yaw and height so that points lie on the box's surface."""
    if len(points) < _FEWEST_POINTS:
        return None
    step = max(1, len(points) // _MOST_POINTS)
    points, above = points[::step], above[::step]
    half = np.array([size_m[0] / 2, size_m[1] / 2])
    height = size_m[2]

    def residuals(x: FloatArray) -> FloatArray:
        return _surface_distance(points[:, :2], above, x, half, height)

    best = None
    for yaw in np.radians([-30.0, 0.0, 30.0]):
        answer = least_squares(
            residuals,
            np.array([*middle, yaw, 0.0]),
            loss="soft_l1",
            f_scale=_LOSS_SCALE_M,
            x_scale=[1e-3, 1e-3, 1e-2, 1e-3],
        )
        if best is None or answer.cost < best.cost:
            best = answer
    if best is None or not np.all(np.isfinite(best.x)):
        return None
    x, y, yaw, lift = (float(value) for value in best.x)
    spread = 1.4826 * float(np.median(np.abs(residuals(best.x))))
    wrapped = float((yaw + np.pi / 4) % (np.pi / 2) - np.pi / 4)
    return Block(np.array([x, y, height + lift]), wrapped, len(points), 1000 * spread)


def _surface_distance(
    xy: FloatArray, above: FloatArray, x: FloatArray, half: FloatArray, height: float
) -> FloatArray:
    """Signed distance (N,) of points to the surface of a box that stands on the table."""
    cos, sin = np.cos(x[2]), np.sin(x[2])
    offset = xy - x[:2]
    local = np.column_stack(
        [cos * offset[:, 0] + sin * offset[:, 1], -sin * offset[:, 0] + cos * offset[:, 1]]
    )
    outside = np.column_stack([np.abs(local) - half, above - height - x[3]])
    # Inside: distance to the nearest face; outside: to the nearest point of the box.
    return np.linalg.norm(np.maximum(outside, 0.0), axis=1) + np.minimum(outside.max(axis=1), 0.0)
