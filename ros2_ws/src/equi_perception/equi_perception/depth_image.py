# SPDX-License-Identifier: MIT
"""Depth images with their camera_info -> the points that a driver's cloud would hold.

A depth image has 2 bytes per pixel where a coloured cloud has 20, so two cameras at 30 Hz cost
37 MB/s instead of 370. Depth is along the optical axis (REP 118: 16UC1 in millimetres, 32FC1 in
metres), the image is rectified, and a pixel without depth is 0 or NaN.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equi_perception.cloud_layout import CloudLayoutError

_KINDS = {"16UC1": ("u2", 0.001), "mono16": ("u2", 0.001), "32FC1": ("f4", 1.0)}
"""Encoding -> numpy kind and unit [m]."""
_LARGEST_PX = 8192


@dataclass(frozen=True)
class PinholeInfo:
    """The part of sensor_msgs/CameraInfo that places points."""

    frame_id: str
    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    distorted: bool = False
    """The image is not rectified: some coefficient of distortion is not zero."""

    def __post_init__(self) -> None:
        numbers = (self.fx, self.fy, self.cx, self.cy)
        if not all(math.isfinite(value) for value in numbers) or min(self.fx, self.fy) <= 0:
            raise CloudLayoutError(
                f"camera_info says fx, fy, cx, cy = {numbers}; focal lengths must be positive"
            )
        if self.distorted:
            raise CloudLayoutError(
                "camera_info states distortion; give the rectified depth image (image_rect_raw)"
            )


@dataclass(frozen=True, eq=False)
class DepthImage:
    """A depth image message, independent of ROS."""

    stamp_ns: int
    frame_id: str
    height: int
    width: int
    encoding: str
    is_bigendian: bool
    step: int
    data: Any
    """Bytes-like object of height * step bytes."""
    info: PinholeInfo

    @property
    def points(self) -> NDArray[np.float32]:
        """Rows (N, 3) x, y, z in the optical frame [m], pixels without depth left out."""
        depth_m = self._depth_m().ravel()
        seen = np.isfinite(depth_m) & (depth_m > 0)
        info = self.info
        rays = _rays(self.height, self.width, info.fx, info.fy, info.cx, info.cy)
        z = depth_m[seen]
        points = np.empty((z.size, 3), dtype=np.float32)
        points[:, 0] = rays[0][seen] * z
        points[:, 1] = rays[1][seen] * z
        points[:, 2] = z
        return points

    def _depth_m(self) -> NDArray[np.float64]:
        if self.encoding not in _KINDS:
            raise CloudLayoutError(
                f"the depth image is '{self.encoding}'; known: {', '.join(_KINDS)}"
            )
        if (self.width, self.height) != (self.info.width, self.info.height):
            raise CloudLayoutError(
                f"the depth image is {self.width} x {self.height} px, its camera_info is for "
                f"{self.info.width} x {self.info.height} px"
            )
        kind, unit_m = _KINDS[self.encoding]
        size = int(kind[1])
        data = np.frombuffer(self.data, dtype=np.uint8)
        if not (
            0 < self.width <= _LARGEST_PX
            and 0 < self.height <= _LARGEST_PX
            and self.step >= size * self.width
            and data.size == self.height * self.step
        ):
            raise CloudLayoutError(
                f"the depth image has {data.size} bytes for {self.height} rows of {self.width} "
                f"pixels with {self.step} bytes each"
            )
        rows = data.reshape(self.height, self.step)[:, : size * self.width]
        order = ">" if self.is_bigendian else "<"
        values = np.ascontiguousarray(rows).view(np.dtype(order + kind))
        return values.astype(np.float64) * unit_m


@functools.lru_cache(maxsize=8)
def _rays(
    height: int, width: int, fx: float, fy: float, cx: float, cy: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """X / z and y / z of every pixel, row by row."""
    x = np.broadcast_to((np.arange(width) - cx) / fx, (height, width)).ravel()
    y = np.broadcast_to(((np.arange(height) - cy) / fy)[:, None], (height, width)).ravel()
    return x, y
