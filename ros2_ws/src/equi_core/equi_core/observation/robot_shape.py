# SPDX-License-Identifier: MIT
"""The volume that arm and gripper fill, so that their points can be taken out of a cloud.

Arm links are capsules around the closed-form kinematics; the gripper's body and fingers are boxes,
because a rounded finger would either miss its own corners or eat what it holds. Sizes are those of
the UR5's links and the 2F-85, grown by a margin for noise and calibration error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equi_core.cell_geometry import CellGeometry
from equi_core.contract import ImageSpec
from equi_core.geometry import rotation_about_z
from equi_core.motion import ur5_kinematics

FloatArray = NDArray[np.float64]

# Distances along the joints' z axes, radii and lengths of the UR5's links [m].
_BASE_RADIUS_M = 0.078
_SHOULDER_RADIUS_M = 0.061
_SHOULDER_TOP_M = 0.04
_SHOULDER_END_M = 0.206
_UPPER_ARM_OFFSET_M = 0.13585
_UPPER_ARM_RADIUS_M = 0.055
_ELBOW_RADIUS_M = 0.056
_ELBOW_LOW_M = -0.047
_ELBOW_HIGH_M = 0.194
_FOREARM_OFFSET_M = 0.0165
_FOREARM_RADIUS_M = 0.045
_WRIST_RADIUS_M = 0.046
_WRIST_OVERHANG_M = 0.06

# The gripper about the tool axis (z out of the flange, fingers open along x) [m].
_PALM_FROM_M = (-0.051, -0.037, 0.0)
_PALM_TO_M = (0.051, 0.037, 0.098)
_FINGER_FROM_Z_M = 0.096
_FINGER_TIP_Z_M = 0.174


@dataclass(frozen=True, eq=False)
class RobotVolume:
    """Everything that belongs to the robot, in the task frame [m]."""

    capsules: FloatArray
    """(K, 7): two end points and a radius each."""
    boxes: FloatArray
    """(B, 15): centre (3), half extents (3), task_from_box rotation row by row (9)."""


def robot_volume(
    joints_rad: ArrayLike,
    opening: float,
    image: ImageSpec,
    margin_m: float,
    geometry: CellGeometry | None = None,
) -> RobotVolume:
    """Volume of the robot in a posture.

    Args:
        joints_rad: joint vector (6,) [rad].
        opening: gap between the pads as a fraction of `image.max_opening_m`.
        image: image definition of the contract; its finger sizes are the fingers' sizes.
        margin_m: how much every link is grown [m].
        geometry: task frame and mounting of the gripper; by default the task frame is base_link.
    """
    geometry = geometry or CellGeometry()
    frames = geometry.to_task(ur5_kinematics.link_frames(joints_rad))
    task_from_gripper = frames[5]
    if geometry.tool_yaw_rad:
        task_from_gripper = task_from_gripper.copy()
        task_from_gripper[:3, :3] @= rotation_about_z(geometry.tool_yaw_rad)
    return RobotVolume(
        capsules=_arm_capsules(frames, geometry.task_from_base_link[:3, 3], margin_m),
        boxes=_gripper_boxes(task_from_gripper, opening, image, margin_m),
    )


def _arm_capsules(frames: FloatArray, base_m: FloatArray, margin_m: float) -> FloatArray:
    origin = frames[:, :3, 3]
    z = frames[:, :3, 2]
    # Frame i of the Denavit-Hartenberg chain lies at the far end of link i; its z axis is that of
    # the next joint. Tubes of upper arm and forearm run beside the joint axes.
    rows = [
        (base_m, origin[0] + (0.0, 0.0, _SHOULDER_TOP_M), _BASE_RADIUS_M),
        (origin[0], origin[0] + _SHOULDER_END_M * z[0], _SHOULDER_RADIUS_M),
        (
            origin[0] + _UPPER_ARM_OFFSET_M * z[1],
            origin[1] + _UPPER_ARM_OFFSET_M * z[1],
            _UPPER_ARM_RADIUS_M,
        ),
        (origin[1] + _ELBOW_LOW_M * z[1], origin[1] + _ELBOW_HIGH_M * z[1], _ELBOW_RADIUS_M),
        (
            origin[1] + _FOREARM_OFFSET_M * z[2],
            origin[2] + _FOREARM_OFFSET_M * z[2],
            _FOREARM_RADIUS_M,
        ),
        (
            origin[2] - 0.035 * z[2],
            origin[3] + _WRIST_OVERHANG_M * z[2],
            _WRIST_RADIUS_M,
        ),
        (
            origin[3],
            origin[4] + _WRIST_OVERHANG_M * z[3],
            _WRIST_RADIUS_M,
        ),
        (origin[4] - _WRIST_OVERHANG_M * z[4], origin[5], _WRIST_RADIUS_M),
    ]
    return np.array([[*start, *end, radius + margin_m] for start, end, radius in rows])


def _gripper_boxes(
    task_from_gripper: FloatArray, opening: float, image: ImageSpec, margin_m: float
) -> FloatArray:
    pad_m = float(np.clip(opening, 0.0, 1.0)) * image.max_opening_m / 2
    across_m = image.finger_width_m / 2
    outer_m = pad_m + image.finger_thickness_m
    extents = [
        (_PALM_FROM_M, _PALM_TO_M),
        ((pad_m, -across_m, _FINGER_FROM_Z_M), (outer_m, across_m, _FINGER_TIP_Z_M)),
        ((-outer_m, -across_m, _FINGER_FROM_Z_M), (-pad_m, across_m, _FINGER_TIP_Z_M)),
    ]
    rotation = task_from_gripper[:3, :3]
    rows = []
    for low, high in extents:
        middle = (np.array(low) + high) / 2
        centre = rotation @ middle + task_from_gripper[:3, 3]
        half = (np.array(high) - low) / 2 + margin_m
        rows.append([*centre, *half, *rotation.ravel()])
    return np.array(rows)
