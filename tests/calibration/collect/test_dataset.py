# SPDX-License-Identifier: MIT
"""Datasets notice any change and name the file."""

from __future__ import annotations

import json

import cv2
import numpy as np
import pytest
from calibration_cells import LENS

from equi_calibration.board.board import BoardSpec
from equi_calibration.collect.dataset import CameraRecord, load_dataset
from equi_calibration.collect.dataset_writer import DatasetWriter
from equi_calibration.errors import DatasetError, ForeignImagesError


@pytest.fixture
def folder(tmp_path):
    """A small dataset of two poses."""
    path = tmp_path / "dataset"
    camera = CameraRecord("cam_left", "123", "cam_left_depth_optical_frame", LENS)
    with DatasetWriter(
        path,
        cell="sim",
        created_utc="2026-01-01T00:00:00+00:00",
        robot_serial="r",
        board=BoardSpec(),
        cameras={"cam_left": camera},
    ) as writer:
        for level in (50, 200):
            image = np.full((480, 640), level, np.uint8)
            writer.add_pose(np.eye(4), np.zeros(6), 1.0, {"cam_left": image}, {"cam_left": 1.1})
        writer.add_scene("blocks", 1, {"cam_left": np.ones((5, 3), np.float32)}, {"cam_left": 2.0})
    return path


def test_what_was_written_is_read_back(folder):
    data = load_dataset(folder)
    assert data.cell == "sim"
    assert data.board == BoardSpec()
    assert data.cameras["cam_left"].intrinsics == LENS
    assert [int(data.image(pose, "cam_left")[0, 0]) for pose in data.poses] == [50, 200]
    assert data.cloud(data.scenes[0], "cam_left").shape == (5, 3)


def test_a_replaced_image_is_named(folder):
    image = folder / "images" / "cam_left" / "0001.png"
    cv2.imwrite(str(image), np.zeros((480, 640), np.uint8))
    with pytest.raises(ForeignImagesError, match=r"0001\.png is not the file that was collected"):
        load_dataset(folder)


def test_a_missing_image_is_named(folder):
    (folder / "images" / "cam_left" / "0000.png").unlink()
    with pytest.raises(DatasetError, match=r"0000\.png is missing"):
        load_dataset(folder)


def test_an_edited_index_is_refused(folder):
    index = folder / "dataset.json"
    content = json.loads(index.read_text())
    content["poses"][0]["base_from_tcp"][0][3] = 0.01
    index.write_text(json.dumps(content))
    with pytest.raises(DatasetError, match="does not match its checksum"):
        load_dataset(folder)


def test_a_truncated_index_is_refused(folder):
    index = folder / "dataset.json"
    index.write_text(index.read_text()[:200])
    with pytest.raises(DatasetError, match="damaged"):
        load_dataset(folder)


def test_an_interrupted_collection_is_no_dataset(folder):
    (folder / "dataset.json").unlink()
    with pytest.raises(DatasetError, match="interrupted"):
        load_dataset(folder)


def test_images_of_another_camera_mode_are_refused(tmp_path):
    camera = CameraRecord("cam_left", "123", "f", LENS)
    with DatasetWriter(
        tmp_path / "d",
        cell="sim",
        created_utc="2026-01-01T00:00:00+00:00",
        robot_serial="r",
        board=BoardSpec(),
        cameras={"cam_left": camera},
    ) as writer:
        image = np.zeros((720, 1280), np.uint8)
        writer.add_pose(np.eye(4), np.zeros(6), 0.0, {"cam_left": image}, {"cam_left": 0.0})
    data = load_dataset(tmp_path / "d")
    with pytest.raises(ForeignImagesError, match="1280 x 720"):
        data.image(data.poses[0], "cam_left")


def test_a_folder_with_content_is_not_overwritten(folder):
    with pytest.raises(DatasetError, match="not empty"):
        DatasetWriter(
            folder, cell="sim", created_utc="", robot_serial="", board=BoardSpec(), cameras={}
        )
