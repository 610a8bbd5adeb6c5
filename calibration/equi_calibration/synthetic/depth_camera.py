# SPDX-License-Identifier: MIT
"""A simulated depth camera in the terms of calibration: its intrinsics and its point cloud."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equi_calibration.board.intrinsics import Intrinsics
from equi_cell_sim.camera_model import CameraSpec
from equi_cell_sim.depth_camera import DepthFrame, points_of


def intrinsics_of_spec(spec: CameraSpec) -> Intrinsics:
    """Pinhole intrinsics, without distortion."""
    focal = spec.focal_px
    return Intrinsics(spec.width_px, spec.height_px, focal, focal, *spec.centre_px)


def cloud_of(spec: CameraSpec, frame: DepthFrame) -> NDArray[np.float32]:
    """Points (N, 4) [m] in the optical frame, pixels without depth left out; column 3 is unused."""
    points = np.zeros((frame.depth_units.size, 4), dtype=np.float32)
    count = points_of(
        frame.depth_units,
        frame.unit_m,
        spec.focal_px,
        *spec.centre_px,
        False,
        4,
        frame.colour,
        points,
    )
    return points[:count]
