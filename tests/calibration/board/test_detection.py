# SPDX-License-Identifier: MIT
"""Detection: corners without bias, and bad views refused with the reason."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from calibration_cells import LENS

from equi_calibration.board.board import BoardSpec
from equi_calibration.board.detection import BoardDetector, ViewGate
from equi_calibration.errors import BoardError
from equi_calibration.synthetic.board_render import draw_board
from equi_core.geometry import pose_matrix, rotvec_to_matrix, transform_points

BOARD = BoardSpec()
GATE = ViewGate(min_square_px=8.0)


def view(tilt_deg=20.0, distance_m=0.7, shift_m=(0.0, 0.0), blur_px=0.6, seed=0):
    """Rendered grey image and true camera_from_board."""
    axis = np.array([0.6, 0.8, 0.0])
    rotation = rotvec_to_matrix(np.radians(tilt_deg) * axis)
    centre = np.array([*shift_m, distance_m])
    pose = pose_matrix(centre - rotation @ BOARD.centre_m, rotation)
    image = np.full((LENS.height_px, LENS.width_px), 100, np.uint8)
    draw_board(image, None, BOARD, LENS, pose)
    noise = np.random.default_rng(seed).normal(0, 2.5, image.shape)
    light = cv2.GaussianBlur(image.astype(np.float64), (0, 0), blur_px) + noise
    return np.clip(light, 0, 255).astype(np.uint8), pose


def test_corners_are_found_without_the_half_pixel_of_the_opencv_detector():
    errors = []
    for seed in range(6):
        image, pose = view(tilt_deg=10.0 + 5 * seed, seed=seed)
        found = BoardDetector(BOARD, GATE).detect(image, LENS)
        assert found.accepted
        true = LENS.project(transform_points(pose, BOARD.corners_m()[found.corner_ids]))
        errors.append(found.corners_px - true)
    stacked = np.concatenate(errors)
    assert np.abs(stacked.mean(axis=0)).max() < 0.05
    assert np.sqrt(np.mean(stacked**2)) < 0.15


def test_the_pose_of_a_good_view_is_right():
    image, pose = view(tilt_deg=30.0)
    found = BoardDetector(BOARD, GATE).detect(image, LENS)
    assert np.linalg.norm(found.camera_from_board[:3, 3] - pose[:3, 3]) < 0.003
    assert found.tilt_deg == pytest.approx(30.0, abs=1.5)


def test_a_blank_image_is_refused():
    blank = np.full((480, 640), 90, np.uint8)
    found = BoardDetector(BOARD, GATE).detect(blank, LENS)
    assert not found.accepted
    assert "no board found" in found.rejections[0]


def test_a_blurred_view_is_refused_as_blurred():
    image, _ = view(distance_m=0.45, blur_px=1.6)
    found = BoardDetector(BOARD, GATE).detect(image, LENS)
    assert any("blurred" in reason for reason in found.rejections)


def test_a_partial_view_is_refused_as_partial():
    image, _ = view(distance_m=0.5, shift_m=(0.42, 0.0))
    found = BoardDetector(BOARD, GATE).detect(image, LENS)
    assert any("partial" in reason for reason in found.rejections)


def test_an_oblique_view_is_refused_as_oblique():
    image, _ = view(tilt_deg=58.0, distance_m=0.5)
    strict = ViewGate(max_tilt_deg=50.0, min_square_px=8.0)
    found = BoardDetector(BOARD, strict).detect(image, LENS)
    assert any("oblique" in reason for reason in found.rejections)


def test_an_image_of_another_type_is_an_error():
    with pytest.raises(BoardError, match="float64"):
        BoardDetector(BOARD).detect(np.zeros((480, 640)), LENS)
