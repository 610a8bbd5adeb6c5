# SPDX-License-Identifier: MIT
"""What each camera sends, as clouds: a PointCloud2, or a depth image with its camera_info.

Parameters per camera: `<name>.input` (cloud or depth), `<name>.topic` of the clouds,
`<name>.depth_topic` and `<name>.info_topic` of the depth images.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, Image, PointCloud2

from equi_perception import messages
from equi_perception.cloud_layout import Cloud, CloudLayoutError
from equi_perception.depth_image import DepthImage, PinholeInfo
from equi_perception.raw_cloud import RawCloudError, read_cloud
from equi_ros import qos
from equi_ros.message_checks import MalformedMessage
from equi_ros.parameters import declare
from equi_ros.publisher_guard import PublisherGuard

CLOUD, DEPTH = "cloud", "depth"


class CameraInputs:
    """Subscriptions of all cameras."""

    def __init__(
        self,
        node: Node,
        guard: PublisherGuard,
        cameras: tuple[str, ...],
        on_cloud: Callable[[str, Cloud | DepthImage], None],
        on_unreadable: Callable[[str, str], None],
    ) -> None:
        """Declare the parameters and subscribe.

        Args:
            node: whose parameters they are.
            guard: makes the subscriptions.
            cameras: names.
            on_cloud: takes a camera's name and its cloud, whose points are read on demand.
            on_unreadable: takes a camera's name and why what it sent is no cloud.
        """
        self._node = node
        self._on_cloud = on_cloud
        self._on_unreadable = on_unreadable
        self._lenses: dict[str, PinholeInfo] = {}
        for name in cameras:
            self._connect(guard, name)

    def _connect(self, guard: PublisherGuard, name: str) -> None:
        kind = self._text(f"{name}.input", CLOUD, f"what {name} sends: {CLOUD} or {DEPTH}")
        clouds = self._text(f"{name}.topic", f"{name}/depth/points", f"clouds of {name}")
        depths = self._text(
            f"{name}.depth_topic", f"{name}/depth/image_rect_raw", f"depth images of {name}"
        )
        infos = self._text(f"{name}.info_topic", f"{name}/depth/camera_info", "their camera_info")
        if kind == CLOUD:
            callback = partial(self._on_bytes, name)
            guard.subscribe(PointCloud2, clouds, callback, qos.POINT_CLOUD, raw=True)
        elif kind == DEPTH:
            guard.subscribe(CameraInfo, infos, partial(self._on_info, name), qos.POINT_CLOUD)
            guard.subscribe(Image, depths, partial(self._on_depth, name), qos.POINT_CLOUD)
        else:
            raise ValueError(
                f"parameter {name}.input is '{kind}'; it must be '{CLOUD}' or '{DEPTH}'"
            )

    def _on_bytes(self, camera: str, data: bytes) -> None:
        try:
            cloud = read_cloud(data)
        except RawCloudError as error:
            self._on_unreadable(camera, str(error))
            return
        self._on_cloud(camera, cloud)

    def _on_info(self, camera: str, message: CameraInfo) -> None:
        try:
            self._lenses[camera] = messages.pinhole_info(message)
        except CloudLayoutError as error:
            raise MalformedMessage(str(error)) from error

    def _on_depth(self, camera: str, message: Image) -> None:
        lens = self._lenses.get(camera)
        if lens is None:
            self._on_unreadable(camera, "no camera_info has come yet: pixels mean nothing without")
            return
        self._on_cloud(camera, messages.depth_image(message, lens))

    def _text(self, name: str, default: str, words: str) -> str:
        return str(declare(self._node, name, default, words))
