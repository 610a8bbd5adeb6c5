# SPDX-License-Identifier: MIT
"""Closed-form forward and inverse kinematics of the UR arms, compiled; the UR5 unless told.

Joints stand in the order of `JOINT_NAMES`. Poses are `base_link_from_tool0` (REP-103 base frame;
tool0 = the flange frame with z out of the flange).
The inverse has up to eight branches: shoulder left/right, wrist flipped or not, elbow up/down.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from equi_core.motion.arm_models import UR5, ArmModel

FloatArray = NDArray[np.float64]


class KinematicsError(ValueError):
    """A pose or joint vector that the arm cannot take or that means nothing."""


class OutOfReachError(KinematicsError):
    """No joint vector within the limits brings the tool to the requested pose."""


class SingularPoseError(KinematicsError):
    """The requested pose is reachable only where the arm loses a direction of motion."""


JOINT_NAMES = (
    "shoulder_pan_joint",
    "shoulder_lift_joint",
    "elbow_joint",
    "wrist_1_joint",
    "wrist_2_joint",
    "wrist_3_joint",
)
JOINT_LIMIT_RAD = UR5.joint_limit_rad
"""Every joint rotates by one full turn to either side of zero."""
JOINT_SPEED_LIMIT_RAD_S = math.pi
HOME_RAD: tuple[float, ...] = (0.0, -math.pi / 2, math.pi / 2, -math.pi / 2, -math.pi / 2, 0.0)
"""Elbow up, tool pointing down, far from every singularity: names the branch that we drive in."""

# |det J| at which the arm counts as singular; at HOME it is about 0.081.
SINGULAR_DETERMINANT = 2e-3
_SMALL = 1e-9


def forward(joints_rad: ArrayLike, arm: ArmModel = UR5) -> FloatArray:
    """Pose `base_link_from_tool0` (4, 4) of a joint vector (6,)."""
    base_link_from_tool0: FloatArray = link_frames(joints_rad, arm)[5]
    return base_link_from_tool0


def link_frames(joints_rad: ArrayLike, arm: ArmModel = UR5) -> FloatArray:
    """DH frames (6, 4, 4) of the six links in base_link; the last one is tool0."""
    frames: FloatArray = _link_frames(_joint_vector(joints_rad), arm.links)
    return frames


def inverse(base_link_from_tool0: ArrayLike, arm: ArmModel = UR5) -> FloatArray:
    """Every joint vector (N, 6), N <= 8, angles in [-pi, pi), that reaches a pose (4, 4).

    Where wrist_2 is 0 or pi, wrist_3 is free and set to zero.
    """
    pose = np.ascontiguousarray(base_link_from_tool0, dtype=np.float64)
    if pose.shape != (4, 4) or not np.all(np.isfinite(pose)):
        raise KinematicsError(f"pose has shape {pose.shape}; it must be a finite (4, 4) transform")
    solutions = np.empty((8, 6))
    count = _inverse(pose, solutions, arm.links)
    return solutions[:count].copy()


def inverse_near(
    base_link_from_tool0: ArrayLike, near_rad: ArrayLike, arm: ArmModel = UR5
) -> FloatArray:
    """The joint vector (6,) reaching a pose that lies nearest to a given one, within the limits.

    Raises:
        OutOfReachError: no branch reaches the pose within the joint limits.
        SingularPoseError: the nearest branch is singular there.
    """
    near = _joint_vector(near_rad)
    pose = np.ascontiguousarray(base_link_from_tool0, dtype=np.float64)
    best = np.empty(6)
    if pose.shape != (4, 4) or not np.all(np.isfinite(pose)):
        raise KinematicsError(f"pose has shape {pose.shape}; it must be a finite (4, 4) transform")
    if not _nearest(pose, near, best, arm.links):
        x, y, z = pose[:3, 3]
        raise OutOfReachError(
            f"tool0 at ({x:.3f}, {y:.3f}, {z:.3f}) m, {math.hypot(x, y):.3f} m from the base axis, "
            "has no joint solution; the flange reaches about 0.11 .. 0.85 m around the base"
        )
    found = abs(_determinant(best, arm.links))
    if found < SINGULAR_DETERMINANT:
        raise SingularPoseError(
            f"joints {np.round(best, 3).tolist()} rad are singular (|det J| = "
            f"{found:.1e} < {SINGULAR_DETERMINANT}); move the target away from "
            "the outstretched arm, the base axis or an aligned wrist"
        )
    return best


def determinant(joints_rad: ArrayLike, arm: ArmModel = UR5) -> float:
    """Determinant of the tool Jacobian (6, 6) at a joint vector: zero where it is singular."""
    return float(_determinant(_joint_vector(joints_rad), arm.links))


def straight_path(
    start_rad: ArrayLike,
    start_xyz_yaw: ArrayLike,
    end_xyz_yaw: ArrayLike,
    fractions: ArrayLike,
    tool_length_m: float,
    arm: ArmModel = UR5,
) -> FloatArray:
    """Joint vectors (N, 6) that move a downward-pointing tool along a straight line.

    Args:
        start_rad: joint vector (6,) at the start; every waypoint continues its branch.
        start_xyz_yaw: TCP position in base_link [m] and yaw [rad] at fraction 0.
        end_xyz_yaw: the same at fraction 1.
        fractions: path fractions (N,), ascending.
        tool_length_m: distance from tool0 to the TCP along the tool's z axis [m].
        arm: whose kinematics.
    """
    start = np.asarray(start_xyz_yaw, dtype=np.float64)
    end = np.asarray(end_xyz_yaw, dtype=np.float64)
    steps = np.asarray(fractions, dtype=np.float64)
    path = np.empty((len(steps), 6))
    bad = _straight_path(
        _joint_vector(start_rad), start, end, steps, tool_length_m, path, arm.links
    )
    if bad >= 0:
        x, y, z, yaw = start + steps[bad] * (end - start)
        reached = path[bad - 1] if bad else _joint_vector(start_rad)
        error = (
            SingularPoseError if abs(_determinant(reached, arm.links)) < 2e-2 else OutOfReachError
        )
        raise error(
            f"TCP at ({x:.3f}, {y:.3f}, {z:.3f}) m with yaw {yaw:.2f} rad cannot be reached along "
            "a straight line from here; choose a target inside the workspace"
        )
    return path


def _joint_vector(joints_rad: ArrayLike) -> FloatArray:
    joints = np.ascontiguousarray(joints_rad, dtype=np.float64)
    if joints.shape != (6,) or not np.all(np.isfinite(joints)):
        raise KinematicsError(f"joint vector {joints.tolist()} must be six finite angles [rad]")
    return joints


@njit(cache=True)
def _link_frames(q, links):  # type: ignore[no-untyped-def] # pragma: no cover
    frames = np.empty((6, 4, 4))
    d1, a2, a3, d4, d5, d6 = links
    d = (d1, 0.0, 0.0, d4, d5, d6)
    a = (0.0, a2, a3, 0.0, 0.0, 0.0)
    sin_twist = (1.0, 0.0, 0.0, 1.0, -1.0, 0.0)
    cos_twist = (0.0, 1.0, 1.0, 0.0, 0.0, 1.0)
    # base_link is the DH base rotated by 180 degrees about z.
    pose = np.zeros((4, 4))
    pose[0, 0] = pose[1, 1] = -1.0
    pose[2, 2] = pose[3, 3] = 1.0
    for i in range(6):
        c, s = math.cos(q[i]), math.sin(q[i])
        step = np.zeros((4, 4))
        step[0, 0], step[0, 1], step[0, 2] = c, -s * cos_twist[i], s * sin_twist[i]
        step[1, 0], step[1, 1], step[1, 2] = s, c * cos_twist[i], -c * sin_twist[i]
        step[2, 1], step[2, 2] = sin_twist[i], cos_twist[i]
        step[0, 3], step[1, 3], step[2, 3] = a[i] * c, a[i] * s, d[i]
        step[3, 3] = 1.0
        product = np.zeros((4, 4))
        for row in range(4):
            for col in range(4):
                for k in range(4):
                    product[row, col] += pose[row, k] * step[k, col]
        pose = product
        frames[i] = pose
    return frames


@njit(cache=True)
def _determinant(q, links):  # type: ignore[no-untyped-def] # pragma: no cover
    a2, a3, d5 = links[1], links[2], links[4]
    q23 = q[1] + q[2]
    shoulder = a2 * math.cos(q[1]) + a3 * math.cos(q23) + d5 * math.sin(q23 + q[3])
    return a2 * a3 * math.sin(q[2]) * math.sin(q[4]) * shoulder


@njit(cache=True)
def _clamped_acos(value):  # type: ignore[no-untyped-def] # pragma: no cover
    """Arc cosine that forgives rounding; NaN where there is really no angle."""
    if value > 1.0:
        return 0.0 if value < 1.0 + 1e-9 else math.nan
    if value < -1.0:
        return math.pi if value > -1.0 - 1e-9 else math.nan
    return math.acos(value)


@njit(cache=True)
def _wrap(angle):  # type: ignore[no-untyped-def] # pragma: no cover
    return (angle + math.pi) % (2.0 * math.pi) - math.pi


@njit(cache=True)
def _inverse(pose, solutions, links):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill the branches of the inverse; returns how many there are.

    q1 follows from the wrist's distance to the base axis, q5 and q6 from the tool's orientation,
    and q2, q3, q4 from the planar triangle of upper arm and forearm.
    """
    d1, a2, a3, d4, d5, d6 = links
    # Into the DH base: half a turn about z.
    r = np.empty((3, 3))
    for col in range(3):
        r[0, col], r[1, col], r[2, col] = -pose[0, col], -pose[1, col], pose[2, col]
    px, py, pz = -pose[0, 3], -pose[1, 3], pose[2, 3]
    wrist_x, wrist_y = px - d6 * r[0, 2], py - d6 * r[1, 2]
    radius = math.hypot(wrist_x, wrist_y)
    if radius < d4:
        return 0
    count = 0
    offset = math.acos(d4 / radius)
    for shoulder in (1.0, -1.0):
        q1 = math.atan2(wrist_y, wrist_x) + shoulder * offset + math.pi / 2
        s1, c1 = math.sin(q1), math.cos(q1)
        bend = _clamped_acos((px * s1 - py * c1 - d4) / d6)
        if math.isnan(bend):
            continue
        for wrist in (1.0, -1.0):
            q5 = wrist * bend
            s5, c5 = math.sin(q5), math.cos(q5)
            if abs(s5) < _SMALL:
                q6 = 0.0
            else:
                q6 = math.atan2(
                    (-r[0, 1] * s1 + r[1, 1] * c1) / s5, (r[0, 0] * s1 - r[1, 0] * c1) / s5
                )
            s6, c6 = math.sin(q6), math.cos(q6)
            # x and z axes of frame 4, from the tool's axes rotated back by q6 and q5.
            x4x = (r[0, 0] * c6 - r[0, 1] * s6) * c5 - r[0, 2] * s5
            x4y = (r[1, 0] * c6 - r[1, 1] * s6) * c5 - r[1, 2] * s5
            x4z = (r[2, 0] * c6 - r[2, 1] * s6) * c5 - r[2, 2] * s5
            z4x = -(r[0, 0] * s6 + r[0, 1] * c6)
            z4y = -(r[1, 0] * s6 + r[1, 1] * c6)
            z4z = -(r[2, 0] * s6 + r[2, 1] * c6)
            q234 = math.atan2(x4z, x4x * c1 + x4y * s1)
            ex = px - d6 * r[0, 2] - d5 * z4x
            ey = py - d6 * r[1, 2] - d5 * z4y
            ez = pz - d6 * r[2, 2] - d5 * z4z
            plane_x = ex * c1 + ey * s1
            plane_y = ez - d1
            fold = _clamped_acos(
                (plane_x * plane_x + plane_y * plane_y - a2 * a2 - a3 * a3) / (2.0 * a2 * a3)
            )
            if math.isnan(fold):
                continue
            for elbow in (1.0, -1.0):
                q3 = elbow * fold
                q2 = math.atan2(plane_y, plane_x) - math.atan2(
                    a3 * math.sin(q3), a2 + a3 * math.cos(q3)
                )
                solutions[count, 0] = _wrap(q1)
                solutions[count, 1] = _wrap(q2)
                solutions[count, 2] = _wrap(q3)
                solutions[count, 3] = _wrap(q234 - q2 - q3)
                solutions[count, 4] = _wrap(q5)
                solutions[count, 5] = _wrap(q6)
                count += 1
    return count


