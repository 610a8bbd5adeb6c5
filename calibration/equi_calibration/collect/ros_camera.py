# SPDX-License-Identifier: MIT
"""The cameras of a cell behind `CameraSource`, from their ROS topics."""

from __future__ import annotations

import threading
import time
from collections import deque
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import CameraInfo, Image, PointCloud2

from equi_calibration.board.intrinsics import Intrinsics
from equi_calibration.cell_file import CameraSettings, CellSettings
from equi_calibration.collect.ros_messages import image_of, intrinsics_of, points_of_cloud, stamp_s
from equi_calibration.collect.sources import StampedImage
from equi_calibration.errors import CollectError
from equi_ros.background_node import BackgroundNode

FloatArray = NDArray[np.float64]


class RosCamera:
    """One camera; keeps the newest messages."""

    def __init__(self, node: Node, settings: CameraSettings, changed: threading.Condition) -> None:
        self._settings = settings
        self._changed = changed
        self._intrinsics: Intrinsics | None = None
        self._images: deque[tuple[Any, float]] = deque(maxlen=30)
        self._cloud: Any = None
        self._node = node
        node.create_subscription(
            CameraInfo, settings.camera_info_topic, self._on_info, qos_profile_sensor_data
        )
        node.create_subscription(
            Image, settings.image_topic, self._on_image, qos_profile_sensor_data
        )
        self._clouds: Any = None

    @property
    def name(self) -> str:
        """Name in the cell file."""
        return self._settings.name

    @property
    def serial(self) -> str:
        """Serial as the cell file names it: image topics do not carry one."""
        return self._settings.serial

    @property
    def intrinsics(self) -> Intrinsics:
        """Of its images."""
        if self._intrinsics is None:
            raise CollectError(f"no camera info on {self._settings.camera_info_topic} yet")
        return self._intrinsics

    @property
    def ready(self) -> bool:
        """Whether intrinsics and an image have arrived."""
        return self._intrinsics is not None and bool(self._images)

    @property
    def cloud_from_image(self) -> FloatArray:
        """Images and clouds are published in one optical frame (aligned depth)."""
        return np.eye(4)

    def image_after(self, stamp: float, timeout_s: float) -> StampedImage:
        """The first image exposed after a time."""
        found: list[tuple[Any, float]] = []

        def arrived() -> bool:
            found[:] = [item for item in self._images if stamp_s(item[0]) >= stamp]
            return bool(found)

        self._wait(arrived, timeout_s, f"no new image on {self._settings.image_topic}")
        message, received = found[0]
        return StampedImage(image_of(message), stamp_s(message), received)

    def images(self) -> list[StampedImage]:
        """All images that are still kept, oldest first."""
        with self._changed:
            kept = list(self._images)
        return [StampedImage(image_of(m), stamp_s(m), received) for m, received in kept]

    def keep(self, count: int) -> None:
        """Keep this many images from now on."""
        with self._changed:
            self._images = deque(self._images, maxlen=count)

    def cloud_after(self, stamp: float, timeout_s: float) -> tuple[NDArray[np.float32], float]:
        """The first cloud exposed after a time."""
        if self._clouds is None:
            # Subscribed only now: clouds are large, and the tour does not need them.
            self._clouds = self._node.create_subscription(
                PointCloud2, self._settings.cloud_topic, self._on_cloud, qos_profile_sensor_data
            )
        self._wait(
            lambda: self._cloud is not None and stamp_s(self._cloud) >= stamp,
            timeout_s,
            f"no new cloud on {self._settings.cloud_topic}",
        )
        return points_of_cloud(self._cloud), stamp_s(self._cloud)

    def _wait(self, arrived: Any, timeout_s: float, otherwise: str) -> None:
        with self._changed:
            if not self._changed.wait_for(arrived, timeout_s):
                raise CollectError(f"{otherwise} within {timeout_s:.0f} s; is the camera running?")

    def _on_info(self, message: CameraInfo) -> None:
        with self._changed:
            self._intrinsics = intrinsics_of(message)
            self._changed.notify_all()

    def _on_image(self, message: Image) -> None:
        with self._changed:
            self._images.append((message, time.time()))
            self._changed.notify_all()

    def _on_cloud(self, message: PointCloud2) -> None:
        with self._changed:
            self._cloud = message
            self._changed.notify_all()


class RosCameras(BackgroundNode):
    """All cameras of a cell, received in a background thread."""

    def __init__(self, cell: CellSettings) -> None:
        super().__init__("equi_calibrate")
        self._changed = threading.Condition()
        self.cameras = {
            camera.name: RosCamera(self.node, camera, self._changed) for camera in cell.cameras
        }

    def wait_ready(self, timeout_s: float) -> None:
        """Wait for intrinsics and a first image of every camera."""
        deadline = time.monotonic() + timeout_s
        for camera in self.cameras.values():
            with self._changed:
                left = max(0.0, deadline - time.monotonic())
                if not self._changed.wait_for(partial(_is_ready, camera), left):
                    raise CollectError(
                        f"camera '{camera.name}' sent no image and camera info within "
                        f"{timeout_s:.0f} s; start it, and compare the topics in the cell file "
                        "with 'ros2 topic list'"
                    )


def _is_ready(camera: RosCamera) -> bool:
    return camera.ready
