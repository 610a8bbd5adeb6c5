# SPDX-License-Identifier: MIT
"""The calibration block of cell files: strict, and the shipped ones are sound."""

from __future__ import annotations

import pytest
import yaml
from calibration_cells import ROOT, simulated_cell

from equi_calibration.cell_file import load_cell
from equi_calibration.errors import CellFileError
from equi_core.calibration import CellCalibration


@pytest.fixture
def content():
    return yaml.safe_load((ROOT / "launch" / "cells" / "sim.yaml").read_text())


def load(content, tmp_path):
    path = tmp_path / "cell.yaml"
    path.write_text(yaml.safe_dump(content))
    return load_cell(path)


def test_the_simulated_cell_agrees_with_its_calibration_file():
    cell = simulated_cell()
    stored = CellCalibration.load(ROOT / "calibration" / "results" / "sim")
    for camera in cell.cameras:
        assert stored.camera(camera.name).serial == camera.serial
        assert stored.camera(camera.name).optical_frame == camera.optical_frame


def test_the_laboratory_template_asks_for_serial_numbers():
    with pytest.raises(CellFileError, match=r"cell\.cam_left\.serial"):
        load_cell(ROOT / "launch" / "cells" / "lab.yaml")


def test_the_arm_is_the_one_that_the_driver_expects(content, tmp_path):
    content["rtde_driver"]["ros__parameters"]["link.robot_model"] = "ur5e"
    assert load(content, tmp_path).arm.name == "ur5e"
    content["rtde_driver"]["ros__parameters"]["link.robot_model"] = "ur7"
    with pytest.raises(CellFileError, match="known are ur3, ur5"):
        load(content, tmp_path)


def test_a_misspelt_limit_is_refused_by_name(content, tmp_path):
    content["equi_calibrate"]["ros__parameters"]["limits"]["tabel_plane_mm"] = 1.0
    with pytest.raises(CellFileError, match=r"equi_calibrate\.limits\.tabel_plane_mm' is unknown"):
        load(content, tmp_path)


def test_a_missing_field_is_refused_by_name(content, tmp_path):
    del content["equi_calibrate"]["ros__parameters"]["collect"]["speed_m_s"]
    with pytest.raises(CellFileError, match=r"equi_calibrate\.collect\.speed_m_s' is missing"):
        load(content, tmp_path)


def test_a_fast_collection_is_refused(content, tmp_path):
    content["equi_calibrate"]["ros__parameters"]["collect"]["speed_m_s"] = 1.5
    with pytest.raises(CellFileError, match=r"speed_m_s = 1\.5"):
        load(content, tmp_path)


def test_a_negative_limit_is_refused(content, tmp_path):
    content["equi_calibrate"]["ros__parameters"]["limits"]["moved_mm"] = -1.0
    with pytest.raises(CellFileError, match="moved_mm"):
        load(content, tmp_path)


def test_a_cell_file_without_calibration_says_so(content, tmp_path):
    del content["equi_calibrate"]
    with pytest.raises(CellFileError, match="no block 'equi_calibrate'"):
        load(content, tmp_path)


@pytest.mark.parametrize("field", ["optical_frame", "image_topic", "camera_info_topic"])
def test_an_empty_name_of_a_camera_is_refused(content, tmp_path, field):
    content["equi_calibrate"]["ros__parameters"]["cameras"]["cam_left"][field] = ""
    with pytest.raises(CellFileError, match=rf"cameras\.cam_left.*{field} is empty"):
        load(content, tmp_path)


def test_an_empty_serial_number_of_the_robot_is_refused(content, tmp_path):
    content["equi_calibrate"]["ros__parameters"]["robot_serial"] = ""
    with pytest.raises(CellFileError, match="robot_serial is empty"):
        load(content, tmp_path)
