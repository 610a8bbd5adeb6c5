# SPDX-License-Identifier: MIT
"""Whether the arm's links meet the table, the base or each other: capsules, compiled.

Seven capsules: base column, upper arm, elbow, forearm, wrist 1, wrist 2, wrist 3, and the tool from
flange to TCP. The tool may touch the table (that is a contact, see `contact`); no link may.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ur_emulator.mechanics.kinematics import Kinematics

FloatArray = NDArray[np.float64]

_BASE, _UPPER, _ELBOW, _FOREARM, _WRIST_1, _WRIST_2, _WRIST_3, _TOOL = range(8)
NAMES = ("base", "upper arm", "elbow", "forearm", "wrist 1", "wrist 2", "wrist 3", "tool")
# Pairs that are not neighbours and can meet within the joints' range.
_PAIRS = np.array(
    [(_BASE, other) for other in (_FOREARM, _WRIST_1, _WRIST_2, _WRIST_3, _TOOL)]
    + [(_UPPER, other) for other in (_WRIST_1, _WRIST_2, _WRIST_3, _TOOL)]
    + [(_FOREARM, _WRIST_3), (_FOREARM, _TOOL)]
)
# Radii of a UR5 [m]: primitive shapes of UR's ROS description; the tool is a gripper's body.
_RADII_M = np.array([0.060, 0.054, 0.060, 0.040, 0.045, 0.045, 0.040, 0.040])
_UR5_UPPER_ARM_M = 0.425


class LinkCollisions:
    """Clearances of one robot's links."""

    def __init__(self, kinematics: Kinematics, table_z_m: float) -> None:
        links = kinematics.links
        self._table_z_m = table_z_m
        # Larger models have thicker links, but not in proportion.
        self._radii_m = _RADII_M * math.sqrt(abs(links.a2_m) / _UR5_UPPER_ARM_M)
        self._radii_m[_TOOL] = _RADII_M[_TOOL]
        self._offsets_m = (links.upper_arm_offset_m, links.forearm_offset_m)

    def nearest(self, frames: FloatArray, flange_from_tcp: FloatArray) -> tuple[float, str]:
        """Least clearance [m], negative when parts overlap, and the names of the two parts."""
        ends = _capsules(frames, np.ascontiguousarray(flange_from_tcp), *self._offsets_m)
        clearance, first, second = _least(ends, self._radii_m, _PAIRS, self._table_z_m)
        parts = f"{NAMES[first]} and {'table' if second < 0 else NAMES[second]}"
        return float(clearance), parts


@njit(cache=True)
def _capsules(frames, tool, upper_offset, forearm_offset):  # type: ignore[no-untyped-def] # pragma: no cover
    ends = np.zeros((8, 2, 3))
    lateral = frames[0, :3, 2]
    shoulder, elbow, wrist = frames[0, :3, 3], frames[1, :3, 3], frames[2, :3, 3]
    ends[0, 1] = shoulder
    ends[1, 0], ends[1, 1] = shoulder + upper_offset * lateral, elbow + upper_offset * lateral
    ends[2, 0], ends[2, 1] = elbow + upper_offset * lateral, elbow + forearm_offset * lateral
    ends[3, 0], ends[3, 1] = elbow + forearm_offset * lateral, wrist + forearm_offset * lateral
    ends[4, 0], ends[4, 1] = wrist + forearm_offset * lateral, frames[3, :3, 3]
    ends[5, 0], ends[5, 1] = frames[3, :3, 3], frames[4, :3, 3]
    ends[6, 0], ends[6, 1] = frames[4, :3, 3], frames[5, :3, 3]
    ends[7, 0], ends[7, 1] = frames[5, :3, 3], (frames[5] @ tool)[:3, 3]
    return ends


@njit(cache=True)
def _least(ends, radii, pairs, table_z):  # type: ignore[no-untyped-def] # pragma: no cover
    clearance, first, second = math.inf, 0, -1
    for i in range(1, 7):
        gap = min(ends[i, 0, 2], ends[i, 1, 2]) - radii[i] - table_z
        if i == 6:
            # The flange is flat: its rim, not a dome, comes near the table first.
            axis = ends[6, 1] - ends[6, 0]
            level = math.hypot(axis[0], axis[1]) / max(math.sqrt((axis**2).sum()), 1e-9)
            gap = ends[6, 1, 2] - radii[6] * level - table_z
        if gap < clearance:
            clearance, first, second = gap, i, -1
    for k in range(len(pairs)):
        i, j = pairs[k]
        gap = _distance(ends[i, 0], ends[i, 1], ends[j, 0], ends[j, 1]) - radii[i] - radii[j]
        if gap < clearance:
            clearance, first, second = gap, i, j
    return clearance, first, second


@njit(cache=True)
def _distance(p0, p1, q0, q1):  # type: ignore[no-untyped-def] # pragma: no cover
    """Distance of two line segments, points allowed."""
    u, v, w = p1 - p0, q1 - q0, p0 - q0
    a, b, c = (u * u).sum(), (u * v).sum(), (v * v).sum()
    d, e = (u * w).sum(), (v * w).sum()
    det = a * c - b * b
    s = 0.0 if det < 1e-12 else min(max((b * e - c * d) / det, 0.0), 1.0)
    t = 0.0 if c < 1e-12 else min(max((b * s + e) / c, 0.0), 1.0)
    s = 0.0 if a < 1e-12 else min(max((b * t - d) / a, 0.0), 1.0)
    gap = w + s * u - t * v
    return math.sqrt((gap * gap).sum())
