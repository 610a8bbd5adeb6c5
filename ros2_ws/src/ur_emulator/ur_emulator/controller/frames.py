# SPDX-License-Identifier: MIT
"""Poses on the wire: x, y, z [m] and a rotation vector [rad], in the controller's frame `base`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equi_core import geometry as geo

FloatArray = NDArray[np.float64]


def matrix_of(pose: ArrayLike) -> FloatArray:
    """Transform (4, 4) of a wire pose (6,)."""
    vector = np.asarray(pose, dtype=np.float64)
    return geo.pose_matrix(vector[:3], geo.rotvec_to_matrix(vector[3:]))


def pose_of(matrix: FloatArray) -> FloatArray:
    """Wire pose (6,) of a transform (4, 4)."""
    return np.concatenate([matrix[:3, 3], geo.matrix_to_rotvec(matrix[:3, :3])])
