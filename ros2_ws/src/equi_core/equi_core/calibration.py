# SPDX-License-Identifier: MIT
"""Calibration files: where each camera of a cell is, how well that is known, and the verdict.

One file per cell, `~/.ros/equi/calibration/<cell>/calibration.yaml`. The calibration tool writes
it, perception reads it. Reading is strict (unknown, missing, mistyped and out-of-range fields are
refused by name), a digest detects hand edits, and `require_usable` refuses a calibration that
failed, expired, or belongs to other cameras. All poses are of the camera's *optical* frame
(x right, y down, z forward) in base_link; metres unless the name says otherwise.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import ArrayLike, NDArray

from equi_core import geometry as geo
from equi_core.files.plain_data import PlainDataError, read_yaml
from equi_core.strict_fields import FieldError, plain_fields, read_fields

FORMAT_VERSION = 1
FILE_NAME = "calibration.yaml"

ANY_SERIAL = "any"
"""In place of a serial number: the device is not checked."""
_UNIT_TOLERANCE = 1e-3
_LONGEST_VALID_DAYS = 36_525.0
"""A century: that of a simulated cell does not expire."""


class CalibrationError(ValueError):
    """A calibration file that cannot be read or must not be used; says which and what to do."""


class CalibrationFormatError(CalibrationError):
    """The file is missing, malformed, of another version, or was edited by hand."""


class CalibrationRefusedError(CalibrationError):
    """The file is sound, but its verdict, age or cameras forbid its use."""


@dataclass(frozen=True)
class CameraCalibration:
    """One camera: pose, depth correction, and how wrong they may be."""

    name: str
    """Name in the cell, e.g. cam_left; prefix of its topics."""
    serial: str
    """Serial number of the device that was calibrated; another device is refused."""
    optical_frame: str
    """frame_id of its clouds."""
    position_m: tuple[float, float, float]
    """Optical centre in base_link [m]."""
    quaternion_xyzw: tuple[float, float, float, float]
    """base_from_camera rotation, ROS order."""
    reprojection_px: float
    """Root mean square of the board's reprojection error [px]."""
    position_error_mm: float
    """Position error on poses that were held out [mm]."""
    orientation_error_deg: float
    """Orientation error on poses that were held out [deg]."""
    depth_scale: float = 1.0
    """Corrected point = depth_scale * point + (0, 0, depth_offset_m), in the optical frame."""
    depth_offset_m: float = 0.0

    def __post_init__(self) -> None:
        if not self.name or not self.optical_frame:
            raise CalibrationFormatError("a camera needs a name and an optical_frame")
        numbers = [*self.position_m, *self.quaternion_xyzw, self.depth_scale, self.depth_offset_m]
        if not all(math.isfinite(number) for number in numbers):
            raise CalibrationFormatError(f"camera '{self.name}': {numbers} must all be finite")
        length = math.sqrt(sum(number**2 for number in self.quaternion_xyzw))
        if abs(length - 1.0) > _UNIT_TOLERANCE:
            raise CalibrationFormatError(
                f"camera '{self.name}': quaternion_xyzw has length {length:.4f}; it must be 1"
            )
        if not 0.8 < self.depth_scale < 1.25:
            raise CalibrationFormatError(
                f"camera '{self.name}': depth_scale is {self.depth_scale}; a sound camera lies "
                "between 0.8 and 1.25: check its unit (clouds are in metres)"
            )
        for residual in ("reprojection_px", "position_error_mm", "orientation_error_deg"):
            _require_residual(f"camera '{self.name}': {residual}", getattr(self, residual))

    @classmethod
    def from_pose(cls, base_from_camera: ArrayLike, **fields: Any) -> CameraCalibration:
        """Build one from a pose (4, 4) instead of position and quaternion."""
        pose = np.asarray(base_from_camera, dtype=np.float64)
        quaternion = geo.quaternion_xyzw(pose[:3, :3])
        return cls(
            position_m=tuple(float(value) for value in pose[:3, 3]),  # type: ignore[arg-type]
            quaternion_xyzw=tuple(float(value) for value in quaternion),  # type: ignore[arg-type]
            **fields,
        )

    @property
    def base_from_camera(self) -> NDArray[np.float64]:
        """Rigid pose (4, 4) of the optical frame in base_link."""
        rotation = geo.quaternion_xyzw_to_matrix(self.quaternion_xyzw)
        return geo.pose_matrix(self.position_m, rotation)

    @property
    def base_from_raw_points(self) -> NDArray[np.float64]:
        """(4, 4) that takes *uncorrected* camera points to base_link, correcting their depth."""
        correction = np.diag([self.depth_scale] * 3 + [1.0])
        correction[2, 3] = self.depth_offset_m
        corrected: NDArray[np.float64] = self.base_from_camera @ correction
        return corrected


