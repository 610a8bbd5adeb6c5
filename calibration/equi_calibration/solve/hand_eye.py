# SPDX-License-Identifier: MIT
"""Eye-to-hand calibration in closed form (robot-world/hand-eye), per camera, then combined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from equi_calibration.errors import SolveError
from equi_calibration.solve.problem import HandEyeProblem, View
from equi_core.geometry import invert, matrix_to_rotvec, pose_matrix, rotvec_to_matrix

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Estimate:
    """Where the cameras stand and where the board sits in the gripper."""

    base_from_camera: Mapping[str, FloatArray]
    """(4, 4) per camera, of the optical frame."""
    tcp_from_board: FloatArray
    """(4, 4)"""


def solve_hand_eye(problem: HandEyeProblem) -> Estimate:
    """Solve camera_from_board = camera_from_base base_from_tcp tcp_from_board for each camera.

    Each camera yields its own tcp_from_board; the one that explains all views best is
    kept, and every camera's pose is averaged again with it, so a camera with poor views profits
    from a camera with good ones.
    """
    candidates = []
    for camera in problem.cameras:
        views = problem.views_of(camera)
        for method in (
            cv2.CALIB_ROBOT_WORLD_HAND_EYE_SHAH,
            cv2.CALIB_ROBOT_WORLD_HAND_EYE_LI,
        ):
            tcp_from_board = _hand_eye(problem, views, method)
            if tcp_from_board is not None:
                candidates.append(tcp_from_board)
    if not candidates:
        raise SolveError(
            "hand-eye calibration found no rigid solution; are poses and images of one run?"
        )
    best: Estimate | None = None
    best_cost = np.inf
    for tcp_from_board in candidates:
        estimate = Estimate(
            {camera: _mean_camera(problem, camera, tcp_from_board) for camera in problem.cameras},
            tcp_from_board,
        )
        cost = median_pixel_error(problem, estimate)
        if cost < best_cost:
            best, best_cost = estimate, cost
    if best is None:
        raise SolveError("no hand-eye solution puts the board in front of the cameras")
    return best


def median_pixel_error(problem: HandEyeProblem, estimate: Estimate) -> float:
    """Median distance of predicted and seen corners [px]; insensitive to outliers."""
    corners = problem.board.corners_m()
    errors = []
    for view in problem.views:
        camera_from_board = (
            invert(estimate.base_from_camera[view.camera])
            @ problem.base_from_tcp[view.pose_index]
            @ estimate.tcp_from_board
        )
        points = corners[view.corner_ids] @ camera_from_board[:3, :3].T + camera_from_board[:3, 3]
        if np.any(points[:, 2] <= 0.0):
            errors.append(np.full(len(points), 1e6))
            continue
        predicted = problem.intrinsics[view.camera].project(points)
        errors.append(np.linalg.norm(predicted - view.corners_px, axis=1))
    return float(np.median(np.concatenate(errors)))


def _hand_eye(problem: HandEyeProblem, views: tuple[View, ...], method: int) -> FloatArray | None:
    """tcp_from_board from one camera's views; None if OpenCV's answer is not a rigid transform."""
    board_in_camera = np.array([view.camera_from_board for view in views])
    tcp_in_base = problem.base_from_tcp[[view.pose_index for view in views]]
    # In OpenCV's words: world = board, "base to gripper" = tool in base for a camera that stands
    # still; its first answer is then tool_from_board inverted.
    try:
        rotation, translation, _, _ = cv2.calibrateRobotWorldHandEye(
            list(board_in_camera[:, :3, :3]),
            list(board_in_camera[:, :3, 3]),
            list(tcp_in_base[:, :3, :3]),
            list(tcp_in_base[:, :3, 3]),
            method=method,
        )
    except cv2.error:
        return None
    if not (np.all(np.isfinite(rotation)) and np.all(np.isfinite(translation))):
        return None
    if abs(np.linalg.det(rotation) - 1.0) > 1e-2:
        return None
    u, _, vt = np.linalg.svd(rotation)
    return invert(pose_matrix(translation.ravel(), u @ vt))


def _mean_camera(problem: HandEyeProblem, camera: str, tcp_from_board: FloatArray) -> FloatArray:
    """Robust mean of the camera poses that the single views imply."""
    poses = np.array(
        [
            problem.base_from_tcp[view.pose_index] @ tcp_from_board @ invert(view.camera_from_board)
            for view in problem.views_of(camera)
        ]
    )
    position = np.median(poses[:, :3, 3], axis=0)
    nearest = int(np.argmin(np.linalg.norm(poses[:, :3, 3] - position, axis=1)))
    reference = poses[nearest, :3, :3]
    offsets = matrix_to_rotvec(poses[:, :3, :3] @ reference.T)
    return pose_matrix(position, rotvec_to_matrix(np.median(offsets, axis=0)) @ reference)
