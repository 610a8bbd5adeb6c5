# SPDX-License-Identifier: MIT
"""ROS messages to arrays, by duck typing: no ROS import, so it is tested without ROS."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from equi_calibration.board.intrinsics import Intrinsics
from equi_calibration.errors import CollectError

_ENCODINGS = {"mono8": (1, None), "8UC1": (1, None), "rgb8": (3, cv2.COLOR_RGB2BGR)} | {
    "bgr8": (3, None),
    "rgba8": (4, cv2.COLOR_RGBA2BGR),
    "bgra8": (4, cv2.COLOR_BGRA2BGR),
}


def image_of(message: Any) -> NDArray[np.uint8]:
    """Grey (H, W) or BGR (H, W, 3) image of a sensor_msgs/Image."""
    if message.encoding not in _ENCODINGS:
        raise CollectError(
            f"image encoding '{message.encoding}' is not supported; use one of "
            f"{', '.join(_ENCODINGS)}"
        )
    channels, conversion = _ENCODINGS[message.encoding]
    rows = np.frombuffer(bytes(message.data), dtype=np.uint8).reshape(message.height, message.step)
    pixels = rows[:, : message.width * channels].reshape(message.height, message.width, channels)
    if conversion is not None:
        return np.asarray(cv2.cvtColor(pixels, conversion), dtype=np.uint8)
    return pixels[..., 0].copy() if channels == 1 else pixels.copy()


def intrinsics_of(message: Any) -> Intrinsics:
    """Intrinsics of a sensor_msgs/CameraInfo."""
    distortion = [float(value) for value in message.d][:5]
    if len(message.d) > 5 and any(float(value) != 0.0 for value in message.d[5:]):
        raise CollectError(
            f"distortion model '{message.distortion_model}' with {len(message.d)} terms is not "
            "supported; publish rectified images"
        )
    k1, k2, p1, p2, k3 = [*distortion, 0.0, 0.0, 0.0, 0.0, 0.0][:5]
    return Intrinsics(
        int(message.width),
        int(message.height),
        float(message.k[0]),
        float(message.k[4]),
        float(message.k[2]),
        float(message.k[5]),
        (k1, k2, p1, p2, k3),
    )


def points_of_cloud(message: Any) -> NDArray[np.float32]:
    """Valid points (N, 3) [m] of a sensor_msgs/PointCloud2 with float32 x, y, z fields."""
    offsets = {field.name: field.offset for field in message.fields}
    if not {"x", "y", "z"} <= set(offsets):
        raise CollectError(f"the cloud has fields {sorted(offsets)}; it needs x, y and z")
    raw = np.frombuffer(bytes(message.data), dtype=np.uint8)
    rows = raw.reshape(-1, message.point_step)
    columns = [
        np.ascontiguousarray(rows[:, offsets[name] : offsets[name] + 4]).view(np.float32)[:, 0]
        for name in ("x", "y", "z")
    ]
    points = np.stack(columns, axis=1)
    return points[np.all(np.isfinite(points), axis=1) & (points[:, 2] > 0.0)]


def stamp_s(message: Any) -> float:
    """Time stamp of a message's header [s]."""
    return float(message.header.stamp.sec) + 1e-9 * float(message.header.stamp.nanosec)
