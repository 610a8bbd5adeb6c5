# SPDX-License-Identifier: MIT
"""Forward and inverse kinematics of one robot in the controller's frame `base`, compiled.

The forward chain uses the robot's own table, with its factory calibration. The inverse takes the
closed form of the nominal lengths and refines it by Newton steps on the robot's own table.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ur_emulator.mechanics.links import Links

FloatArray = NDArray[np.float64]

HOME_RAD: tuple[float, ...] = (0.0, -math.pi / 2, math.pi / 2, -math.pi / 2, -math.pi / 2, 0.0)
"""Where an arm without a scene stands at start: elbow up, tool down."""
# Largest |angle| that an inverse solution may have: the joints' mechanical range.
JOINT_RANGE_RAD = 2 * math.pi
_SMALL = 1e-9
# Newton's method from the present joints must not wander off to another branch.
_NEAR_RAD = 0.3
# |det J| below this share of the product of the arm's lengths counts as singular: 2e-3 for a UR5.
_SINGULAR_SHARE = 0.0145


class NoSolutionError(ValueError):
    """A pose that the arm cannot reach from where it is; carries the kinematic reason."""


class Kinematics:
    """The kinematics of one robot.

    Args:
        links: nominal lengths of its model.
        factory_seed: its factory calibration; 0 for nominal.
    """

    def __init__(self, links: Links, factory_seed: int = 0) -> None:
        self.links = links
        self.speed_limits_rad_s = links.speed_limits_rad_s
        self._nominal = np.array(links.lengths)
        self._table = links.dh_table(factory_seed)
        self._singular = (
            _SINGULAR_SHARE * abs(links.a2_m * links.a3_m) * (abs(links.a2_m) + abs(links.a3_m))
        )

    def link_frames(self, joints_rad: FloatArray) -> FloatArray:
        """Frames (6, 4, 4) of the six links in base; the last one is the flange."""
        frames: FloatArray = _chain(self._table, joints_rad)
        return frames

    def base_from_tcp(self, joints_rad: FloatArray, flange_from_tcp: FloatArray) -> FloatArray:
        """Transform (4, 4) of the TCP in base."""
        pose: FloatArray = _chain(self._table, joints_rad)[5] @ flange_from_tcp
        return pose

    def jacobian(self, joints_rad: FloatArray, flange_from_tcp: FloatArray) -> FloatArray:
        """Geometric Jacobian (6, 6) of the TCP in base: linear rows, then angular."""
        columns: FloatArray = _jacobian(self._table, joints_rad, flange_from_tcp)
        return columns

    def determinant(self, joints_rad: FloatArray) -> float:
        """Determinant of the flange Jacobian; zero where the arm is singular."""
        return float(_determinant(self._nominal, joints_rad))

    def is_singular(self, joints_rad: FloatArray) -> bool:
        """Whether the arm is too close to a singularity to follow poses."""
        return abs(self.determinant(joints_rad)) < self._singular

    def solve(
        self, base_from_tcp: FloatArray, flange_from_tcp: FloatArray, near_rad: FloatArray
    ) -> FloatArray:
        """Joint vector (6,) nearest to `near_rad` that brings the TCP to a pose (4, 4).

        Raises:
            NoSolutionError: not finite, out of reach or singular.
        """
        if not (np.all(np.isfinite(base_from_tcp)) and np.all(np.isfinite(near_rad))):
            raise NoSolutionError("the pose or the joints to start from are not finite numbers")
        pose = base_from_tcp @ np.linalg.inv(flange_from_tcp)
        joints = np.empty(6)
        found = _nearest(self._nominal, pose, near_rad, joints)
        if not found or not _refine(self._table, pose, joints):
            # At the edge of the nominal arm's reach the real one may still get there.
            joints = np.array(near_rad, dtype=np.float64)
            found = _refine(self._table, pose, joints)
            if not found or np.abs(joints - near_rad).max() > _NEAR_RAD:
                x, y, z = pose[:3, 3]
                raise NoSolutionError(
                    f"flange at ({x:.3f}, {y:.3f}, {z:.3f}) m in base has no joint solution"
                )
        if self.is_singular(joints):
            raise NoSolutionError(
                f"joints {np.round(joints, 3).tolist()} rad are singular "
                f"(|det J| = {abs(self.determinant(joints)):.1e})"
            )
        return joints

    def compile(self) -> None:
        """Compile now: the first call takes seconds, and a client gives up after 2.5 s."""
        joints = np.array(HOME_RAD)
        self.solve(self.base_from_tcp(joints, np.eye(4)), np.eye(4), joints)
        self.jacobian(joints, np.eye(4))


@njit(cache=True)
def _chain(table, q):  # type: ignore[no-untyped-def] # pragma: no cover
    frames = np.empty((6, 4, 4))
    pose = np.eye(4)
    step = np.zeros((4, 4))
    step[3, 3] = 1.0
    for i in range(6):
        c, s = math.cos(q[i] + table[0, i]), math.sin(q[i] + table[0, i])
        d, a = table[1, i], table[2, i]
        ca, sa = math.cos(table[3, i]), math.sin(table[3, i])
        step[0, 0], step[0, 1], step[0, 2], step[0, 3] = c, -s * ca, s * sa, a * c
        step[1, 0], step[1, 1], step[1, 2], step[1, 3] = s, c * ca, -c * sa, a * s
        step[2, 1], step[2, 2], step[2, 3] = sa, ca, d
        pose = pose @ step
        frames[i] = pose
    return frames


@njit(cache=True)
def _jacobian(table, q, tool):  # type: ignore[no-untyped-def] # pragma: no cover
    frames = _chain(table, q)
    tcp = (frames[5] @ np.ascontiguousarray(tool))[:3, 3]
    columns = np.empty((6, 6))
    for i in range(6):
        ax, ay, az = 0.0, 0.0, 1.0
        rx, ry, rz = tcp[0], tcp[1], tcp[2]
        if i > 0:
            before = frames[i - 1]
            ax, ay, az = before[0, 2], before[1, 2], before[2, 2]
            rx, ry, rz = rx - before[0, 3], ry - before[1, 3], rz - before[2, 3]
        columns[0, i] = ay * rz - az * ry
        columns[1, i] = az * rx - ax * rz
        columns[2, i] = ax * ry - ay * rx
        columns[3, i], columns[4, i], columns[5, i] = ax, ay, az
    return columns


@njit(cache=True)
def _determinant(lengths, q):  # type: ignore[no-untyped-def] # pragma: no cover
    a2, a3, d5 = lengths[1], lengths[2], lengths[4]
    q23 = q[1] + q[2]
    shoulder = a2 * math.cos(q[1]) + a3 * math.cos(q23) + d5 * math.sin(q23 + q[3])
    return a2 * a3 * math.sin(q[2]) * math.sin(q[4]) * shoulder


@njit(cache=True)
def _angle(cosine):  # type: ignore[no-untyped-def] # pragma: no cover
    """Arc cosine that forgives rounding; NaN where there is really no angle."""
    if abs(cosine) > 1.0 + 1e-9:
        return math.nan
    return math.acos(min(max(cosine, -1.0), 1.0))


@njit(cache=True)
def _branches(lengths, pose, found):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill up to eight joint vectors for a flange pose; returns how many.

    Shoulder left or right by the wrist's distance from the base axis, wrist up or down by the tool
    axis, elbow up or down by the triangle of upper arm and forearm.
    """
    d1, a2, a3, d4, d5, d6 = lengths
    x, y, z = pose[:3, 0], pose[:3, 1], pose[:3, 2]
    p = pose[:3, 3]
    wrist = p - d6 * z
    radius = math.hypot(wrist[0], wrist[1])
    if radius < d4:
        return 0
    count = 0
    for shoulder in (1.0, -1.0):
        q1 = math.atan2(wrist[1], wrist[0]) + shoulder * math.acos(d4 / radius) + math.pi / 2
        s1, c1 = math.sin(q1), math.cos(q1)
        bend = _angle((p[0] * s1 - p[1] * c1 - d4) / d6)
        if math.isnan(bend):
            continue
        for flip in (1.0, -1.0):
            q5 = flip * bend
            s5, c5 = math.sin(q5), math.cos(q5)
            q6 = 0.0
            if abs(s5) >= _SMALL:
                q6 = math.atan2((c1 * y[1] - s1 * y[0]) / s5, (s1 * x[0] - c1 * x[1]) / s5)
            s6, c6 = math.sin(q6), math.cos(q6)
            # Axes of wrist 1: the tool's, turned back by wrist 3 and wrist 2.
            x4 = (x * c6 - y * s6) * c5 - z * s5
            z4 = -(x * s6 + y * c6)
            q234 = math.atan2(x4[2], x4[0] * c1 + x4[1] * s1)
            elbow_end = wrist - d5 * z4
            reach = elbow_end[0] * c1 + elbow_end[1] * s1
            height = elbow_end[2] - d1
            fold = _angle((reach**2 + height**2 - a2**2 - a3**2) / (2.0 * a2 * a3))
            if math.isnan(fold):
                continue
            for elbow in (1.0, -1.0):
                q3 = elbow * fold
                q2 = math.atan2(height, reach) - math.atan2(
                    a3 * math.sin(q3), a2 + a3 * math.cos(q3)
                )
                found[count] = (q1, q2, q3, q234 - q2 - q3, q5, q6)
                count += 1
    return count


