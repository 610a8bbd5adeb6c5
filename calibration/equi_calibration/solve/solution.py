"""The solver's answer as a file, so that `check` can judge it later and a report can show it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import equi_calibration
from equi_calibration.collect.dataset import Dataset
from equi_calibration.errors import DatasetError
from equi_calibration.solve.accuracy import radius_95
from equi_calibration.solve.drift import find_drift
from equi_calibration.solve.solver import Solved

FloatArray = NDArray[np.float64]

FILE_NAME = "solution.json"
_FORMAT = "equi-calibration-solution"


@dataclass(frozen=True)
class CameraSolution:
    """What was found for one camera, in plain numbers."""

    base_from_camera: list[list[float]]
    """(4, 4) of the image's optical frame."""
    covariance: list[list[float]]
    """(6, 6) position [m] and rotation [rad] error in base_link, at the workspace's middle."""
    views: int
    rejected_views: int
    reprojection_px: float
    raw_reprojection_px: float
    """With the robot's poses as reported."""
    hold_out_px: float
    position_error_mm: float
    worst_position_error_mm: float
    orientation_error_deg: float
    drift_mm: float
    drift_significance: float
    drift_after_pose: int
    intrinsics: dict[str, Any]

    @property
    def pose(self) -> FloatArray:
        """base_from_camera as an array."""
        return np.array(self.base_from_camera)

    @property
    def position_uncertainty_mm(self) -> float:
        """95 % radius of the position error at the middle of the workspace [mm]."""
        return 1000 * radius_95(np.array(self.covariance)[:3, :3])

    @property
    def rotation_uncertainty_deg(self) -> float:
        """95 % limit of the angle by which the camera may be turned, about any axis [deg]."""
        return float(np.degrees(radius_95(np.array(self.covariance)[3:, 3:])))


@dataclass(frozen=True)
class SolutionRecord:
    """What `solve` found."""

    cell: str
    dataset: str
    """Folder, as it was given."""
    dataset_checksum: str
    created_utc: str
    """When the data were collected; the age of a calibration counts from here."""
    solved_utc: str
    software_version: str
    cameras: dict[str, CameraSolution]
    tcp_from_board: list[list[float]]
    board_scale: float
    board_scale_sigma: float
    pixel_noise_px: float
    robot_position_noise_mm: float
    robot_rotation_noise_deg: float
    cross_camera_board_mm: float | None
    """RMS distance of a held-out board seen by two cameras; None if no pose was shared."""
    shared_poses: int
    poses: int
    rejected_corners: int
    rejections: dict[str, list[str]]
    """Image file to reasons."""

    def save(self, folder: Path) -> Path:
        """Write the record; returns its path."""
        content = {"format": _FORMAT, **asdict(self)}
        content["sha256"] = _digest(content)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / FILE_NAME
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(content, indent=1), encoding="utf-8")
        partial.replace(path)
        return path

    @classmethod
    def load(cls, folder: Path) -> SolutionRecord:
        """Read a record; a damaged or edited one is refused."""
        path = folder / FILE_NAME if folder.is_dir() else folder
        if not path.is_file():
            raise DatasetError(f"no {FILE_NAME} in {folder}; run 'equi-calibrate solve' first")
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            stated = content.pop("sha256", None)
            if content.get("format") != _FORMAT or stated != _digest(content):
                raise DatasetError(
                    f"{path} does not match its checksum: it was edited or is damaged; "
                    "run 'equi-calibrate solve' again"
                )
            content.pop("format")
            content["cameras"] = {
                name: CameraSolution(**values) for name, values in content["cameras"].items()
            }
            return cls(**content)
        except (json.JSONDecodeError, UnicodeDecodeError, TypeError, AttributeError) as error:
            raise DatasetError(f"{path} is damaged: {error}") from error


def record_of(dataset: Dataset, solved: Solved) -> SolutionRecord:
    """Put a solution into plain numbers."""
    solution, held = solved.solution, solved.hold_out
    rejections = {file: list(reasons) for file, reasons in solved.rejected_views.items()}
    for text in solution.rejected_views:
        file, _, reason = text.partition(": ")
        rejections.setdefault(file, []).append(reason)
    cameras = {}
    for name in solved.problem.cameras:
        drift = find_drift(solved.problem, solution, name)
        images = [pose.images[name] for pose in dataset.poses if name in pose.images]
        cameras[name] = CameraSolution(
            solution.estimate.base_from_camera[name].tolist(),
            solution.covariance[name].tolist(),
            len(solution.used.views_of(name)),
            sum(file in rejections for file in images),
            solution.corner_rms_px[name],
            solution.raw_rms_px[name],
            held.pixel_px[name],
            held.position_mm[name],
            held.worst_mm[name],
            held.orientation_deg[name],
            drift.step_mm,
            drift.significance,
            drift.after_pose,
            solution.intrinsics[name].as_dict(),
        )
    shared = float(held.cross_camera_mm)
    return SolutionRecord(
        cell=dataset.cell,
        dataset=str(dataset.folder),
        dataset_checksum=dataset.checksum,
        created_utc=dataset.created_utc,
        solved_utc=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        software_version=equi_calibration.__version__,
        cameras=cameras,
        tcp_from_board=solution.estimate.tcp_from_board.tolist(),
        board_scale=solved.board_scale,
        board_scale_sigma=solved.board_scale_sigma,
        pixel_noise_px=solution.noise.pixel_px,
        robot_position_noise_mm=1000 * solution.noise.robot_position_m,
        robot_rotation_noise_deg=float(np.degrees(solution.noise.robot_rotation_rad)),
        cross_camera_board_mm=shared if np.isfinite(shared) else None,
        shared_poses=held.shared_poses,
        poses=len(solution.used.used_poses),
        rejected_corners=solution.rejected_corners,
        rejections=rejections,
    )


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
