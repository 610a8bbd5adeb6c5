# SPDX-License-Identifier: MIT
"""The cameras' calibration: verdict, age, and whether it is of these devices."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

from equi_control.doctor.finding import Finding, fail, ok, skipped, warn
from equi_core.calibration import (
    ANY_SERIAL,
    CalibrationError,
    CalibrationFormatError,
    CellCalibration,
)
from equi_core.cell_file import CellFile

_SOON_DAYS = 3.0
_AGAIN = "run 'equi-calibrate collect', 'solve' and 'check'"


def check_calibration(
    folder: Path, cell: CellFile, now: datetime | None = None
) -> tuple[Finding, CellCalibration | None]:
    """Verdict and age; the calibration too, if its file can be read."""
    moment = now or datetime.now(timezone.utc)
    try:
        calibration = CellCalibration.load(folder)
    except CalibrationFormatError as error:
        return fail("calibration", _without_advice(error), _AGAIN), None
    age_days = (moment - calibration.created).total_seconds() / 86400
    left_days = (calibration.expires - moment).total_seconds() / 86400
    try:
        calibration.require_usable(cell.camera_names, cell=cell.name, now=moment)
    except CalibrationError as error:
        return fail("calibration", _without_advice(error), _AGAIN), calibration
    found = (
        f"passed, {age_days:.1f} days old, {left_days:.0f} left, cameras agree to "
        f"{calibration.cross_camera_mm:.1f} mm"
    )
    if left_days < _SOON_DAYS:
        return warn("calibration", found, f"it expires soon: {_AGAIN}"), calibration
    return ok("calibration", found), calibration


def check_serials(cell: CellFile, calibration: CellCalibration | None) -> Finding:
    """Whether the cell's cameras are the calibrated devices."""
    if calibration is None:
        return skipped("camera serials", "no calibration to compare with")
    problems = []
    for name, camera in cell.cameras.items():
        expected = next((one.serial for one in calibration.cameras if one.name == name), None)
        if expected is None:
            problems.append(f"{name} is not calibrated")
        elif not camera.serial:
            problems.append(f"{name} has none in the cell file")
        elif camera.serial not in (expected, ANY_SERIAL):
            problems.append(f"{name} is {camera.serial}, calibrated was {expected}")
    if problems:
        return fail(
            "camera serials",
            "; ".join(problems),
            f"write the serial of the label to cell.<camera>.serial, swap the cameras back, or "
            f"{_AGAIN}",
        )
    unchecked = [name for name, camera in cell.cameras.items() if camera.serial == ANY_SERIAL]
    if unchecked:
        return warn(
            "camera serials",
            f"{', '.join(unchecked)}: any device is accepted",
            "write the serial numbers to the cell file, so that swapped cameras are detected",
        )
    return ok("camera serials", "as calibrated")


def _without_advice(error: CalibrationError) -> str:
    """What is wrong; what to do stands in the repair already."""
    what, _, _advice = str(error).rpartition("; ")
    return what or str(error)
