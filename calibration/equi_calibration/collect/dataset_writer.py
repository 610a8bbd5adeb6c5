# SPDX-License-Identifier: MIT
"""Writes a calibration dataset: complete at its end, or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

import equi_calibration
from equi_calibration.board.board import BoardSpec
from equi_calibration.collect.dataset import (
    FORMAT,
    INDEX_FILE,
    VERSION,
    CameraRecord,
    content_checksum,
    sha256_of,
)
from equi_calibration.errors import DatasetError

FloatArray = NDArray[np.float64]


class DatasetWriter:
    """Writes a dataset; nothing is valid before the `with` block ends without an error."""

    def __init__(
        self,
        folder: Path,
        *,
        cell: str,
        created_utc: str,
        robot_serial: str,
        board: BoardSpec,
        cameras: Mapping[str, CameraRecord],
    ) -> None:
        if folder.exists() and any(folder.iterdir()):
            raise DatasetError(f"{folder} is not empty; choose a new folder for each dataset")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._head = {
            "format": FORMAT,
            "version": VERSION,
            "cell": cell,
            "created_utc": created_utc,
            "software_version": equi_calibration.__version__,
            "robot_serial": robot_serial,
            "board": board.as_dict(),
            "cameras": {
                name: {
                    "serial": record.serial,
                    "optical_frame": record.optical_frame,
                    "intrinsics": record.intrinsics.as_dict(),
                    "cloud_from_image": record.cloud_from_image.tolist(),
                }
                for name, record in cameras.items()
            },
        }
        self._poses: list[dict[str, Any]] = []
        self._scenes: list[dict[str, Any]] = []
        self._files: dict[str, str] = {}

    def add_pose(
        self,
        base_from_tcp: FloatArray,
        joints_rad: FloatArray,
        stamp_s: float,
        images: Mapping[str, NDArray[np.uint8]],
        image_stamps_s: Mapping[str, float],
    ) -> int:
        """Add a stop with the images taken there; returns its index."""
        index = len(self._poses)
        names = {}
        for camera, image in images.items():
            name = f"images/{camera}/{index:04d}.png"
            self._store(name, cv2.imencode(".png", image)[1].tobytes())
            names[camera] = name
        self._poses.append(
            {
                "base_from_tcp": np.asarray(base_from_tcp).tolist(),
                "joints_rad": np.asarray(joints_rad).tolist(),
                "stamp_s": float(stamp_s),
                "images": names,
                "image_stamps_s": {name: float(stamp) for name, stamp in image_stamps_s.items()},
            }
        )
        return index

    def add_scene(
        self,
        name: str,
        blocks: int,
        clouds: Mapping[str, NDArray[np.floating]],
        stamps_s: Mapping[str, float],
    ) -> None:
        """Add clouds (N, 3) of the table with some blocks on it."""
        files = {}
        for camera, points in clouds.items():
            file = f"clouds/{name}_{camera}.npz"
            path = self.folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(path, points_m=np.asarray(points, dtype=np.float32))
            self._files[file] = sha256_of(path.read_bytes())
            files[camera] = file
        self._scenes.append(
            {
                "name": name,
                "blocks": int(blocks),
                "clouds": files,
                "stamps_s": {camera: float(stamp) for camera, stamp in stamps_s.items()},
            }
        )

    def __enter__(self) -> DatasetWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.finish()

    def finish(self) -> None:
        """Write the index with its checksum; the dataset is valid from here on."""
        content = {**self._head, "poses": self._poses, "scenes": self._scenes, "files": self._files}
        content["checksum"] = content_checksum(content)
        partial = self.folder / (INDEX_FILE + ".partial")
        partial.write_text(json.dumps(content, indent=1), encoding="utf-8")
        partial.replace(self.folder / INDEX_FILE)

    def _store(self, name: str, data: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        self._files[name] = sha256_of(data)
