# SPDX-License-Identifier: MIT
"""Specification of calibration files: exact round trip, strict reading, refusals that say why."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
import yaml

from equi_core import geometry as geo
from equi_core.calibration import (
    CalibrationFormatError,
    CalibrationRefusedError,
    CameraCalibration,
    CellCalibration,
)

MADE = datetime(2026, 11, 1, tzinfo=timezone.utc)
LEFT_POSE = geo.pose_matrix([0.5, 0.8, 0.6], geo.rotvec_to_matrix([2.2, 0.1, 0.2]))


def camera(name="cam_left", **changes) -> CameraCalibration:
    fields = {
        "name": name,
        "serial": f"serial-of-{name}",
        "optical_frame": f"{name}_depth_optical_frame",
        "reprojection_px": 0.3,
        "position_error_mm": 1.2,
        "orientation_error_deg": 0.1,
        **changes,
    }
    return CameraCalibration.from_pose(LEFT_POSE, **fields)


def calibration(**changes) -> CellCalibration:
    fields = {
        "cell": "lab",
        "created_utc": MADE.isoformat(),
        "valid_for_days": 30.0,
        "robot_serial": "2014350001",
        "software_version": "0.1.0",
        "passed": True,
        "problems": (),
        "cross_camera_mm": 1.0,
        "table_plane_mm": 1.0,
        "cameras": (camera("cam_left"), camera("cam_right")),
        **changes,
    }
    return CellCalibration(**fields)


BOTH = ("cam_left", "cam_right")


def test_a_file_gives_back_what_was_written(tmp_path):
    original = calibration(camera_to_host_s=0.05)
    original.save(tmp_path / "calibration.yaml")
    assert CellCalibration.load(tmp_path / "calibration.yaml") == original
    assert CellCalibration.load(tmp_path) == original, "a folder stands for its file"
    np.testing.assert_allclose(original.camera("cam_left").base_from_camera, LEFT_POSE, atol=1e-12)


def test_the_depth_correction_is_applied_before_the_pose():
    corrected = camera(depth_scale=1.01, depth_offset_m=-0.004)
    point = np.array([0.1, -0.2, 0.9])
    expected = geo.transform_points(LEFT_POSE, [1.01 * point + [0, 0, -0.004]])[0]
    got = (corrected.base_from_raw_points @ [*point, 1.0])[:3]
    np.testing.assert_allclose(got, expected, atol=1e-12)


def test_a_sound_fresh_calibration_is_usable():
    calibration().require_usable(BOTH, cell="lab", now=MADE + timedelta(days=29))


@pytest.mark.parametrize(
    ("changes", "arguments", "word"),
    [
        ({}, {"now": MADE + timedelta(days=31)}, "expired"),
        ({"passed": False, "problems": ("cam_left moved",)}, {}, "cam_left moved"),
        ({}, {"cell": "other"}, "other"),
        ({}, {"serials": {"cam_left": "another"}}, "another"),
        ({}, {"serials": {"cam_left": "", "cam_right": "any"}}, "has no serial number"),
        ({}, {"cameras": ("cam_top",)}, "cam_top"),
        ({"cross_camera_mm": 9.0}, {}, "cross_camera_mm"),
        (
            {"cameras": (camera("cam_left", position_error_mm=9.0), camera("cam_right"))},
            {},
            "position_error_mm",
        ),
    ],
)
def test_an_unusable_calibration_is_refused_with_the_reason(changes, arguments, word):
    arguments = {"cameras": BOTH, "now": MADE, **arguments}
    with pytest.raises(CalibrationRefusedError, match=word):
        calibration(**changes).require_usable(arguments.pop("cameras"), **arguments)


def test_a_missing_file_says_how_to_make_one(tmp_path):
    with pytest.raises(CalibrationFormatError, match="equi-calibrate"):
        CellCalibration.load(tmp_path / "nothing.yaml")


@pytest.mark.parametrize(
    ("edit", "word"),
    [
        (lambda data: data.update(surplus=1), "surplus"),
        (lambda data: data.pop("cell"), "cell"),
        (lambda data: data["cameras"][0].update(position_m=[1, 2]), "position_m"),
        (lambda data: data["cameras"][0].update(position_m="here"), "position_m"),
        (lambda data: data["cameras"][0].update(quaternion_xyzw=[0, 0, 0, 2]), "length"),
        (lambda data: data["cameras"][0].update(depth_scale=0.001), "depth_scale"),
        (lambda data: data.update(format_version=99), "format_version"),
        (lambda data: data.update(created_utc="yesterday"), "created_utc"),
        (lambda data: data.update(cameras=[]), "cameras"),
        (lambda data: data["cameras"][0]["position_m"].__setitem__(0, 0.51), "edited by hand"),
        (lambda data: data.pop("content_sha256"), "content_sha256"),
    ],
)
def test_an_edited_file_is_refused_and_the_field_named(tmp_path, edit, word):
    path = tmp_path / "calibration.yaml"
    calibration().save(path)
    data = yaml.safe_load(path.read_text())
    edit(data)
    path.write_text(yaml.safe_dump(data))
    with pytest.raises(CalibrationFormatError, match=word):
        CellCalibration.load(path)


@pytest.mark.parametrize("text", ["", "[1, 2", "just words", "\x00"])
def test_a_damaged_file_is_refused(tmp_path, text):
    path = tmp_path / "calibration.yaml"
    path.write_text(text)
    with pytest.raises(CalibrationFormatError):
        CellCalibration.load(path)


def test_a_verdict_cannot_contradict_its_problems():
    with pytest.raises(CalibrationFormatError, match="passes exactly"):
        calibration(passed=True, problems=("something",))
    with pytest.raises(CalibrationFormatError, match="passes exactly"):
        dataclasses.replace(calibration(), passed=False)
