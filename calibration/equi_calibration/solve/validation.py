# SPDX-License-Identifier: MIT
"""How wrong is the answer on poses it has not seen? Leave-poses-out, in millimetres and degrees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from equi_calibration.board.intrinsics import Intrinsics
from equi_calibration.errors import CalibrationError
from equi_calibration.solve.bundle_adjustment import Adjustment, AdjustmentOptions, bundle_adjust
from equi_calibration.solve.hand_eye import Estimate
from equi_calibration.solve.problem import HandEyeProblem, View
from equi_core.geometry import (
    invert,
    matrix_to_rotvec,
    pose_matrix,
    rotvec_to_matrix,
    transform_points,
)

FloatArray = NDArray[np.float64]

_FOLDS = 5
# A view that cannot place the board better than this does not measure the calibration's error.
LARGEST_SIGMA_M = 1.5e-3
_CORNER_NOISE_PX = 0.08
_FEWEST_SHARED = 3


@dataclass(frozen=True, eq=False)
class HoldOut:
    """Errors on poses that were left out of the fit."""

    position_mm: Mapping[str, float]
    """Per camera: RMS distance between where a held-out board is seen and where robot and
    calibration say it is."""
    orientation_deg: Mapping[str, float]
    """Per camera, RMS."""
    worst_mm: Mapping[str, float]
    pixel_px: Mapping[str, float]
    """Per camera: RMS of held-out corners, per coordinate."""
    cross_camera_mm: float
    """RMS distance between one held-out board seen by two cameras; NaN if few poses were shared."""
    shared_poses: int
    poses: int


@dataclass
class _Errors:
    position_m: list[float]
    rotation_rad: list[float]
    pixel_px: list[float]


def hold_out(adjusted: Adjustment, reference_m: FloatArray, options: AdjustmentOptions) -> HoldOut:
    """Fit without each fold of poses in turn, and measure on what was left out."""
    problem = adjusted.used
    poses = np.array(problem.used_poses)
    # Every fifth pose: neighbours on the tour lie in different folds.
    folds = [set(poses[start::_FOLDS].tolist()) for start in range(min(_FOLDS, len(poses)))]
    errors = {camera: _Errors([], [], []) for camera in problem.cameras}
    distances: list[float] = []
    tested = 0
    settings = replace(options, noise=adjusted.noise, trust_data=True)
    for fold in folds:
        try:
            fitted = bundle_adjust(
                problem.without_poses(fold), adjusted.estimate, reference_m, settings
            )
        except CalibrationError:
            # The rest alone does not determine the answer; that shows in the other folds' errors.
            continue
        tested += len(fold)
        _measure(problem.only_poses(fold), fitted, errors, distances)
    return HoldOut(
        {name: 1000 * _rms(error.position_m) for name, error in errors.items()},
        {name: float(np.degrees(_rms(error.rotation_rad))) for name, error in errors.items()},
        {name: 1000 * max(error.position_m, default=np.nan) for name, error in errors.items()},
        {name: _rms(error.pixel_px) for name, error in errors.items()},
        1000 * _rms(distances) if len(distances) >= _FEWEST_SHARED else float("nan"),
        len(distances),
        tested,
    )


def _measure(
    held: HandEyeProblem, fitted: Adjustment, errors: Mapping[str, _Errors], distances: list[float]
) -> None:
    centre = held.board.centre_m[None]
    seen: dict[int, list[FloatArray]] = {}
    for view in held.views:
        predicted = predicted_pose(held, fitted.estimate, view)
        lens = fitted.intrinsics[view.camera]
        corners = transform_points(predicted, held.board.corners_m()[view.corner_ids])
        error = errors[view.camera]
        error.pixel_px.extend((lens.project(corners) - view.corners_px).ravel().tolist())
        measured, sigma = seen_pose(held, lens, view, predicted)
        if sigma > LARGEST_SIGMA_M:
            continue
        change = invert(predicted) @ measured
        at_centre = transform_points(predicted, centre) - transform_points(measured, centre)
        error.position_m.append(float(np.linalg.norm(at_centre)))
        error.rotation_rad.append(float(np.linalg.norm(matrix_to_rotvec(change[:3, :3]))))
        base_from_board = fitted.estimate.base_from_camera[view.camera] @ measured
        seen.setdefault(view.pose_index, []).append(transform_points(base_from_board, centre)[0])
    for positions in seen.values():
        distances.extend(float(np.linalg.norm(positions[0] - other)) for other in positions[1:])


def predicted_pose(problem: HandEyeProblem, estimate: Estimate, view: View) -> FloatArray:
    """camera_from_board (4, 4) as robot and calibration say."""
    return (
        invert(estimate.base_from_camera[view.camera])
        @ problem.base_from_tcp[view.pose_index]
        @ estimate.tcp_from_board
    )


def seen_pose(
    problem: HandEyeProblem, lens: Intrinsics, view: View, predicted: FloatArray
) -> tuple[FloatArray, float]:
    """camera_from_board (4, 4) of the view alone, and the uncertainty of its position [m].

    Searched from the prediction: a single view of a plane has two candidate poses, and which of
    them is meant is known here. The uncertainty is that of a sharp image: were it taken from the
    fit's residuals, views that contradict the fit would excuse themselves.
    """
    points = problem.board.corners_m()[view.corner_ids]
    rotvec, position = cv2.solvePnPRefineLM(
        points,
        view.corners_px,
        lens.matrix,
        lens.distortion_array,
        matrix_to_rotvec(predicted[:3, :3]).reshape(3, 1),
        predicted[:3, 3].reshape(3, 1).copy(),
    )
    _, jacobian = cv2.projectPoints(points, rotvec, position, lens.matrix, lens.distortion_array)
    by_pose = np.asarray(jacobian, dtype=np.float64)[:, :6]
    covariance = _CORNER_NOISE_PX**2 * np.linalg.pinv(by_pose.T @ by_pose)
    # The board's origin is one of its corners; its centre is known at least as well.
    sigma = float(np.sqrt(np.trace(covariance[3:, 3:])))
    return pose_matrix(position.ravel(), rotvec_to_matrix(rotvec.ravel())), sigma


def _rms(values: list[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if values else float("nan")
