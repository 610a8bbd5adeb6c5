# SPDX-License-Identifier: MIT
"""Shapes of the simulated calibration cell: blocks on the table, the plate behind the print."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equi_calibration.board.board import BoardSpec
from equi_core.geometry import rotvec_to_matrix
from equi_rl.sim.raycast import Kind, ShapeTable

FloatArray = NDArray[np.float64]

_BOARD_BODY = 99
_PLATE_HALF_THICKNESS_M = 0.0015


def block_shapes(
    xy_yaw: tuple[tuple[float, float, float], ...], size_m: tuple[float, float, float]
) -> ShapeTable:
    """Blocks of one size on the table, each at x, y [m] and yaw [rad]."""
    if not xy_yaw:
        return ShapeTable.empty()
    count = len(xy_yaw)
    half = np.asarray(size_m) / 2
    return ShapeTable(
        np.full(count, int(Kind.BOX), dtype=np.int64),
        np.tile(half, (count, 1)),
        np.array([rotvec_to_matrix([0.0, 0.0, yaw]) for _, _, yaw in xy_yaw]),
        np.array([[x, y, half[2]] for x, y, _ in xy_yaw]),
        np.tile([0.87, 0.42, 0.28], (count, 1)),
        np.arange(1, count + 1, dtype=np.int64),
    )


def board_shape(board: BoardSpec, base_from_board: FloatArray) -> ShapeTable:
    """The stiff plate behind the print, as the depth camera sees it."""
    half = np.array(
        [
            board.width_m / 2 + board.margin_m,
            board.height_m / 2 + board.margin_m,
            _PLATE_HALF_THICKNESS_M,
        ]
    )
    centre = board.centre_m + np.array([0.0, 0.0, _PLATE_HALF_THICKNESS_M])
    return ShapeTable(
        np.array([int(Kind.BOX)], dtype=np.int64),
        half[None],
        base_from_board[None, :3, :3],
        (base_from_board[:3, :3] @ centre + base_from_board[:3, 3])[None],
        np.array([[0.8, 0.8, 0.8]]),
        np.array([_BOARD_BODY], dtype=np.int64),
    )