@njit(cache=True)
def _nearest(lengths, pose, near, best):  # type: ignore[no-untyped-def] # pragma: no cover
    """Write the branch nearest to `near`, unwound by full turns; False if there is none."""
    found = np.empty((8, 6))
    count = _branches(lengths, pose, found)
    best_distance = math.inf
    for i in range(count):
        if abs(math.sin(found[i, 4])) < _SMALL:
            found[i, 5] = near[5]
        distance = 0.0
        for j in range(6):
            turn = (found[i, j] - near[j] + math.pi) % (2.0 * math.pi) - math.pi
            angle = near[j] + turn
            if angle > JOINT_RANGE_RAD:
                angle -= 2.0 * math.pi
            elif angle < -JOINT_RANGE_RAD:
                angle += 2.0 * math.pi
            found[i, j] = angle
            distance = max(distance, abs(angle - near[j]))
        if distance < best_distance:
            best_distance = distance
            best[:] = found[i]
    return count > 0


@njit(cache=True)
def _refine(table, pose, joints):  # type: ignore[no-untyped-def] # pragma: no cover
    """Newton steps onto the robot's own table; False if they do not converge."""
    tool = np.eye(4)
    error = np.empty(6)
    for _ in range(12):
        reached = _chain(table, joints)[5]
        error[:3] = pose[:3, 3] - reached[:3, 3]
        # Half the sum of the axes' cross products: the rotation that is left, for small ones.
        error[3:] = 0.0
        for k in range(3):
            ax, ay, az = reached[0, k], reached[1, k], reached[2, k]
            bx, by, bz = pose[0, k], pose[1, k], pose[2, k]
            error[3] += 0.5 * (ay * bz - az * by)
            error[4] += 0.5 * (az * bx - ax * bz)
            error[5] += 0.5 * (ax * by - ay * bx)
        size = np.abs(error).max()
        if size < 1e-11:
            return True
        jacobian = _jacobian(table, joints, tool)
        if abs(np.linalg.det(jacobian)) < 1e-7:
            return size < 1e-6
        joints += np.linalg.solve(jacobian, error)
    return size < 1e-6
