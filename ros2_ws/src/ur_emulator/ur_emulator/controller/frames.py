"""The UR5's kinematics in the controller's own frame `base`, with a tool.

The closed-form solution is that of `equi_core.motion.ur5_kinematics`, given in base_link; the
controller's frame is base_link turned by half a turn about z. Poses on the wire are x, y, z [m]
and a rotation vector [rad].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from equi_core.motion.ur5_kinematics import KinematicsError, inverse_near, link_frames

FloatArray = NDArray[np.float64]

_HALF_TURN = np.diag([-1.0, -1.0, 1.0, 1.0])


class NoSolutionError(ValueError):
    """A pose that the arm cannot reach from where it is; carries the kinematic reason."""


def matrix_of(pose: ArrayLike) -> FloatArray:
    """Transform (4, 4) of a wire pose (6,)."""
    vector = np.asarray(pose, dtype=np.float64)
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_rotvec(vector[3:]).as_matrix()
    matrix[:3, 3] = vector[:3]
    return matrix


def pose_of(matrix: FloatArray) -> FloatArray:
    """Wire pose (6,) of a transform (4, 4)."""
    return np.concatenate([matrix[:3, 3], Rotation.from_matrix(matrix[:3, :3]).as_rotvec()])


def base_from_tcp(joints_rad: FloatArray, flange_from_tcp: FloatArray) -> FloatArray:
    """Transform (4, 4) of the TCP in the controller's base."""
    return _HALF_TURN @ link_frames(joints_rad)[5] @ flange_from_tcp


def solve(
    base_from_tcp_wanted: FloatArray, flange_from_tcp: FloatArray, near_rad: FloatArray
) -> FloatArray:
    """Joint vector (6,) nearest to `near_rad` that brings the TCP to a pose.

    Raises:
        NoSolutionError: out of reach or singular.
    """
    rotation = flange_from_tcp[:3, :3].T
    tcp_from_flange = np.eye(4)
    tcp_from_flange[:3, :3] = rotation
    tcp_from_flange[:3, 3] = -rotation @ flange_from_tcp[:3, 3]
    try:
        return inverse_near(_HALF_TURN @ base_from_tcp_wanted @ tcp_from_flange, near_rad)
    except KinematicsError as error:
        raise NoSolutionError(str(error)) from error


def jacobian(joints_rad: FloatArray, flange_from_tcp: FloatArray) -> FloatArray:
    """Geometric Jacobian (6, 6) of the TCP in the controller's base: linear rows, then angular."""
    frames = link_frames(joints_rad)
    tcp = (frames[5] @ flange_from_tcp)[:3, 3]
    axes = np.empty((6, 3))
    origins = np.empty((6, 3))
    # The first joint turns about the base's z axis, each further one about its parent's z axis.
    axes[0], origins[0] = (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)
    axes[1:], origins[1:] = frames[:5, :3, 2], frames[:5, :3, 3]
    columns = np.concatenate([np.cross(axes, tcp - origins), axes], axis=1).T
    columns[[0, 1, 3, 4]] *= -1.0
    return columns
