# SPDX-License-Identifier: MIT
"""What the cameras see of the resting arm: a few clouds, taken when a scene is to be arranged.

The subscriptions exist for these few seconds only: clouds are the heaviest stream of a cell.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import numpy as np
from equi_interfaces.msg import RobotState
from numpy.typing import NDArray

from equi_console.scene.arm_surface import ArmSurface
from equi_console.scene.camera_correction import CellCorrection, NoCorrectionError, measure_camera
from equi_core.calibration import CalibrationError, CellCalibration
from equi_core.cell_file import CellFile, CellFileError
from equi_core.locations.find import NotFoundError, find_calibration, find_cell_file
from equi_perception.cloud_layout import Cloud, CloudLayoutError
from equi_perception.depth_image import DepthImage
from equi_perception.ros_camera_inputs import CameraInputs
from equi_ros import qos
from equi_ros.background_node import BackgroundNode
from equi_ros.publisher_guard import PublisherGuard

FloatArray = NDArray[np.float64]

_FRAMES = 4
_WAIT_S = 20.0
_REST_S = 1.0
"""Clouds that were under way while the arm came to rest still show it elsewhere [s]."""
_POLL_S = 0.05
_KEEP_EVERY = 3
"""Of a cloud's points; there are far more than are needed."""


@dataclass(frozen=True)
class _Rest:
    """Where the arm rests, and since when [s]."""

    joints_rad: tuple[float, ...]
    opening: float
    tcp_m: tuple[float, float, float]
    since_s: float


class ArmView:
    """Measures how far the cameras of a cell are off; blocks while it does."""

    def __init__(self, cell: str, namespace: str = "") -> None:
        """Read cell file and calibration.

        Raises:
            NoCorrectionError: one of them cannot be read.
        """
        try:
            self._cell = CellFile.load(find_cell_file(cell))
            self._calibration = CellCalibration.load(find_calibration(self._cell.name))
            self._surface = ArmSurface(self._cell.arm, self._cell.geometry)
        except (NotFoundError, CellFileError, CalibrationError) as error:
            raise NoCorrectionError(str(error)) from error
        self._namespace = namespace
        self._lock = threading.Lock()
        self._rest: _Rest | None = None
        self._frames: dict[str, list[FloatArray]] = {}
        self._problem = ""

    def measure(self) -> CellCorrection:
        """Take some clouds of every camera while the arm rests, and find the cameras' errors.

        Raises:
            NoCorrectionError: says which camera did not give what is needed.
        """
        names = self._cell.camera_names
        with self._lock:
            self._rest, self._problem = None, ""
            self._frames = {name: [] for name in names}
        with BackgroundNode("console_cameras", namespace=self._namespace) as background:
            node = background.node
            given = self._cell.parameters("depth_fusion")
            for name in names:
                for key in ("input", "topic", "depth_topic", "info_topic"):
                    if f"{name}.{key}" in given:
                        node.declare_parameter(f"{name}.{key}", given[f"{name}.{key}"])
            node.create_subscription(RobotState, "robot_state", self._on_robot, qos.ROBOT_STATE)
            CameraInputs(node, PublisherGuard(node), names, self._on_cloud, self._on_unreadable)
            deadline_s = time.monotonic() + _WAIT_S
            while time.monotonic() < deadline_s and not self._complete():
                time.sleep(_POLL_S)
        rest, frames, problem = self._taken()
        if rest is None:
            raise NoCorrectionError(f"the arm was not at rest within {_WAIT_S:.0f} s")
        missing = [name for name, taken in frames.items() if len(taken) < _FRAMES]
        if missing:
            why = problem or f"fewer than {_FRAMES} clouds came within {_WAIT_S:.0f} s"
            raise NoCorrectionError(f"{', '.join(missing)}: {why}")
        surface = self._surface.posed(rest.joints_rad, rest.opening, rest.tcp_m)
        return CellCorrection(
            {
                name: measure_camera(name, np.concatenate(taken), surface, rest.tcp_m)
                for name, taken in frames.items()
            }
        )

    def _complete(self) -> bool:
        with self._lock:
            return all(len(taken) >= _FRAMES for taken in self._frames.values())

    def _taken(self) -> tuple[_Rest | None, dict[str, list[FloatArray]], str]:
        with self._lock:
            return self._rest, dict(self._frames), self._problem

    def _on_robot(self, message: RobotState) -> None:
        position = message.tcp_pose.position
        with self._lock:
            if message.moving:
                self._rest = None
                self._frames = {name: [] for name in self._frames}
            elif self._rest is None:
                self._rest = _Rest(
                    tuple(float(angle) for angle in message.joint_positions),
                    float(message.gripper_opening),
                    (position.x, position.y, position.z),
                    time.monotonic(),
                )

    def _on_cloud(self, camera: str, cloud: Cloud | DepthImage) -> None:
        with self._lock:
            rest = self._rest
            if rest is None or time.monotonic() < rest.since_s + _REST_S:
                return
            if len(self._frames[camera]) >= _FRAMES:
                return
        try:
            points = np.array(cloud.points[::_KEEP_EVERY, :3], dtype=np.float64)
        except CloudLayoutError as error:
            self._on_unreadable(camera, str(error))
            return
        points = points[np.isfinite(points).all(axis=1) & np.any(points != 0.0, axis=1)]
        calibrated = self._calibration.camera(camera).base_from_raw_points
        pose = self._cell.geometry.to_task(calibrated)
        placed = points @ pose[:3, :3].T + pose[:3, 3]
        with self._lock:
            if self._rest is rest:
                self._frames[camera].append(placed)

    def _on_unreadable(self, camera: str, problem: str) -> None:
        with self._lock:
            self._problem = problem
