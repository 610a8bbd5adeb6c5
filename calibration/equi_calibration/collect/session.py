# SPDX-License-Identifier: MIT
"""Collect a dataset: carry the board from pose to pose, take images, keep the good views.

Works with whatever is behind `CameraSource` and `ArmMover`. Hand-guided collecting uses the
same loop without moves: the operator brings the arm to rest and confirms.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equi_calibration.board.detection import BoardDetector, Detection
from equi_calibration.cell_file import CellSettings
from equi_calibration.collect.dataset import CameraRecord, Dataset, load_dataset
from equi_calibration.collect.dataset_writer import DatasetWriter
from equi_calibration.collect.poses import PlannedPose
from equi_calibration.collect.sources import ArmMover, ArmReading, CameraSource
from equi_calibration.errors import CollectError, ForeignImagesError
from equi_core.geometry import invert, matrix_to_rotvec

FloatArray = NDArray[np.float64]

logger = logging.getLogger(__name__)

_IMAGE_TIMEOUT_S = 5.0
_REST_ROTATION_RAD = 1e-3


@dataclass(frozen=True, eq=False)
class PoseReport:
    """What became of one stop, for a live display."""

    number: int
    total: int
    detections: Mapping[str, Detection]
    kept: tuple[str, ...]
    """Cameras whose view was kept."""
    problem: str = ""
    """Why the whole stop was left out; empty if it was not."""


Progress = Callable[[PoseReport], None]


def require_right_devices(cell: CellSettings, cameras: Mapping[str, CameraSource]) -> None:
    """Raise unless every camera of the cell is there and is the device that the file names."""
    missing = set(cell.names) - set(cameras)
    if missing:
        raise CollectError(f"cameras {sorted(missing)} of cell '{cell.cell}' are not connected")
    for name in cell.names:
        expected, found = cell.camera(name).serial, cameras[name].serial
        if expected != found:
            raise ForeignImagesError(
                f"camera '{name}' reports serial {found}, the cell file says {expected}; "
                "swap the cables, or correct the cell file if the device was replaced"
            )


def collect_dataset(
    folder: Path,
    cell: CellSettings,
    arm: ArmMover,
    cameras: Mapping[str, CameraSource],
    poses: Sequence[PlannedPose] | Iterable[None],
    *,
    progress: Progress | None = None,
    record_scene: Callable[[DatasetWriter], None] | None = None,
    robot_serial: str = "",
) -> Dataset:
    """Visit the poses and write a dataset.

    Args:
        folder: where to write; must be empty or new.
        cell: settings of the cell.
        arm: the arm; it is only ever sent to the planned poses.
        cameras: by name.
        poses: planned stops; or an iterable of None, one per stop to which the operator guides the
            arm by hand (it should block until the operator confirms).
        progress: called after each stop.
        record_scene: called at the end to add clouds of the table.
        robot_serial: as the robot reports it; the cell file's if empty.
    """
    require_right_devices(cell, cameras)
    detector = BoardDetector(cell.board, cell.view_gate)
    records = {
        name: CameraRecord(
            name,
            cameras[name].serial,
            cell.camera(name).optical_frame,
            cameras[name].intrinsics,
            np.asarray(cameras[name].cloud_from_image),
        )
        for name in cell.names
    }
    total = len(poses) if isinstance(poses, Sequence) else 0
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    with DatasetWriter(
        folder,
        cell=cell.cell,
        created_utc=now,
        robot_serial=robot_serial or cell.robot_serial,
        board=cell.board,
        cameras=records,
    ) as writer:
        for number, pose in enumerate(poses):
            if pose is not None:
                arm.move_to(pose.joints_rad, cell.collect.speed_m_s)
            report = _record_pose(writer, number, total, cell, arm, cameras, detector)
            for name, detection in report.detections.items():
                for reason in detection.rejections:
                    logger.info("pose %d, %s: %s", number, name, reason)
            if progress is not None:
                progress(report)
        if record_scene is not None:
            record_scene(writer)
    return load_dataset(folder)


def add_scene(
    writer: DatasetWriter,
    name: str,
    blocks: int,
    arm: ArmMover,
    cameras: Mapping[str, CameraSource],
) -> None:
    """Add a cloud of every camera to a dataset."""
    clouds, stamps = {}, {}
    for camera, source in cameras.items():
        clouds[camera], stamps[camera] = source.cloud_after(arm.now_s(), _IMAGE_TIMEOUT_S)
    writer.add_scene(name, blocks, clouds, stamps)


def _record_pose(
    writer: DatasetWriter,
    number: int,
    total: int,
    cell: CellSettings,
    arm: ArmMover,
    cameras: Mapping[str, CameraSource],
    detector: BoardDetector,
) -> PoseReport:
    """Take images at rest; keep them if the arm rested all the while and any view is good."""
    before = arm.read()
    # Images are asked for after the arm has rested for a while: it still swings when it arrives.
    rested_s = arm.now_s() + cell.collect.settle_s
    images = {
        name: source.image_after(rested_s, _IMAGE_TIMEOUT_S + cell.collect.settle_s)
        for name, source in cameras.items()
    }
    after = arm.read()
    detections = {
        name: detector.detect(item.image, cameras[name].intrinsics) for name, item in images.items()
    }
    kept = tuple(name for name, detection in detections.items() if detection.accepted)
    problem = _motion(before, after)
    if not problem and kept:
        writer.add_pose(
            after.base_from_tcp,
            after.joints_rad,
            after.stamp_s,
            {name: images[name].image for name in kept},
            {name: images[name].stamp_s for name in kept},
        )
    return PoseReport(number, total, detections, () if problem else kept, problem)


def _motion(before: ArmReading, after: ArmReading) -> str:
    """Why the arm cannot be said to have rested between two readings; empty if it did."""
    change = invert(before.base_from_tcp) @ after.base_from_tcp
    moved_m = float(np.linalg.norm(change[:3, 3]))
    rotated_rad = float(np.linalg.norm(matrix_to_rotvec(change[:3, :3])))
    joints = float(np.abs(after.joints_rad - before.joints_rad).max())
    # Joints decide: the reported pose may carry the noise of a kinematic model.
    if after.moving or before.moving or joints > _REST_ROTATION_RAD:
        return (
            "the arm was not at rest while the images were taken (it moved by "
            f"{moved_m * 1000:.1f} mm, {np.degrees(rotated_rad):.2f} deg); release it and wait"
        )
    return ""