@njit(cache=True)
def _nearest(pose, near, best, links):  # type: ignore[no-untyped-def] # pragma: no cover
    """Write the branch nearest to `near`, each joint unwound by full turns; False if none."""
    solutions = np.empty((8, 6))
    count = _inverse(pose, solutions, links)
    best_distance = math.inf
    for i in range(count):
        if abs(math.sin(solutions[i, 4])) < _SMALL:
            solutions[i, 5] = near[5]
        distance = 0.0
        for j in range(6):
            unwound = near[j] + _wrap(solutions[i, j] - near[j])
            if unwound > JOINT_LIMIT_RAD:
                unwound -= 2.0 * math.pi
            elif unwound < -JOINT_LIMIT_RAD:
                unwound += 2.0 * math.pi
            solutions[i, j] = unwound
            distance = max(distance, abs(unwound - near[j]))
        if distance < best_distance:
            best_distance = distance
            best[:] = solutions[i]
    return count > 0


@njit(cache=True)
def _straight_path(near, start, end, fractions, tool_length, path, links):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill the joint path; returns the index of the first bad waypoint, or -1."""
    pose = np.zeros((4, 4))
    pose[3, 3] = 1.0
    previous = near.copy()
    for i in range(len(fractions)):
        t = fractions[i]
        yaw = start[3] + t * (end[3] - start[3])
        c, s = math.cos(yaw), math.sin(yaw)
        pose[0, 0], pose[0, 1], pose[0, 2] = c, s, 0.0
        pose[1, 0], pose[1, 1], pose[1, 2] = s, -c, 0.0
        pose[2, 0], pose[2, 1], pose[2, 2] = 0.0, 0.0, -1.0
        for k in range(3):
            pose[k, 3] = start[k] + t * (end[k] - start[k])
        pose[2, 3] += tool_length
        if not _nearest(pose, previous, path[i], links):
            return i
        for j in range(6):
            # A jump means that the branch ended: the arm would have to swing around.
            if abs(path[i, j] - previous[j]) > 0.5 and i > 0:
                return i
        if abs(_determinant(path[i], links)) < SINGULAR_DETERMINANT:
            return i
        previous[:] = path[i]
    return -1