@dataclass(frozen=True)
class CalibrationLimits:
    """What a calibration had to reach to pass."""

    reprojection_px: float = 1.0
    position_error_mm: float = 5.0
    orientation_error_deg: float = 0.5
    cross_camera_mm: float = 5.0
    table_plane_mm: float = 5.0


@dataclass(frozen=True)
class CellCalibration:
    """All cameras of a cell with the verdict on them."""

    cell: str
    created_utc: str
    """ISO 8601 time with offset, e.g. 2026-11-16T08:00:00+00:00."""
    valid_for_days: float
    robot_serial: str
    software_version: str
    passed: bool
    """The verdict of `equi-calibrate check`."""
    problems: tuple[str, ...]
    """Why it did not pass, one sentence each; empty if it did."""
    cross_camera_mm: float
    """Median distance between the cameras' clouds on the workspace [mm]."""
    table_plane_mm: float
    """Largest height of the fitted table plane over the workspace, true value 0 [mm]."""
    cameras: tuple[CameraCalibration, ...]
    limits: CalibrationLimits = field(default_factory=CalibrationLimits)
    camera_to_host_s: float | None = None
    """Measured delay from exposure to arrival of a cloud [s]; None: not measured."""
    command_to_motion_s: float | None = None
    """Measured delay from a command to motion of the arm [s]; None: not measured."""
    format_version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        if self.format_version != FORMAT_VERSION:
            raise CalibrationFormatError(
                f"format_version is {self.format_version}; this code reads {FORMAT_VERSION}: "
                "calibrate again"
            )
        names = [camera.name for camera in self.cameras]
        if not names or len(set(names)) != len(names):
            raise CalibrationFormatError(f"cameras {names} must be at least one, each named once")
        if not 0 < self.valid_for_days <= _LONGEST_VALID_DAYS:
            raise CalibrationFormatError(
                f"valid_for_days is {self.valid_for_days}; it must be above 0 and at most "
                f"{_LONGEST_VALID_DAYS:g}"
            )
        if self.passed == bool(self.problems):
            raise CalibrationFormatError(
                f"passed is {self.passed} with problems {list(self.problems)}; "
                "a calibration passes exactly if it has no problem"
            )
        for residual in ("cross_camera_mm", "table_plane_mm"):
            _require_residual(residual, getattr(self, residual))
        _ = self.expires

    @property
    def created(self) -> datetime:
        """When it was made."""
        try:
            moment = datetime.fromisoformat(self.created_utc.replace("Z", "+00:00"))
        except ValueError as error:
            raise CalibrationFormatError(
                f"created_utc is {self.created_utc!r}; give ISO 8601 such as 2026-11-16T08:00:00Z"
            ) from error
        return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)

    @property
    def expires(self) -> datetime:
        """When it stops being usable."""
        try:
            return self.created + timedelta(days=self.valid_for_days)
        except OverflowError as error:
            raise CalibrationFormatError(
                f"created_utc is {self.created_utc!r}; the date is out of range"
            ) from error

    def camera(self, name: str) -> CameraCalibration:
        """The camera of that name."""
        for camera in self.cameras:
            if camera.name == name:
                return camera
        known = ", ".join(camera.name for camera in self.cameras)
        raise CalibrationRefusedError(
            f"cell '{self.cell}' has no calibrated camera '{name}' (known: {known}); "
            "calibrate it or correct the cell's parameter file"
        )

    def require_usable(
        self,
        cameras: Iterable[str],
        *,
        cell: str | None = None,
        now: datetime | None = None,
        serials: Mapping[str, str] | None = None,
    ) -> None:
        """Raise CalibrationRefusedError unless perception may use it.

        Args:
            cameras: names that perception will fuse; each must be calibrated.
            cell: name of the cell at hand; a calibration of another cell is foreign.
            now: present time; the machine's clock by default.
            serials: serial numbers of the connected devices by camera name; `any` is not
                checked, an empty one is refused. None: nothing is known of the devices.
        """
        if cell is not None and cell != self.cell:
            raise CalibrationRefusedError(
                f"the calibration is of cell '{self.cell}', not of '{cell}'; calibrate this cell"
            )
        if not self.passed:
            raise CalibrationRefusedError(
                f"the calibration of cell '{self.cell}' failed its check: "
                f"{'; '.join(self.problems)}; run 'equi-calibrate collect' and 'solve' again"
            )
        self._require_within_limits()
        moment = now or datetime.now(timezone.utc)
        if moment > self.expires:
            raise CalibrationRefusedError(
                f"the calibration of cell '{self.cell}' expired on {self.expires.date()} "
                f"({self.valid_for_days:g} days after {self.created.date()}); calibrate again"
            )
        for name in cameras:
            expected = self.camera(name).serial
            connected = expected if serials is None else serials.get(name, "")
            if not connected:
                raise CalibrationRefusedError(
                    f"camera '{name}' has no serial number in the cell file; write the one on its "
                    f"label ({expected} was calibrated), or 'any' to skip the check"
                )
            if connected not in (expected, ANY_SERIAL):
                raise CalibrationRefusedError(
                    f"camera '{name}' has serial {connected}, but {expected} was calibrated; "
                    "swap the cameras back or calibrate again"
                )

    def _require_within_limits(self) -> None:
        """Hold the residuals against the limits once more: the verdict alone is not trusted."""
        for camera in self.cameras:
            for name in ("reprojection_px", "position_error_mm", "orientation_error_deg"):
                value, limit = getattr(camera, name), getattr(self.limits, name)
                if value > limit:
                    raise CalibrationRefusedError(
                        f"camera '{camera.name}': {name} is {value:g}, above its limit {limit:g}; "
                        "calibrate again"
                    )
        for name in ("cross_camera_mm", "table_plane_mm"):
            value, limit = getattr(self, name), getattr(self.limits, name)
            if value > limit:
                raise CalibrationRefusedError(
                    f"{name} is {value:g}, above its limit {limit:g}; calibrate again"
                )

    @property
    def content_sha256(self) -> str:
        """Digest of all fields."""
        return _digest(plain_fields(self))

    def save(self, path: Path) -> None:
        """Write the file with its digest; a reader sees the old file or the whole new one."""
        plain = {**plain_fields(self), "content_sha256": self.content_sha256}
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".partial")
        header = "# Written by the calibration tool; perception refuses a file edited by hand.\n"
        text = header + yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)

    @classmethod
    def load(cls, path: Path) -> CellCalibration:
        """Read a file; `path` may also be the folder that holds `calibration.yaml`."""
        file = path / FILE_NAME if path.is_dir() else path
        if not file.is_file():
            raise CalibrationFormatError(
                f"no calibration at {file}; run 'equi-calibrate collect', 'solve' and 'check'"
            )
        try:
            data = read_yaml(file)
        except PlainDataError as error:
            raise CalibrationFormatError(f"{file} {error}") from error
        if not isinstance(data, dict):
            raise CalibrationFormatError(f"{file} holds {type(data).__name__}, not named fields")
        stated = data.pop("content_sha256", None)
        try:
            calibration = read_fields(cls, data)
        except FieldError as error:
            raise CalibrationFormatError(f"{file}: {error}") from error
        if stated != calibration.content_sha256:
            raise CalibrationFormatError(
                f"{file} does not match its content_sha256: it was edited by hand or is damaged; "
                "run 'equi-calibrate check' to write it again"
            )
        return calibration


def _require_residual(name: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise CalibrationFormatError(f"{name} is {value}; it must be a number of at least 0")


def _digest(plain: Mapping[str, Any]) -> str:
    canonical = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
