# SPDX-License-Identifier: MIT
"""Frames of a depth camera, named and placed as realsense-ros does: link, depth, optical.

A calibration finds where the *optical* frame stands (z along the view, x right, y down). The camera
driver itself publishes `<camera>_link` -> `<camera>_depth_frame` -> `<camera>_depth_optical_frame`;
a frame has one parent, so what is left to publish is base_link -> `<camera>_link`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equi_core.geometry import invert

FloatArray = NDArray[np.float64]

OPTICAL_SUFFIX = "_depth_optical_frame"
DEPTH_SUFFIX = "_depth_frame"
LINK_SUFFIX = "_link"

LINK_FROM_OPTICAL: FloatArray = np.array(
    [
        [0.0, 0.0, 1.0, 0.0],
        [-1.0, 0.0, 0.0, 0.0],
        [0.0, -1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 1.0],
    ]
)
"""From the depth camera's optical frame to its link (x forward, y left, z up): the link's origin is
that of the depth frame, by the convention of realsense-ros."""


def camera_of(optical_frame: str) -> str:
    """Name of the camera that a depth optical frame belongs to; empty if it is named otherwise."""
    if not optical_frame.endswith(OPTICAL_SUFFIX):
        return ""
    return optical_frame.removesuffix(OPTICAL_SUFFIX)


def base_from_camera_link(base_from_optical: ArrayLike) -> FloatArray:
    """Where the camera's link stands (4, 4), from where its depth optical frame does."""
    result: FloatArray = np.asarray(base_from_optical, dtype=np.float64) @ invert(LINK_FROM_OPTICAL)
    return result
