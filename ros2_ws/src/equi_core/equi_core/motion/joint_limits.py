# SPDX-License-Identifier: MIT
"""Limits in joint space: which configurations may be taken over, which straight ways may be driven.

A box and a yaw range in space do not see the joints. One TCP pose has eight joint vectors, some
with the elbow below the table, and wrist 3 may stand a whole turn away from where it looks to be.
The arm is driven in the branch of `HOME_RAD` only, away from singular poses and joint limits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equi_core.cell_geometry import CellGeometry
from equi_core.geometry import top_down_pose, wrap_angle_rad, yaw_of
from equi_core.motion.arm_models import UR5, ArmModel
from equi_core.motion.ur5_kinematics import (
    HOME_RAD,
    JOINT_NAMES,
    KinematicsError,
    determinant,
    forward,
    inverse_near,
    straight_path,
)

FloatArray = NDArray[np.float64]

_LEAST_WAYPOINTS = 12
_YAW_BETWEEN_WAYPOINTS_RAD = 0.2
# The tool's yaw where wrist 3 is at zero and the base is at zero, tool down: that of HOME_RAD.
_YAW_AT_ZERO_RAD = -math.pi / 2


@dataclass(frozen=True)
class JointLimits:
    """What the joints must obey. Defaults leave a policy its whole workspace."""

    arm: ArmModel = UR5
    margin_rad: float = 0.35
    """Distance that every joint keeps from the end of its range [rad]: cables need some of it."""
    min_determinant_share: float = 0.2
    """|det J| stays above this share of its value at HOME; in the default workspace it is 0.33."""
    max_kinematics_error_m: float = 0.015
    """Forward kinematics and the controller's own TCP may differ by this much: factory calibration
    explains millimetres, a wrong model or TCP centimetres."""

    @property
    def largest_rad(self) -> float:
        """Largest angle of a joint to either side of zero [rad]."""
        return self.arm.joint_limit_rad - self.margin_rad

    @property
    def least_determinant(self) -> float:
        """Smallest |det J| that is not too near a singular pose."""
        return self.min_determinant_share * abs(determinant(HOME_RAD, self.arm))


def warm_up(limits: JointLimits) -> None:
    """Compile what the checks need, before an arm waits for them."""
    geometry = CellGeometry()
    pose = forward(HOME_RAD, limits.arm) @ geometry.flange_from_tcp
    configuration_problem(HOME_RAD, pose, geometry, limits)
    here = [*pose[:3, 3], float(yaw_of(pose))]
    path_problem(HOME_RAD, here, here, geometry, limits)
    folded_yaw(HOME_RAD, here[3], here, geometry, limits)


def configuration_problem(
    joints_rad: ArrayLike,
    base_link_from_tcp: FloatArray,
    geometry: CellGeometry,
    limits: JointLimits,
) -> str:
    """Why an arm must not be taken over as it stands; empty if it may.

    Args:
        joints_rad: measured joints (6,).
        base_link_from_tcp: the controller's own TCP pose (4, 4).
        geometry: the cell's TCP.
        limits: what must be obeyed.
    """
    joints = np.asarray(joints_rad, dtype=np.float64)
    if joints.shape != (6,) or not np.all(np.isfinite(joints)):
        return f"joints {joints.tolist()} are not six finite angles; is the controller ready?"
    computed = forward(joints, limits.arm) @ geometry.flange_from_tcp
    error_m = float(np.linalg.norm(computed[:3, 3] - base_link_from_tcp[:3, 3]))
    if not error_m <= limits.max_kinematics_error_m:
        return (
            f"wrong_kinematics: the controller's TCP is {error_m * 1e3:.0f} mm from where the "
            f"joints of a {limits.arm.name} put it, at most "
            f"{limits.max_kinematics_error_m * 1e3:.0f} mm is allowed; is link.robot_model the "
            "arm that stands there, and geometry.tcp_from_flange_m its tool?"
        )
    branch = _wrong_branch(joints, limits.arm)
    if branch:
        return (
            f"wrong_branch: {branch}; jog the arm to elbow up, wrist 2 at -90 degrees, tool down "
            f"(near joints {np.degrees(HOME_RAD).round().astype(int).tolist()} degrees)"
        )
    for name, angle in zip(JOINT_NAMES, joints, strict=True):
        if not abs(angle) <= limits.largest_rad:
            return (
                f"wound_joint: {name} is at {math.degrees(angle):.0f} degrees, at most "
                f"{math.degrees(limits.largest_rad):.0f} is allowed; rotate it back by a whole turn"
            )
    found = abs(determinant(joints, limits.arm))
    if not found >= limits.least_determinant:
        return (
            f"near_singular: |det J| is {found:.4f}, at least {limits.least_determinant:.4f} is "
            "needed; jog the arm away from the outstretched or folded pose"
        )
    return ""


def path_problem(
    joints_rad: ArrayLike,
    start_xyz_yaw: ArrayLike,
    target_xyz_yaw: ArrayLike,
    geometry: CellGeometry,
    limits: JointLimits,
) -> str:
    """Why a straight way in the task frame must not be driven from these joints; empty if it may.

    Args:
        joints_rad: joints (6,) at the start.
        start_xyz_yaw: TCP (4,): x, y, z [m], yaw [rad] in the task frame, where the way begins.
        target_xyz_yaw: the same where it ends; yaw is not wrapped, so its difference counts.
        geometry: the cell's task frame and TCP.
        limits: what must be obeyed.
    """
    start = _flange_xyz_yaw(start_xyz_yaw, geometry)
    target = _flange_xyz_yaw(target_xyz_yaw, geometry)
    count = max(_LEAST_WAYPOINTS, math.ceil(abs(target[3] - start[3]) / _YAW_BETWEEN_WAYPOINTS_RAD))
    try:
        path = straight_path(
            joints_rad,
            start,
            target,
            np.linspace(0.0, 1.0, count + 1),
            geometry.tcp_from_flange_m,
            limits.arm,
        )
    except KinematicsError as error:
        return str(error)
    # What is outside already may only come back.
    allowed = np.maximum(limits.largest_rad, np.abs(path[0]))
    beyond = np.abs(path) > allowed + 1e-9
    if np.any(beyond):
        joint = int(np.nonzero(np.any(beyond, axis=0))[0][0])
        angle = float(path[np.abs(path[:, joint]).argmax(), joint])
        return (
            f"{JOINT_NAMES[joint]} would reach {math.degrees(angle):.0f} degrees; at most "
            f"{math.degrees(limits.largest_rad):.0f} is allowed"
        )
    least = min(limits.least_determinant, abs(determinant(path[0], limits.arm)))
    for joints in path[1:]:
        if abs(determinant(joints, limits.arm)) < least - 1e-12:
            return "the way leads too near a singular pose"
    return ""


def unwound_yaw(task_from_tcp: FloatArray, joints_rad: ArrayLike, geometry: CellGeometry) -> float:
    """Yaw [rad] of the tool in the task frame that counts the turns of the wrist.

    Zero turns where wrist 3 is within half a turn of its zero, so that a symmetric range of this
    yaw is a nearly symmetric range of wrist 3. In the branch of HOME, tool down.
    """
    joints = np.asarray(joints_rad, dtype=np.float64)
    yaw = float(yaw_of(task_from_tcp))
    # Mounting and task frame shift the zero; whole turns of that shift are no turns of the wrist.
    shift = geometry.tool_yaw_rad + geometry.task_yaw_rad
    by_joints = joints[0] - joints[5] + float(wrap_angle_rad(_YAW_AT_ZERO_RAD - shift))
    return float(yaw + 2 * math.pi * round((by_joints - yaw) / (2 * math.pi)))


def folded_yaw(
    joints_rad: ArrayLike,
    yaw_rad: float,
    target_xyz_yaw: ArrayLike,
    geometry: CellGeometry,
    limits: JointLimits,
    hysteresis_rad: float = 0.5,
    yaw_range_rad: float = math.inf,
) -> float:
    """The target's yaw plus the multiple of pi that leaves wrist 3 most room.

    A two-finger gripper looks and grips the same after half a turn.

    Args:
        joints_rad: joints (6,) now.
        yaw_rad: commanded yaw now, not wrapped [rad].
        target_xyz_yaw: where the tool is to go (4,), in the task frame.
        geometry: the cell's task frame and TCP.
        limits: whose arm it is.
        hysteresis_rad: wrist 3 must gain this much, else the yaw nearest to the target's own stays.
        yaw_range_rad: largest yaw to either side that may be commanded.
    """
    joints = np.asarray(joints_rad, dtype=np.float64)
    target = np.asarray(target_xyz_yaw, dtype=np.float64)
    x, y, z, _ = _flange_xyz_yaw(target, geometry)
    # The base angle of a tool that points down is the same for every yaw. It is asked for where
    # wrist 3 is near zero: with the wrist far round, the joints nearest to HOME reach backwards.
    flange = top_down_pose((x, y, z + geometry.tcp_from_flange_m), _YAW_AT_ZERO_RAD)
    try:
        home_base_rad = float(inverse_near(flange, HOME_RAD, limits.arm)[0])
    except KinematicsError:
        return float(target[3])
    base_rad = float(joints[0]) + float(wrap_angle_rad(home_base_rad - joints[0]))
    # yaw = base - wrist 3 + constant, where the tool points down.
    constant = yaw_rad - (joints[0] - joints[5])

    def wrist_rad(turns: int) -> float:
        return float(abs(base_rad + constant - (float(target[3]) + math.pi * turns)))

    allowed = [
        turns for turns in range(-4, 5) if abs(float(target[3]) + math.pi * turns) <= yaw_range_rad
    ]
    if not allowed:
        return float(target[3])
    best = min(allowed, key=wrist_rad)
    plain = min([turns for turns in allowed if turns % 2 == 0] or allowed, key=wrist_rad)
    chosen = best if wrist_rad(best) + hysteresis_rad < wrist_rad(plain) else plain
    return float(target[3]) + math.pi * chosen


def _flange_xyz_yaw(xyz_yaw: ArrayLike, geometry: CellGeometry) -> FloatArray:
    """A TCP pose (4,) of the task frame as TCP position in base_link and yaw of the flange."""
    x, y, z, yaw = (float(value) for value in np.asarray(xyz_yaw, dtype=np.float64))
    position = geometry.to_base_link(top_down_pose((x, y, z), 0.0))[:3, 3]
    return np.array([*position, yaw + geometry.task_yaw_rad + geometry.tool_yaw_rad])


def _wrong_branch(joints: FloatArray, arm: ArmModel) -> str:
    """Which of the three choices of the inverse differs from HOME's; empty if none does."""
    home = np.array(HOME_RAD)
    if math.sin(joints[2]) * math.sin(home[2]) <= 0:
        return "the elbow is bent the other way"
    if math.sin(joints[4]) * math.sin(home[4]) <= 0:
        return "wrist 2 is flipped"
    # det J = a2 a3 sin(elbow) sin(wrist 2) * reach: with the other signs equal, reach decides.
    if determinant(joints, arm) * determinant(home, arm) <= 0:
        return "the shoulder reaches over its back"
    return ""
