# SPDX-License-Identifier: MIT
"""The UR5's kinematics in the controller's own frame `base`, with a tool.

`base` is base_link rotated by pi about z. Poses on the wire are x, y, z [m] and a rotation
vector [rad].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equi_core import geometry as geo
from equi_core.motion.ur5_kinematics import (
    HOME_RAD,
    KinematicsError,
    inverse_near,
    link_frames,
)

FloatArray = NDArray[np.float64]

_BASE_LINK_FROM_BASE = geo.base_link_from_base()  # its own inverse


class NoSolutionError(ValueError):
    """A pose that the arm cannot reach from where it is; carries the kinematic reason."""


def matrix_of(pose: ArrayLike) -> FloatArray:
    """Transform (4, 4) of a wire pose (6,)."""
    vector = np.asarray(pose, dtype=np.float64)
    return geo.pose_matrix(vector[:3], geo.rotvec_to_matrix(vector[3:]))


def pose_of(matrix: FloatArray) -> FloatArray:
    """Wire pose (6,) of a transform (4, 4)."""
    return np.concatenate([matrix[:3, 3], geo.matrix_to_rotvec(matrix[:3, :3])])


def base_from_tcp(joints_rad: FloatArray, flange_from_tcp: FloatArray) -> FloatArray:
    """Transform (4, 4) of the TCP in the controller's base."""
    base_from_flange: FloatArray = _BASE_LINK_FROM_BASE @ link_frames(joints_rad)[5]
    return base_from_flange @ flange_from_tcp


def solve(
    base_from_tcp_goal: FloatArray, flange_from_tcp: FloatArray, near_rad: FloatArray
) -> FloatArray:
    """Joint vector (6,) nearest to `near_rad` that brings the TCP to a pose.

    Raises:
        NoSolutionError: out of reach or singular.
    """
    base_link_from_tcp = _BASE_LINK_FROM_BASE @ base_from_tcp_goal
    try:
        return inverse_near(base_link_from_tcp @ geo.invert(flange_from_tcp), near_rad)
    except KinematicsError as error:
        raise NoSolutionError(str(error)) from error


def jacobian(joints_rad: FloatArray, flange_from_tcp: FloatArray) -> FloatArray:
    """Geometric Jacobian (6, 6) of the TCP in the controller's base: linear rows, then angular."""
    frames = link_frames(joints_rad)
    tcp = (frames[5] @ flange_from_tcp)[:3, 3]
    axes = np.empty((6, 3))
    origins = np.empty((6, 3))
    # The first joint rotates about the base's z axis, each further one about its parent's z axis.
    axes[0], origins[0] = (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)
    axes[1:], origins[1:] = frames[:5, :3, 2], frames[:5, :3, 3]
    columns: FloatArray = np.concatenate([np.cross(axes, tcp - origins), axes], axis=1).T
    columns[[0, 1, 3, 4]] *= -1.0
    return columns


def compile_kinematics() -> None:
    """Compile the kinematics now: the first call takes seconds, and a client gives up after 2.5 s.

    Later starts load the compiled code from numba's cache.
    """
    joints = np.array(HOME_RAD)
    solve(base_from_tcp(joints, np.eye(4)), np.eye(4), joints)
