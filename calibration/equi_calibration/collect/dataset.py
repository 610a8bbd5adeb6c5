# SPDX-License-Identifier: MIT
"""A calibration dataset: one folder that holds everything a solver needs, and notices any change.

    dataset.json                 cell, board, cameras, poses, scenes, checksum of every file
    images/<camera>/0007.png     grey or colour image of the board at pose 7
    clouds/<scene>_<camera>.npz  points [m] of a scene without the arm, in the cloud's optical frame

Poses are `base_from_tcp` in base_link with joint angles and time stamps. The dataset carries its
intrinsics and serial numbers, so it can be solved again years later on another machine.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from equi_calibration.board.board import BoardSpec
from equi_calibration.board.intrinsics import Intrinsics
from equi_calibration.errors import DatasetError, ForeignImagesError
from equi_core.files.array_file import ArrayFileError, read_arrays
from equi_core.files.plain_data import PlainDataError, read_json

FloatArray = NDArray[np.float64]

FORMAT = "equi-calibration-dataset"
VERSION = 1
INDEX_FILE = "dataset.json"
SYNTHETIC_SERIAL = "synthetic"
"""Robot serial of synthetic datasets; they never become the calibration of a cell by default."""


@dataclass(frozen=True, eq=False)
class CameraRecord:
    """One camera of a dataset."""

    name: str
    serial: str
    optical_frame: str
    """frame_id of its clouds."""
    intrinsics: Intrinsics
    """Of its images."""
    cloud_from_image: FloatArray = field(default_factory=lambda: np.eye(4))
    """(4, 4) from the image's optical frame to the cloud's, as the device's maker measured it;
    identity where both are the same or clouds are aligned to the images."""


@dataclass(frozen=True, eq=False)
class PoseRecord:
    """One stop of the arm."""

    index: int
    base_from_tcp: FloatArray
    """(4, 4)"""
    joints_rad: FloatArray
    """(6,)"""
    stamp_s: float
    """When the pose was read, in seconds of the robot computer's clock."""
    images: Mapping[str, str]
    """Camera name to file, relative to the dataset."""
    image_stamps_s: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class SceneRecord:
    """Clouds of the table, seen with the arm out of the way."""

    name: str
    blocks: int
    """Blocks standing on the table."""
    clouds: Mapping[str, str]
    """Camera name to file, relative to the dataset."""
    stamps_s: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A dataset that was read and verified."""

    folder: Path
    cell: str
    created_utc: str
    software_version: str
    robot_serial: str
    board: BoardSpec
    cameras: Mapping[str, CameraRecord]
    poses: tuple[PoseRecord, ...]
    scenes: tuple[SceneRecord, ...]
    checksum: str

    def image(self, pose: PoseRecord, camera: str) -> NDArray[np.uint8]:
        """The image of one camera at one pose, grey (H, W)."""
        path = self.folder / pose.images[camera]
        image = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
        if image is None:
            raise DatasetError(f"{path} cannot be decoded as an image")
        lens = self.cameras[camera].intrinsics
        if image.shape != (lens.height_px, lens.width_px):
            raise ForeignImagesError(
                f"{pose.images[camera]} is {image.shape[1]} x {image.shape[0]} px, but the "
                f"intrinsics of '{camera}' are for {lens.width_px} x {lens.height_px} px: "
                "the images are of another camera or another mode"
            )
        return np.asarray(image, dtype=np.uint8)

    def cloud(self, scene: SceneRecord, camera: str) -> FloatArray:
        """Points (N, 3) of a scene in the cloud's optical frame [m]."""
        path = self.folder / scene.clouds[camera]
        try:
            points = np.asarray(read_arrays(path, ("points_m",))["points_m"], dtype=np.float64)
        except (ArrayFileError, TypeError, ValueError) as error:
            raise DatasetError(f"{path} cannot be read as a cloud: {error}") from error
        if points.ndim != 2 or points.shape[1] != 3:
            raise DatasetError(f"{path} holds an array of shape {points.shape}, not (N, 3)")
        return points

    def views(self) -> Iterator[tuple[PoseRecord, str]]:
        """Every image as (pose, camera)."""
        for pose in self.poses:
            for camera in sorted(pose.images):
                yield pose, camera


