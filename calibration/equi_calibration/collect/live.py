# SPDX-License-Identifier: MIT
"""What needs a running cell: collecting, clouds for the quick check, and latencies.

ROS and the controller's library are imported only when one of these is called, so solving and
checking work on any computer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from equi_calibration.board.detection import BoardDetector
from equi_calibration.board.intrinsics import Intrinsics
from equi_calibration.cell_file import CellSettings
from equi_calibration.collect.clearance_pose import clearance_joints
from equi_calibration.collect.dataset import Dataset
from equi_calibration.collect.dataset_writer import DatasetWriter
from equi_calibration.collect.latency import (
    CameraDelay,
    Latencies,
    estimate_delay,
    mean_start,
    start_delays,
)
from equi_calibration.collect.poses import ALL_CAMERAS, PlannedPose, path_is_clear, plan_poses
from equi_calibration.collect.session import Progress, add_scene, collect_dataset
from equi_calibration.collect.sources import ArmReading, StampedImage
from equi_calibration.errors import CollectError, LatencyError
from equi_core.cell_file import CellFile
from equi_core.motion.ur5_kinematics import HOME_RAD

if TYPE_CHECKING:
    from equi_calibration.collect.rtde_arm import RtdeArm

FloatArray = NDArray[np.float64]
Ask = Callable[[str], str]

_CLOUD_TIMEOUT_S = 15.0
_SAMPLE_S = 0.004
_FEWEST_IMAGES = 12
_KEPT_IMAGES = 2000
_NUDGE_SPEED_M_S = 0.1
_LEAD_S = 1.2
"""Rest before and after the motion: delays up to a second are searched for."""
_PAUSE_S = 0.3
_REST_TIMEOUT_S = 10.0
_REST_M = 3e-4
_NUDGES = ((1.0, 1.0), (-0.6, 1.0), (0.8, 0.6), (0.0, 1.0))
"""Heights of the small moves over the amplitude, and their speed over the nominal one."""


def collect_live(
    folder: Path,
    cell_path: Path,
    cell: CellSettings,
    *,
    robot_ip: str | None,
    poses: int,
    seed: int,
    hand_guided: bool,
    timeout_s: float,
    progress: Progress,
    ask: Ask,
) -> Dataset:
    """Collect in a running cell: cameras over ROS, arm over RTDE."""
    from equi_calibration.collect.ros_camera import RosCameras
    from equi_calibration.collect.rtde_arm import RtdeArm

    address = robot_ip or _robot_ip(cell_path)
    with RosCameras(cell) as ros, RtdeArm(cell, address, listen_only=hand_guided) as arm:
        ros.wait_ready(timeout_s)
        lenses = {name: camera.intrinsics for name, camera in ros.cameras.items()}
        clearance = None if hand_guided else clearance_joints(cell)

        def record_scene(writer: DatasetWriter) -> None:
            if clearance is None:
                ask("Move the arm out of the cameras' view of the table, then press return. ")
            else:
                arm.move_to(clearance, cell.collect.speed_m_s)
            add_scene(writer, "blocks", cell.scene.block_count, arm, ros.cameras)

        stops = _confirmed(ask, poses) if hand_guided else plan_poses(cell, lenses, poses, seed)
        return collect_dataset(
            folder, cell, arm, ros.cameras, stops, progress=progress, record_scene=record_scene
        )


def live_clouds(
    cell: CellSettings, timeout_s: float
) -> tuple[dict[str, FloatArray], dict[str, str]]:
    """A fresh cloud of every camera, and the serials by camera name."""
    from equi_calibration.collect.ros_camera import RosCameras

    with RosCameras(cell) as ros:
        ros.wait_ready(timeout_s)
        clouds, serials = {}, {}
        for name, camera in ros.cameras.items():
            points, _ = camera.cloud_after(0.0, _CLOUD_TIMEOUT_S)
            clouds[name] = points.astype(np.float64)
            serials[name] = camera.serial
    return clouds, serials


def measure_latency(
    cell_path: Path,
    cell: CellSettings,
    *,
    robot_ip: str | None,
    amplitude_m: float,
    timeout_s: float,
) -> Latencies:
    """Show the board to each camera, move it up and down a little; compare command and images."""
    from equi_calibration.collect.ros_camera import RosCameras
    from equi_calibration.collect.rtde_arm import RtdeArm

    if not 0.003 <= amplitude_m <= 0.05:
        raise LatencyError(f"amplitude {amplitude_m} m must lie between 0.003 and 0.05")
    detector = BoardDetector(cell.board, cell.view_gate)
    delays: dict[str, CameraDelay] = {}
    starts: list[float] = []
    with RosCameras(cell) as ros, RtdeArm(cell, robot_ip or _robot_ip(cell_path)) as arm:
        ros.wait_ready(timeout_s)
        lenses = {name: camera.intrinsics for name, camera in ros.cameras.items()}
        tour = plan_poses(cell, lenses, cell.collect.poses)
        for name, camera in ros.cameras.items():
            arm.move_to(_stop_for(cell, tour, name).joints_rad, cell.collect.speed_m_s)
            camera.keep(_KEPT_IMAGES)
            times, heights, commands = _nudged(arm, amplitude_m)
            starts += start_delays(times, heights, commands)
            images = [item for item in camera.images() if item.stamp_s > times[0]]
            delays[name] = _camera_delay(
                name, images, detector, camera.intrinsics, (times, heights)
            )
    return Latencies(delays, mean_start(starts))


def _stop_for(cell: CellSettings, tour: list[PlannedPose], camera: str) -> PlannedPose:
    """A stop that shows the board to a camera and can be reached straight from the ready posture.

    Stops of a tour have a clear path to their neighbours; here the tour is not followed.
    """
    ready = np.asarray(HOME_RAD)
    for pose in tour:
        if pose.faces in (camera, ALL_CAMERAS) and path_is_clear(cell, ready, pose.joints_rad):
            return pose
    raise CollectError(
        f"no pose that shows the board to camera '{camera}' has a clear path from the ready "
        "posture; widen collect.board_box or tcp_box in the cell file"
    )


def _nudged(arm: RtdeArm, amplitude_m: float) -> tuple[FloatArray, FloatArray, list[float]]:
    """Move up and down from here; times (N,), TCP heights (N,), and when a move was asked for."""
    start = arm.read().base_from_tcp
    recorder = _Recorder(arm.read)
    commands: list[float] = []
    with recorder:
        recorder.wait_for_rest(_LEAD_S)
        for height, speed in _NUDGES:
            target = start.copy()
            target[2, 3] += height * amplitude_m
            commands.append(arm.now_s())
            arm.nudge(target, speed * _NUDGE_SPEED_M_S)
            recorder.wait_for_rest(_PAUSE_S)
        recorder.wait_for_rest(_LEAD_S)
    return *recorder.recording(), commands


def _camera_delay(
    name: str,
    images: list[StampedImage],
    detector: BoardDetector,
    lens: Intrinsics,
    motion: tuple[FloatArray, FloatArray],
) -> CameraDelay:
    seen = [
        (item.received_s, row, item.received_s - item.stamp_s)
        for item in images
        if (row := _board_row(detector, item.image, lens)) is not None
    ]
    if len(seen) < _FEWEST_IMAGES:
        raise LatencyError(
            f"camera '{name}' saw the whole board in {len(seen)} of {len(images)} images, at least "
            f"{_FEWEST_IMAGES} are needed; is the board in the gripper as in the cell file?"
        )
    received, rows, stamped = np.array(seen).T
    return CameraDelay(estimate_delay(*motion, received, rows), float(stamped.mean()))


class _Recorder:
    """Reads the arm in a thread for as long as the `with` block lasts."""

    def __init__(self, read: Callable[[], ArmReading]) -> None:
        self._read = read
        self._stop = threading.Event()
        self._grown = threading.Condition()
        self._samples: list[tuple[float, float]] = []
        self._error: CollectError | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> _Recorder:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=5.0)

    def recording(self) -> tuple[FloatArray, FloatArray]:
        """Times (N,) [s] and TCP heights (N,) [m]."""
        with self._grown:
            times, heights = np.array(self._samples).T
        return times, heights

    def wait_for_rest(self, duration_s: float) -> None:
        """Wait until the arm has not moved for so long."""
        began = len(self._samples)

        def rested() -> bool:
            if self._error is not None:
                return True
            recent = self._samples[began:]
            if not recent or recent[-1][0] - recent[0][0] < duration_s:
                return False
            heights = [height for time, height in recent if time > recent[-1][0] - duration_s]
            return max(heights) - min(heights) < _REST_M

        with self._grown:
            still = self._grown.wait_for(rested, _REST_TIMEOUT_S + duration_s)
        if self._error is not None:
            raise self._error
        if not still:
            raise LatencyError(f"the arm does not come to rest within {_REST_TIMEOUT_S:.0f} s")

    def _run(self) -> None:
        while not self._stop.wait(_SAMPLE_S):
            try:
                reading = self._read()
            except CollectError as error:
                with self._grown:
                    self._error = error
                    self._grown.notify_all()
                return
            with self._grown:
                self._samples.append((reading.stamp_s, float(reading.base_from_tcp[2, 3])))
                self._grown.notify_all()


def _board_row(detector: BoardDetector, image: NDArray[np.uint8], lens: Intrinsics) -> float | None:
    """Mean image row of the board's corners [px]; None if too few are seen."""
    found = detector.detect(image, lens)
    if len(found.corner_ids) < detector.board.corner_count:
        return None  # the mean of other corners would lie elsewhere
    return float(found.corners_px[:, 1].mean())


def _confirmed(ask: Ask, poses: int) -> Iterator[None]:
    for number in range(poses):
        answer = ask(
            f"Pose {number + 1} of {poses}: guide the arm, let go, press return (q to finish). "
        )
        if answer.strip().lower() == "q":
            return
        yield None


def _robot_ip(cell_path: Path) -> str:
    address = CellFile.load(cell_path).robot_ip
    if not address:
        raise CollectError(f"{cell_path}: 'cell.robot_ip' is empty; give --robot-ip")
    return address
