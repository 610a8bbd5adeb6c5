# SPDX-License-Identifier: MIT
"""The volume that arm and gripper fill, so that their points can be taken out of a cloud.

Arm links are capsules around the closed-form kinematics; the gripper's body and fingers are boxes,
because a rounded finger would either miss its own corners or eat what it holds. Sizes are those of
the UR5's links and the 2F-85, grown by a margin for noise and calibration error.

Nominal kinematics are not those of the arm at hand: factory calibration moves its TCP by
millimetres. The controller knows them and reports the TCP it really has, so the gripper hangs from
the measured TCP, and the links follow the difference between measured and nominal TCP, the more the
nearer they are to the gripper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equi_core.cell_geometry import CellGeometry
from equi_core.contract import ImageSpec
from equi_core.motion import ur5_kinematics
from equi_core.motion.arm_models import UR5, ArmModel
from equi_core.observation.arm_shapes import ArmShape, arm_shape

FloatArray = NDArray[np.float64]

# The gripper about the tool axis (z out of the flange, fingers open along x) [m].
_PALM_FROM_M = (-0.051, -0.037, 0.0)
_PALM_TO_M = (0.051, 0.037, 0.098)
_FINGER_FROM_Z_M = 0.096
_FINGER_TIP_Z_M = 0.174

# Linkage of the 2F-85 (x outwards, z from the flange) [m, rad], as its published URDF models state
# it: the outer knuckle turns about its joint from 0 (open) to 0.8 rad (closed); the outer finger
# stays parallel to itself. Its far end is the widest part of the gripper, beyond the palm.
_KNUCKLE_JOINT_M = (0.0306, 0.0549)
_KNUCKLE_M = (0.0315, -0.0041)
_OUTER_FINGER_M = (0.0061, 0.0471)
_KNUCKLE_CLOSED_RAD = 0.8
_KNUCKLE_HALF_WIDTH_M = 0.014
_KNUCKLE_RADIUS_M = 0.0065
"""Half the thickness of knuckle and outer finger: 149 mm over all when open, as the data sheet says
[m]."""

_FOLLOWS = np.array([0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 1.0, 1.0])
"""How much of the TCP's deviation from the nominal kinematics each capsule shares."""


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
    task_from_tcp: ArrayLike | None = None,
    arm: ArmModel = UR5,
) -> RobotVolume:
    """Volume of the robot in a posture.

    Args:
        joints_rad: joint vector (6,) [rad].
        opening: gap between the pads as a fraction of `image.max_opening_m`.
        image: image definition of the contract; its finger sizes are the fingers' sizes.
        margin_m: how much every link is grown [m].
        geometry: task frame and mounting of the gripper; by default the task frame is base_link.
        task_from_tcp: measured TCP (4, 4); None: where the nominal kinematics put it.
        arm: model of the arm; of another one, links and gripper would be looked for elsewhere.
    """
    geometry = geometry or CellGeometry()
    frames = geometry.to_task(ur5_kinematics.link_frames(joints_rad, arm))
    nominal = frames[5] @ geometry.flange_from_tcp
    measured = nominal if task_from_tcp is None else np.asarray(task_from_tcp, dtype=np.float64)
    deviation_m = measured[:3, 3] - nominal[:3, 3]
    base_m = geometry.task_from_base_link[:3, 3]
    capsules = _arm_capsules(frames, base_m, arm_shape(arm), margin_m)
    capsules[:, :3] += _FOLLOWS[:, None] * deviation_m
    capsules[:, 3:6] += _FOLLOWS[:, None] * deviation_m
    # Where a link really is between base and gripper is unknown to half of the deviation.
    capsules[:, 6] += np.where(_FOLLOWS < 1, 0.5, 0.0) * float(np.linalg.norm(deviation_m))
    # From the TCP back to the flange, along the tool axis.
    task_from_gripper = measured.copy()
    task_from_gripper[:3, 3] -= geometry.tcp_from_flange_m * measured[:3, 2]
    return RobotVolume(capsules, _gripper_boxes(task_from_gripper, opening, image, margin_m))


