"""How wrong is the answer on poses it has not seen? Leave-poses-out, in millimetres and degrees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from equi_calibration.closed_form import Estimate
from equi_calibration.errors import CalibrationError
from equi_calibration.problem import Problem, View
from equi_calibration.refine import RefineOptions, Solution, refine
from equi_core.geometry import (
    invert,
    matrix_to_rotvec,
    pose_matrix,
    rotvec_to_matrix,
    transform_points,
)

FloatArray = NDArray[np.float64]

_FOLDS = 5


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
    """RMS distance between one held-out board seen by two cameras; NaN if no pose was shared."""
    shared_poses: int
    poses: int


@dataclass
class _Errors:
    position_m: list[float]
    rotation_rad: list[float]
    pixel_px: list[float]


def hold_out(solution: Solution, reference_m: FloatArray, options: RefineOptions) -> HoldOut:
    """Fit without each fold of poses in turn, and measure on what was left out."""
    problem = solution.used
    poses = np.array(problem.used_poses)
    # Every fifth pose: neighbours on the tour lie in different folds.
    folds = [set(poses[start::_FOLDS].tolist()) for start in range(min(_FOLDS, len(poses)))]
    errors = {camera: _Errors([], [], []) for camera in problem.cameras}
    distances: list[float] = []
    tested = 0
    settings = replace(options, noise=solution.noise, trust_data=True)
    for fold in folds:
        try:
            fitted = refine(problem.without_poses(fold), solution.estimate, reference_m, settings)
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
        1000 * _rms(distances),
        len(distances),
        tested,
    )


def _measure(
    held: Problem, fitted: Solution, errors: Mapping[str, _Errors], distances: list[float]
) -> None:
    centre = held.board.centre_m[None]
    seen: dict[int, list[FloatArray]] = {}
    for view in held.views:
        predicted = _predicted(held, fitted.estimate, view)
        measured = _seen(held, fitted, view, predicted)
        change = invert(predicted) @ measured
        at_centre = transform_points(predicted, centre) - transform_points(measured, centre)
        error = errors[view.camera]
        error.position_m.append(float(np.linalg.norm(at_centre)))
        error.rotation_rad.append(float(np.linalg.norm(matrix_to_rotvec(change[:3, :3]))))
        corners = transform_points(predicted, held.board.corners_m()[view.corner_ids])
        pixels = fitted.intrinsics[view.camera].project(corners)
        error.pixel_px.extend((pixels - view.corners_px).ravel().tolist())
        base_from_board = fitted.estimate.base_from_camera[view.camera] @ measured
        seen.setdefault(view.pose_index, []).append(transform_points(base_from_board, centre)[0])
    for places in seen.values():
        distances.extend(float(np.linalg.norm(places[0] - other)) for other in places[1:])


def _predicted(problem: Problem, estimate: Estimate, view: View) -> FloatArray:
    return (
        invert(estimate.base_from_camera[view.camera])
        @ problem.base_from_tcp[view.pose_index]
        @ estimate.tcp_from_board
    )


def _seen(held: Problem, fitted: Solution, view: View, predicted: FloatArray) -> FloatArray:
    """camera_from_board of the view alone, searched from the prediction.

    A single view of a plane has two candidate poses; which of them is meant is known here.
    """
    lens = fitted.intrinsics[view.camera]
    rotvec, position = cv2.solvePnPRefineLM(
        held.board.corners_m()[view.corner_ids],
        view.corners_px,
        lens.matrix,
        lens.distortion_array,
        matrix_to_rotvec(predicted[:3, :3]).reshape(3, 1),
        predicted[:3, 3].reshape(3, 1).copy(),
    )
    return pose_matrix(position.ravel(), rotvec_to_matrix(rotvec.ravel()))


def _rms(values: list[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if values else float("nan")
