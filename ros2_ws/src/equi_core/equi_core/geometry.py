# SPDX-License-Identifier: MIT
"""Rigid-body transforms, yaw and the UR controller's frames: pure functions on float64 arrays.

Naming: a transform is called `dest_from_src`, so adjacent words must match when chained:
`base_from_obj = base_from_tcp @ tcp_from_obj`. Every function works on any leading batch axes and
leaves its arguments untouched.

Frames: `base_link` is the REP-103 frame at the foot of the arm (x forward, y left, z up). The UR
controller reports poses in its own `base`, which is `base_link` rotated by 180 degrees about z.
`tcp` has z out of the gripper; the fingers open and close along its x axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

try:
    from scipy.spatial.transform import Rotation
except ImportError:
    # Launch files read cell files in the Python of `ros2`, which may be without scipy. Nothing
    # that they need calls it; a late import would cost a servo loop its first cycle.
    Rotation = None

FloatArray = NDArray[np.float64]

_ROTATED_180_ABOUT_Z = np.diag([-1.0, -1.0, 1.0, 1.0])
_TOOL_POINTS_DOWN = np.diag([1.0, -1.0, -1.0])


class GeometryError(ValueError):
    """An argument is not the position, rotation or pose that it claims to be."""


def wrap_angle_rad(angle_rad: ArrayLike) -> Any:
    """The same angle in [-pi, pi); scalar in, scalar out."""
    wrapped = np.mod(np.asarray(angle_rad, dtype=np.float64) + np.pi, 2 * np.pi) - np.pi
    return wrapped if wrapped.ndim else float(wrapped)


def wrap_half_turn_rad(angle_rad: ArrayLike) -> Any:
    """The same gripper yaw in [-pi/2, pi/2): a parallel gripper is unchanged by half a turn."""
    wrapped = np.mod(np.asarray(angle_rad, dtype=np.float64) + np.pi / 2, np.pi) - np.pi / 2
    return wrapped if wrapped.ndim else float(wrapped)


def rotation_about_z(yaw_rad: ArrayLike) -> FloatArray:
    """Rotation matrices (..., 3, 3) that rotate counter-clockwise about z by yaw_rad (...)."""
    yaw = np.asarray(yaw_rad, dtype=np.float64)
    cos, sin = np.cos(yaw), np.sin(yaw)
    rotation = np.zeros((*yaw.shape, 3, 3))
    rotation[..., 0, 0] = rotation[..., 1, 1] = cos
    rotation[..., 0, 1] = -sin
    rotation[..., 1, 0] = sin
    rotation[..., 2, 2] = 1.0
    return rotation


def rotvec_to_matrix(rotvec_rad: ArrayLike) -> FloatArray:
    """Rotation matrices (..., 3, 3) of rotation vectors (..., 3)."""
    rotvec = _vectors(rotvec_rad, 3, "rotation vector")
    flat: FloatArray = Rotation.from_rotvec(rotvec.reshape(-1, 3)).as_matrix()
    return flat.reshape(*rotvec.shape[:-1], 3, 3)


def matrix_to_rotvec(rotation: ArrayLike) -> FloatArray:
    """Rotation vectors (..., 3), length in [0, pi], of rotation matrices (..., 3, 3)."""
    matrix = _rotations(rotation)
    flat: FloatArray = Rotation.from_matrix(matrix.reshape(-1, 3, 3)).as_rotvec()
    return flat.reshape(matrix.shape[:-1])


def quaternion_xyzw(rotation: ArrayLike) -> FloatArray:
    """Unit quaternions (..., 4) in ROS order x, y, z, w with w >= 0, of matrices (..., 3, 3)."""
    matrix = _rotations(rotation)
    flat: FloatArray = Rotation.from_matrix(matrix.reshape(-1, 3, 3)).as_quat(canonical=True)
    return flat.reshape(*matrix.shape[:-2], 4)


def quaternion_xyzw_to_matrix(quaternion: ArrayLike) -> FloatArray:
    """Rotation matrices (..., 3, 3) of quaternions (..., 4) in ROS order; any non-zero length."""
    quat = _vectors(quaternion, 4, "quaternion")
    if np.any(np.linalg.norm(quat, axis=-1) < 1e-9):
        raise GeometryError(f"quaternion {quat.tolist()} has no length; give x, y, z, w")
    flat: FloatArray = Rotation.from_quat(quat.reshape(-1, 4)).as_matrix()
    return flat.reshape(*quat.shape[:-1], 3, 3)


def pose_matrix(position_m: ArrayLike, rotation: ArrayLike) -> FloatArray:
    """Homogeneous transforms (..., 4, 4) of positions (..., 3) and rotations (..., 3, 3)."""
    position = _vectors(position_m, 3, "position")
    matrix = _rotations(rotation)
    batch = np.broadcast_shapes(position.shape[:-1], matrix.shape[:-2])
    pose = np.zeros((*batch, 4, 4))
    pose[..., :3, :3] = matrix
    pose[..., :3, 3] = position
    pose[..., 3, 3] = 1.0
    return pose


def invert(dest_from_src: ArrayLike) -> FloatArray:
    """`src_from_dest` (..., 4, 4) of a rigid `dest_from_src`, by transposition."""
    pose = _poses(dest_from_src)
    rotation_t = np.swapaxes(pose[..., :3, :3], -1, -2)
    return pose_matrix(-(rotation_t @ pose[..., :3, 3:])[..., 0], rotation_t)


def transform_points(dest_from_src: ArrayLike, points_src_m: ArrayLike) -> FloatArray:
    """Points (..., N, 3) given in `src`, expressed in `dest`."""
    pose = _poses(dest_from_src)
    points = _vectors(points_src_m, 3, "points")
    return points @ np.swapaxes(pose[..., :3, :3], -1, -2) + pose[..., None, :3, 3]


def top_down_pose(position_m: ArrayLike, yaw_rad: ArrayLike) -> FloatArray:
    """`base_from_tcp` (..., 4, 4) of a gripper that points straight down.

    Args:
        position_m: TCP position (..., 3) in base_link [m].
        yaw_rad: angle (...) from base_link x to the axis along which the fingers open [rad].
    """
    return pose_matrix(position_m, rotation_about_z(yaw_rad) @ _TOOL_POINTS_DOWN)


def yaw_of(base_from_tcp: ArrayLike) -> Any:
    """Gripper yaw (...) [rad] in [-pi, pi): where the TCP's x axis points, seen from above."""
    pose = _poses(base_from_tcp)
    return wrap_angle_rad(np.arctan2(pose[..., 1, 0], pose[..., 0, 0]))


