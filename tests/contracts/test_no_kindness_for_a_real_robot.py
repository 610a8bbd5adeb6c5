# SPDX-License-Identifier: MIT
"""Law: limits of the simulated cell stay on loopback; no check is switched off silently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from equi_core.calibration import ANY_SERIAL, CalibrationRefusedError, CellCalibration
from equi_core.cell_file import CellFile, CellFileError
from equi_core.files.cell_ceilings import BOUNDS, loosened_too_far

CELLS = Path(__file__).resolve().parents[2] / "ros2_ws/src/equi_bringup/launch/cells"


def written(tmp_path: Path, change: Any, cell: str = "lab") -> Path:
    data = yaml.safe_load((CELLS / f"{cell}.yaml").read_text())
    change(data)
    path = tmp_path / "cell.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


@pytest.mark.parametrize("cell", ["sim", "lab"])
def test_the_shipped_cells_keep_their_bounds(cell: str) -> None:
    CellFile.load(CELLS / f"{cell}.yaml")


@pytest.mark.parametrize(
    ("node", "name"), [(node, name) for node, bounds in BOUNDS.items() for name in bounds]
)
def test_no_limit_of_a_real_cell_can_be_loosened_beyond_its_bound(
    tmp_path: Path, node: str, name: str
) -> None:
    bound = BOUNDS[node][name]
    too_loose = bound.real * (0.9 if bound.lower else 1.1)

    def loosen(data: dict[str, Any]) -> None:
        data.setdefault(node, {"ros__parameters": {}})["ros__parameters"][name] = too_loose

    with pytest.raises(CellFileError, match=name.replace(".", r"\.")):
        CellFile.load(written(tmp_path, loosen))


def test_the_simulated_cells_own_settings_are_refused_for_a_real_one(tmp_path: Path) -> None:
    def pretend(data: dict[str, Any]) -> None:
        data["cell"]["ros__parameters"]["simulated"] = False

    with pytest.raises(CellFileError, match="in a real cell"):
        CellFile.load(written(tmp_path, pretend, "sim"))


def test_the_file_of_a_real_cell_cannot_switch_the_calibration_check_off(tmp_path: Path) -> None:
    def switch_off(data: dict[str, Any]) -> None:
        data["depth_fusion"]["ros__parameters"]["ignore_calibration_verdict"] = True

    with pytest.raises(CellFileError, match="ignore_calibration_verdict"):
        CellFile.load(written(tmp_path, switch_off))


@pytest.mark.parametrize("value", [True, "0.1", None, float("nan"), -1.0])
def test_a_limit_that_is_no_number_of_its_range_is_refused(value: object) -> None:
    blocks = {"depth_fusion": {"max_cloud_age_s": value}}
    assert list(loosened_too_far(blocks, simulated=True))


def test_an_empty_camera_serial_is_refused_and_any_is_said_aloud(repository_root: Path) -> None:
    calibration = CellCalibration.load(repository_root / "calibration/results/sim")
    names = [camera.name for camera in calibration.cameras]
    serials = {camera.name: camera.serial for camera in calibration.cameras}
    calibration.require_usable(names, serials=serials)
    for wrong, word in (("", "no serial number"), ("123", "has serial 123")):
        with pytest.raises(CalibrationRefusedError, match=word):
            calibration.require_usable(names, serials={**serials, names[0]: wrong})
    calibration.require_usable(names, serials={**serials, names[0]: ANY_SERIAL})
