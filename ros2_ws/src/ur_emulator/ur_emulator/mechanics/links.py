# SPDX-License-Identifier: MIT
"""Link lengths, speeds and sizes of the UR models, and the factory calibration of one robot.

Lengths: UR's article "DH parameters for calculations of kinematics and dynamics". Speeds: the data
sheets, not checked (nor are the lengths of the UR16e). Radii: primitive shapes of UR's ROS
description, scaled by the upper arm for other models.
The numbers stand here on purpose, not in a package that drivers use: an emulator that takes them
from the driver agrees with the driver's mistakes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_DEGREE = math.pi / 180
_TWISTS_RAD = (math.pi / 2, 0.0, 0.0, math.pi / 2, -math.pi / 2, 0.0)
# Spread of the differences between a calibrated arm and the nominal table: millimetres at the TCP.
_LENGTH_SPREAD_M = 0.0006
_ANGLE_SPREAD_RAD = 0.0008


@dataclass(frozen=True)
class Links:
    """Nominal Denavit-Hartenberg lengths [m] and joint speed limits [rad/s] of one model."""

    d1_m: float
    a2_m: float
    a3_m: float
    d4_m: float
    d5_m: float
    d6_m: float
    upper_arm_offset_m: float
    """Of the upper arm's tube from the shoulder, along the shoulder's axis."""
    forearm_offset_m: float
    base_speed_rad_s: float = 180 * _DEGREE
    """Base and shoulder."""
    elbow_speed_rad_s: float = 180 * _DEGREE
    wrist_speed_rad_s: float = 180 * _DEGREE

    @property
    def lengths(self) -> tuple[float, ...]:
        """d1, a2, a3, d4, d5, d6 [m]."""
        return (self.d1_m, self.a2_m, self.a3_m, self.d4_m, self.d5_m, self.d6_m)

    @property
    def speed_limits_rad_s(self) -> FloatArray:
        """Largest speed of each joint (6,)."""
        base, elbow, wrist = self.base_speed_rad_s, self.elbow_speed_rad_s, self.wrist_speed_rad_s
        return np.array([base, base, elbow, wrist, wrist, wrist])

    def dh_table(self, factory_seed: int = 0) -> FloatArray:
        """Rows theta offset, d, a, alpha (4, 6); with a seed those of one calibrated robot."""
        table = np.array(
            [
                np.zeros(6),
                (self.d1_m, 0.0, 0.0, self.d4_m, self.d5_m, self.d6_m),
                (0.0, self.a2_m, self.a3_m, 0.0, 0.0, 0.0),
                _TWISTS_RAD,
            ]
        )
        if factory_seed == 0:
            return table
        rng = np.random.default_rng(factory_seed)
        table[[1, 2]] += rng.normal(0.0, _LENGTH_SPREAD_M, (2, 6))
        table[[0, 3]] += rng.normal(0.0, _ANGLE_SPREAD_RAD, (2, 6))
        return table


_SLOW = 120 * _DEGREE
_FAST = 360 * _DEGREE
LINKS = {
    "ur3": Links(
        0.1519,
        -0.24365,
        -0.21325,
        0.11235,
        0.08535,
        0.0819,
        0.1198,
        0.0273,
        wrist_speed_rad_s=_FAST,
    ),
    "ur5": Links(0.089159, -0.425, -0.39225, 0.10915, 0.09465, 0.0823, 0.13585, 0.0165),
    "ur10": Links(
        0.1273, -0.612, -0.5723, 0.163941, 0.1157, 0.0922, 0.2209, 0.049, base_speed_rad_s=_SLOW
    ),
    "ur3e": Links(
        0.15185, -0.24355, -0.2132, 0.13105, 0.08535, 0.0921, 0.12, 0.027, wrist_speed_rad_s=_FAST
    ),
    "ur5e": Links(0.1625, -0.425, -0.3922, 0.1333, 0.0997, 0.0996, 0.138, 0.007),
    "ur10e": Links(
        0.1807, -0.6127, -0.57155, 0.17415, 0.11985, 0.11655, 0.176, 0.039, base_speed_rad_s=_SLOW
    ),
    "ur16e": Links(
        0.1807, -0.4784, -0.36, 0.17415, 0.11985, 0.11655, 0.176, 0.039, base_speed_rad_s=_SLOW
    ),
}
