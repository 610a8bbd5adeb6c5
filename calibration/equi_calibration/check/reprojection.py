# SPDX-License-Identifier: MIT
"""Corners as robot and calibration predict them, against corners as detected in the images."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equi_calibration.board.detection import BoardDetector
from equi_calibration.cell_file import CellSettings
from equi_calibration.collect.dataset import Dataset, PoseRecord
from equi_calibration.solve.solution import Solution
from equi_core.geometry import invert, transform_points

FloatArray = NDArray[np.float64]


def reproject(
    solution: Solution, pose: PoseRecord, camera: str, points_board_m: FloatArray
) -> FloatArray:
    """Pixels (N, 2) of points (N, 3) on the board [m], at a robot pose as reported."""
    found = solution.cameras[camera]
    camera_from_board = (
        invert(found.base_from_camera) @ pose.base_from_tcp @ solution.tcp_from_board
    )
    return found.intrinsics.project(transform_points(camera_from_board, points_board_m))


def view_errors_px(
    dataset: Dataset, solution: Solution, cell: CellSettings
) -> dict[str, dict[int, float]]:
    """RMS reprojection error per coordinate of each accepted view, by camera and pose [px]."""
    detector = BoardDetector(dataset.board, cell.view_gate)
    errors: dict[str, dict[int, float]] = {name: {} for name in solution.cameras}
    corners = dataset.board.corners_m()
    for pose, camera in dataset.views():
        if pose.images[camera] in solution.rejections:
            continue
        image = dataset.image(pose, camera)
        detection = detector.detect(image, solution.cameras[camera].intrinsics)
        if not detection.accepted:
            continue
        predicted = reproject(solution, pose, camera, corners[detection.corner_ids])
        error = float(np.sqrt(np.mean((predicted - detection.corners_px) ** 2)))
        errors[camera][pose.index] = error
    return errors
