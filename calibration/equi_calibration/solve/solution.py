# SPDX-License-Identifier: MIT
"""The solution of a calibration: computed by `solve`, stored as solution.json, read by `check`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equi_calibration.board.intrinsics import Intrinsics
from equi_calibration.errors import DatasetError
from equi_calibration.solve.accuracy import radius_95
from equi_core.files.plain_data import PlainDataError, read_json

FloatArray = NDArray[np.float64]

FILE_NAME = "solution.json"
_FORMAT = "equi-calibration-solution"


@dataclass(frozen=True, eq=False)
class CameraSolution:
    """What was found for one camera."""

    base_from_camera: FloatArray
    """(4, 4) of the image's optical frame."""
    covariance: FloatArray
    """(6, 6) position [m] and rotation [rad] error in base_link, at the workspace's centre."""
    views: int
    rejected_views: int
    reprojection_px: float
    """RMS over both coordinates of the accepted corners, with robot poses as corrected."""
    raw_reprojection_px: float
    """The same with robot poses as reported."""
    hold_out_px: float
    position_error_mm: float
    """RMS on held-out poses."""
    worst_position_error_mm: float
    orientation_error_deg: float
    drift_mm: float
    drift_significance: float
    drift_after_pose: int
    intrinsics: Intrinsics
    """As given, or refined."""

    @property
    def position_m(self) -> FloatArray:
        """Optical centre (3,) in base_link [m]."""
        return self.base_from_camera[:3, 3]

    @property
    def position_uncertainty_mm(self) -> float:
        """95 % radius of the position error at the centre of the workspace [mm]."""
        return 1000 * radius_95(self.covariance[:3, :3])

    @property
    def rotation_uncertainty_deg(self) -> float:
        """95 % limit of the angle by which the camera may be rotated, about any axis [deg]."""
        return float(np.degrees(radius_95(self.covariance[3:, 3:])))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> CameraSolution:
        """Read plain values as JSON has them."""
        return cls(
            **{
                **values,
                "base_from_camera": np.array(values["base_from_camera"], dtype=np.float64),
                "covariance": np.array(values["covariance"], dtype=np.float64),
                "intrinsics": Intrinsics.from_dict(values["intrinsics"]),
            }
        )


@dataclass(frozen=True, eq=False)
class Solution:
    """Where the cameras are, how certain that is, and which data say so."""

    cell: str
    dataset: str
    """Folder, as it was given."""
    dataset_checksum: str
    created_utc: str
    """When the data were collected; the age of a calibration counts from here."""
    solved_utc: str
    software_version: str
    cameras: Mapping[str, CameraSolution]
    tcp_from_board: FloatArray
    """(4, 4)"""
    board_scale: float
    """Size of the print over its stated size, from a separate fit."""
    board_scale_sigma: float
    pixel_noise_px: float
    robot_position_noise_mm: float
    robot_rotation_noise_deg: float
    cross_camera_board_mm: float | None
    """RMS distance of a held-out board seen by two cameras; None if no pose was shared."""
    shared_poses: int
    poses: int
    rejected_corners: int
    rejections: Mapping[str, list[str]]
    """Image file to reasons."""

    @property
    def base_from_camera(self) -> dict[str, FloatArray]:
        """(4, 4) per camera."""
        return {name: camera.base_from_camera for name, camera in self.cameras.items()}

    def save(self, folder: Path) -> Path:
        """Write solution.json into a folder; returns its path."""
        content = json.loads(json.dumps({"format": _FORMAT, **asdict(self)}, default=_plain))
        content["sha256"] = _digest(content)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / FILE_NAME
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(content, indent=1), encoding="utf-8")
        partial.replace(path)
        return path

    @classmethod
    def load(cls, folder: Path) -> Solution:
        """Read a solution; a damaged or edited one is refused."""
        path = folder / FILE_NAME if folder.is_dir() else folder
        if not path.is_file():
            raise DatasetError(f"no {FILE_NAME} in {folder}; run 'equi-calibrate solve' first")
        try:
            content = read_json(path)
            stated = content.pop("sha256", None)
            if content.get("format") != _FORMAT or stated != _digest(content):
                raise DatasetError(
                    f"{path} does not match its checksum: it was edited or is damaged; "
                    "run 'equi-calibrate solve' again"
                )
            content.pop("format")
            content["cameras"] = {
                name: CameraSolution.from_dict(values)
                for name, values in content["cameras"].items()
            }
            content["tcp_from_board"] = np.array(content["tcp_from_board"], dtype=np.float64)
            return cls(**content)
        except DatasetError:
            raise
        except (PlainDataError, KeyError, TypeError, AttributeError, ValueError) as error:
            raise DatasetError(f"{path} is damaged: {error}") from error


def _plain(value: Any) -> Any:
    """What JSON does not know, as what it knows."""
    return value.tolist()


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