def tilt_of(base_from_tcp: ArrayLike) -> Any:
    """Angle (...) [rad] between the tool's z axis and straight down; 0 for a top-down pose."""
    tool_z = _poses(base_from_tcp)[..., :3, 2]
    # arctan2 keeps its precision where arccos(1 - tiny) would lose half the digits.
    tilt = np.arctan2(np.hypot(tool_z[..., 0], tool_z[..., 1]), -tool_z[..., 2])
    return tilt if tilt.ndim else float(tilt)


def base_link_from_base() -> FloatArray:
    """Transform (4, 4) from the UR controller's `base` to `base_link`; it is its own inverse."""
    return _ROTATED_180_ABOUT_Z.copy()


def ur_pose_to_matrix(base_pose: ArrayLike) -> FloatArray:
    """`base_link_from_tool` (..., 4, 4) of a UR pose (..., 6).

    Args:
        base_pose: x, y, z [m] and rotation vector [rad] in the controller's `base` frame.
    """
    pose = _vectors(base_pose, 6, "UR pose")
    base_from_tool = pose_matrix(pose[..., :3], rotvec_to_matrix(pose[..., 3:]))
    return _ROTATED_180_ABOUT_Z @ base_from_tool


def matrix_to_ur_pose(base_link_from_tool: ArrayLike) -> FloatArray:
    """UR pose (..., 6): x, y, z [m] and rotation vector [rad] in the controller's `base` frame."""
    base_from_tool = _ROTATED_180_ABOUT_Z @ _poses(base_link_from_tool)
    return np.concatenate(
        [base_from_tool[..., :3, 3], matrix_to_rotvec(base_from_tool[..., :3, :3])], axis=-1
    )


def _vectors(value: ArrayLike, length: int, what: str) -> FloatArray:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] != length:
        raise GeometryError(f"{what} has shape {array.shape}; its last axis must be {length}")
    return array


def _rotations(value: ArrayLike) -> FloatArray:
    array = np.asarray(value, dtype=np.float64)
    if array.shape[-2:] != (3, 3):
        raise GeometryError(f"rotation has shape {array.shape}; it must end in (3, 3)")
    return array


def _poses(value: ArrayLike) -> FloatArray:
    array = np.asarray(value, dtype=np.float64)
    if array.shape[-2:] != (4, 4):
        raise GeometryError(f"pose has shape {array.shape}; it must end in (4, 4)")
    return array