def _arm_capsules(
    frames: FloatArray, base_m: FloatArray, shape: ArmShape, margin_m: float
) -> FloatArray:
    origin = frames[:, :3, 3]
    z = frames[:, :3, 2]
    # Frame i of the Denavit-Hartenberg chain lies at the far end of link i; its z axis is that of
    # the next joint. Tubes of upper arm and forearm run beside the joint axes.
    rows = [
        (base_m, origin[0] + (0.0, 0.0, shape.shoulder_top_m), shape.base_radius_m),
        (origin[0], origin[0] + shape.shoulder_end_m * z[0], shape.shoulder_radius_m),
        (
            origin[0] + shape.upper_arm_offset_m * z[1],
            origin[1] + shape.upper_arm_offset_m * z[1],
            shape.upper_arm_radius_m,
        ),
        (
            origin[1] + shape.elbow_low_m * z[1],
            origin[1] + shape.elbow_high_m * z[1],
            shape.elbow_radius_m,
        ),
        (
            origin[1] + shape.forearm_offset_m * z[2],
            origin[2] + shape.forearm_offset_m * z[2],
            shape.forearm_radius_m,
        ),
        (
            origin[2] + shape.wrist_start_m * z[2],
            origin[3] + shape.wrist_overhang_m * z[2],
            shape.wrist_radius_m,
        ),
        (
            origin[3] - shape.wrist_back_m * z[3],
            origin[4] + shape.wrist_overhang_m * z[3],
            shape.wrist_radius_m,
        ),
        (origin[4] - shape.wrist_overhang_m * z[4], origin[5], shape.wrist_radius_m),
    ]
    return np.array([[*start, *end, radius + margin_m] for start, end, radius in rows])


def _gripper_boxes(
    task_from_gripper: FloatArray, opening: float, image: ImageSpec, margin_m: float
) -> FloatArray:
    opening = float(np.clip(opening, 0.0, 1.0))
    pad_m = opening * image.max_opening_m / 2
    across_m = image.finger_width_m / 2
    outer_m = pad_m + image.finger_thickness_m
    extents = [
        (_PALM_FROM_M, _PALM_TO_M),
        ((pad_m, -across_m, _FINGER_FROM_Z_M), (outer_m, across_m, _FINGER_TIP_Z_M)),
        ((-outer_m, -across_m, _FINGER_FROM_Z_M), (-pad_m, across_m, _FINGER_TIP_Z_M)),
        *_knuckle_extents(opening),
    ]
    rotation = task_from_gripper[:3, :3]
    rows = []
    for low, high in extents:
        middle = (np.array(low) + high) / 2
        centre = rotation @ middle + task_from_gripper[:3, 3]
        half = (np.array(high) - low) / 2 + margin_m
        rows.append([*centre, *half, *rotation.ravel()])
    return np.array(rows)


def _knuckle_extents(
    opening: float,
) -> list[tuple[tuple[float, float, float], tuple[float, float, float]]]:
    """Boxes around the two outer linkages."""
    angle_rad = (1.0 - opening) * _KNUCKLE_CLOSED_RAD
    turned_x = _KNUCKLE_M[0] * np.cos(angle_rad) - _KNUCKLE_M[1] * np.sin(angle_rad)
    turned_z = _KNUCKLE_M[1] * np.cos(angle_rad) + _KNUCKLE_M[0] * np.sin(angle_rad)
    knuckle_x = _KNUCKLE_JOINT_M[0] + float(turned_x)
    knuckle_z = _KNUCKLE_JOINT_M[1] + float(turned_z)
    low_z = min(_KNUCKLE_JOINT_M[1], knuckle_z) - _KNUCKLE_RADIUS_M
    high_z = knuckle_z + _OUTER_FINGER_M[1] + _KNUCKLE_RADIUS_M
    inner_x = _KNUCKLE_JOINT_M[0] - _KNUCKLE_RADIUS_M
    outer_x = knuckle_x + _OUTER_FINGER_M[0] + _KNUCKLE_RADIUS_M
    y = _KNUCKLE_HALF_WIDTH_M
    return [
        ((inner_x, -y, low_z), (outer_x, y, high_z)),
        ((-outer_x, -y, low_z), (-inner_x, y, high_z)),
    ]
