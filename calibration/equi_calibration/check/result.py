# SPDX-License-Identifier: MIT
"""From a verdict to the calibration file that perception reads."""

from __future__ import annotations

import math
from pathlib import Path

import equi_calibration
from equi_calibration.cell_file import CellSettings
from equi_calibration.check.checks import Verdict
from equi_calibration.collect.dataset import Dataset
from equi_calibration.scene.depth import cloud_poses
from equi_calibration.scene.scene import SceneReport
from equi_calibration.solve.solution import Solution
from equi_core.calibration import (
    FILE_NAME,
    CalibrationLimits,
    CameraCalibration,
    CellCalibration,
)

_NOT_MEASURED = 1e6
"""Stands for a residual that could not be measured; far above every limit."""


def calibration_of(
    cell: CellSettings,
    dataset: Dataset,
    solution: Solution,
    scene: SceneReport,
    verdict: Verdict,
    *,
    camera_to_host_s: float | None = None,
    command_to_motion_s: float | None = None,
) -> CellCalibration:
    """The calibration in the form that perception reads, whatever the verdict."""
    limits = cell.limits
    poses = cloud_poses(
        solution.base_from_camera,
        {name: camera.cloud_from_image for name, camera in dataset.cameras.items()},
    )
    cameras = tuple(
        CameraCalibration.from_pose(
            poses[name],
            name=name,
            serial=dataset.cameras[name].serial,
            optical_frame=dataset.cameras[name].optical_frame,
            reprojection_px=_finite(solution.cameras[name].reprojection_px),
            position_error_mm=_finite(solution.cameras[name].position_error_mm),
            orientation_error_deg=_finite(solution.cameras[name].orientation_error_deg),
            depth_scale=scene.views[name].correction.scale,
            depth_offset_m=scene.views[name].correction.offset_m,
        )
        for name in cell.names
    )
    workspace = cell.scene.workspace
    worst_table = max(view.table.worst_mm(workspace) for view in scene.views.values())
    return CellCalibration(
        cell=cell.cell,
        created_utc=solution.created_utc,
        valid_for_days=limits.valid_for_days,
        robot_serial=dataset.robot_serial,
        software_version=equi_calibration.__version__,
        passed=verdict.passed,
        problems=verdict.problems,
        cross_camera_mm=_finite(scene.cross_camera_mm) if len(cameras) > 1 else 0.0,
        table_plane_mm=_finite(worst_table),
        cameras=cameras,
        limits=CalibrationLimits(
            reprojection_px=limits.reprojection_px,
            position_error_mm=limits.position_error_mm,
            orientation_error_deg=limits.orientation_error_deg,
            cross_camera_mm=limits.cross_camera_mm,
            table_plane_mm=limits.table_plane_mm,
        ),
        camera_to_host_s=camera_to_host_s,
        command_to_motion_s=command_to_motion_s,
    )


def result_path(results: Path, cell: str) -> Path:
    """Where the calibration of a cell lies."""
    return results / cell / FILE_NAME


def _finite(value: float) -> float:
    return float(value) if math.isfinite(value) else _NOT_MEASURED