def load_dataset(folder: Path) -> Dataset:
    """Read a dataset and verify every file in it.

    Raises:
        DatasetError: incomplete, damaged or edited; names the file or field.
    """
    index = folder / INDEX_FILE
    if not index.is_file():
        raise DatasetError(
            f"no {INDEX_FILE} in {folder}: not a dataset, or collecting was interrupted; "
            "run 'equi-calibrate collect' (or 'simulate') again"
        )
    try:
        content = read_json(index)
    except PlainDataError as error:
        raise DatasetError(f"{index} is damaged: it {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DatasetError(f"{index} is not a calibration dataset")
    if content.get("version") != VERSION:
        raise DatasetError(
            f"{index} has version {content.get('version')}, this software reads {VERSION}"
        )
    stated = content.pop("checksum", None)
    if stated != content_checksum(content):
        raise DatasetError(f"{index} does not match its checksum: it was edited or is damaged")
    _verify_files(folder, content)
    try:
        return _parse(folder, content, stated)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, DatasetError):
            raise
        raise DatasetError(f"{index}: {type(error).__name__}: {error}") from error


def _verify_files(folder: Path, content: Mapping[str, Any]) -> None:
    for name, digest in content["files"].items():
        path = folder / name
        if not path.is_file():
            raise DatasetError(f"{path} is missing from the dataset")
        if sha256_of(path.read_bytes()) != digest:
            raise ForeignImagesError(
                f"{path} is not the file that was collected (its SHA-256 differs): "
                "it was replaced or damaged"
            )


def _parse(folder: Path, content: Mapping[str, Any], checksum: str) -> Dataset:
    cameras = {
        name: CameraRecord(
            name,
            str(record["serial"]),
            str(record["optical_frame"]),
            Intrinsics.from_dict(record["intrinsics"]),
            _matrix(record["cloud_from_image"], f"cameras.{name}.cloud_from_image"),
        )
        for name, record in content["cameras"].items()
    }
    poses = tuple(
        PoseRecord(
            index,
            _matrix(record["base_from_tcp"], f"poses[{index}].base_from_tcp"),
            np.asarray(record["joints_rad"], dtype=np.float64),
            float(record["stamp_s"]),
            dict(record["images"]),
            dict(record["image_stamps_s"]),
        )
        for index, record in enumerate(content["poses"])
    )
    for pose in poses:
        unknown = set(pose.images) - set(cameras)
        if unknown:
            raise DatasetError(f"poses[{pose.index}] has images of unknown cameras {unknown}")
    scenes = tuple(
        SceneRecord(
            str(record["name"]),
            int(record["blocks"]),
            dict(record["clouds"]),
            dict(record["stamps_s"]),
        )
        for record in content["scenes"]
    )
    return Dataset(
        folder,
        str(content["cell"]),
        str(content["created_utc"]),
        str(content["software_version"]),
        str(content["robot_serial"]),
        BoardSpec.from_dict(content["board"]),
        cameras,
        poses,
        scenes,
        checksum,
    )


def _matrix(value: Any, name: str) -> FloatArray:
    matrix = np.asarray(value, dtype=np.float64)
    rigid = (
        matrix.shape == (4, 4)
        and np.all(np.isfinite(matrix))
        and np.allclose(matrix[:3, :3] @ matrix[:3, :3].T, np.eye(3), atol=1e-6)
        and math.isclose(float(np.linalg.det(matrix[:3, :3])), 1.0, abs_tol=1e-6)
    )
    if not rigid:
        raise DatasetError(f"{name} is not a rigid (4, 4) transform: {value}")
    return matrix


def content_checksum(content: Mapping[str, Any]) -> str:
    """Digest of an index without its own digest."""
    return sha256_of(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())


def sha256_of(data: bytes) -> str:
    """Digest of a file's content."""
    return hashlib.sha256(data).hexdigest()
