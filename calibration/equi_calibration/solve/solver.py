# SPDX-License-Identifier: MIT
"""From a dataset to a solution.

Detect the board, hand-eye start, bundle adjustment, held-out poses, board scale, drift.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timezone

import numpy as np
from numpy.typing import NDArray

import equi_calibration
from equi_calibration.board.detection import BoardDetector, ViewGate
from equi_calibration.cell_file import SceneSettings
from equi_calibration.collect.dataset import Dataset
from equi_calibration.solve.bundle_adjustment import (
    Adjustment,
    AdjustmentOptions,
    bundle_adjust,
)
from equi_calibration.solve.clouds import cloud_constraint
from equi_calibration.solve.drift import find_drift
from equi_calibration.solve.hand_eye import solve_hand_eye
from equi_calibration.solve.problem import HandEyeProblem, View
from equi_calibration.solve.solution import CameraSolution, Solution
from equi_calibration.solve.validation import HoldOut, hold_out

FloatArray = NDArray[np.float64]


def solve_dataset(
    dataset: Dataset,
    reference_m: FloatArray,
    *,
    gate: ViewGate | None = None,
    refine_intrinsics: bool = False,
    icp: SceneSettings | None = None,
    progress: Callable[[str], None] | None = None,
) -> Solution:
    """Solve a dataset.

    Args:
        dataset: images and poses.
        reference_m: point (3,) in base_link at which uncertainties are stated [m].
        gate: when a view is good enough.
        refine_intrinsics: also solve for focal lengths and principal points.
        icp: also let the clouds of the scene constrain the cameras; None: images only.
        progress: called with what is being done.
    """
    report = progress or (lambda text: None)
    report("detecting the board in the images")
    problem, rejected = problem_of(dataset, gate)
    problem.require_solvable()
    report("hand-eye calibration")
    start = solve_hand_eye(problem)
    report("bundle adjustment")
    options = AdjustmentOptions(refine_intrinsics=refine_intrinsics)
    adjusted = bundle_adjust(problem, start, reference_m, options)
    if icp is not None:
        report("cloud-to-cloud registration")
        constraint = cloud_constraint(dataset, adjusted.estimate.base_from_camera, icp)
        options = replace(options, clouds=constraint, noise=adjusted.noise)
        adjusted = bundle_adjust(problem, adjusted.estimate, reference_m, options)
    report("size of the print")
    scaled = bundle_adjust(
        adjusted.used,
        adjusted.estimate,
        reference_m,
        AdjustmentOptions(estimate_board_scale=True, noise=adjusted.noise, trust_data=True),
    )
    report("held-out poses")
    held = hold_out(adjusted, reference_m, options)
    return _solution(dataset, problem, rejected, adjusted, scaled, held)


def problem_of(
    dataset: Dataset, gate: ViewGate | None = None
) -> tuple[HandEyeProblem, dict[str, tuple[str, ...]]]:
    """Detect the board in every image; returns the good views, and why others were refused."""
    detector = BoardDetector(dataset.board, gate)
    views, rejected = [], {}
    for pose, camera in dataset.views():
        detection = detector.detect(dataset.image(pose, camera), dataset.cameras[camera].intrinsics)
        if detection.accepted and detection.camera_from_board is not None:
            views.append(
                View(
                    camera,
                    pose.index,
                    detection.corner_ids,
                    detection.corners_px,
                    detection.camera_from_board,
                    pose.images[camera],
                )
            )
        else:
            rejected[pose.images[camera]] = detection.rejections
    poses = np.array([pose.base_from_tcp for pose in dataset.poses]).reshape(-1, 4, 4)
    intrinsics = {name: camera.intrinsics for name, camera in dataset.cameras.items()}
    return HandEyeProblem(dataset.board, intrinsics, poses, tuple(views)), rejected


def _solution(
    dataset: Dataset,
    problem: HandEyeProblem,
    rejected: Mapping[str, tuple[str, ...]],
    adjusted: Adjustment,
    scaled: Adjustment,
    held: HoldOut,
) -> Solution:
    rejections = {file: list(reasons) for file, reasons in rejected.items()}
    for text in adjusted.rejected_views:
        file, _, reason = text.partition(": ")
        rejections.setdefault(file, []).append(reason)
    cameras = {}
    for name in problem.cameras:
        drift = find_drift(problem, adjusted, name)
        images = [pose.images[name] for pose in dataset.poses if name in pose.images]
        cameras[name] = CameraSolution(
            base_from_camera=adjusted.estimate.base_from_camera[name],
            covariance=adjusted.covariance[name],
            views=len(adjusted.used.views_of(name)),
            rejected_views=sum(file in rejections for file in images),
            reprojection_px=adjusted.corner_rms_px[name],
            raw_reprojection_px=adjusted.raw_rms_px[name],
            hold_out_px=held.pixel_px[name],
            position_error_mm=held.position_mm[name],
            worst_position_error_mm=held.worst_mm[name],
            orientation_error_deg=held.orientation_deg[name],
            drift_mm=drift.step_mm,
            drift_significance=drift.significance,
            drift_after_pose=drift.after_pose,
            intrinsics=adjusted.intrinsics[name],
        )
    cross_camera_mm = float(held.cross_camera_mm)
    return Solution(
        cell=dataset.cell,
        dataset=str(dataset.folder),
        dataset_checksum=dataset.checksum,
        created_utc=dataset.created_utc,
        solved_utc=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        software_version=equi_calibration.__version__,
        cameras=cameras,
        tcp_from_board=adjusted.estimate.tcp_from_board,
        board_scale=scaled.board_scale,
        board_scale_sigma=scaled.board_scale_sigma,
        pixel_noise_px=adjusted.noise.pixel_px,
        robot_position_noise_mm=1000 * adjusted.noise.robot_position_m,
        robot_rotation_noise_deg=float(np.degrees(adjusted.noise.robot_rotation_rad)),
        cross_camera_board_mm=cross_camera_mm if np.isfinite(cross_camera_mm) else None,
        shared_poses=held.shared_poses,
        poses=len(adjusted.used.used_poses),
        rejected_corners=adjusted.rejected_corners,
        rejections=rejections,
    )
