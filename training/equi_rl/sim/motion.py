# SPDX-License-Identifier: MIT
"""Timing of straight Cartesian moves: how long, and where along the path at each tick."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class MotionLimits:
    """Speeds of the simulated TCP; a pushed block does not outrun a finger that brakes so."""

    speed_m_s: float = 0.40
    acceleration_m_s2: float = 4.0
    yaw_speed_rad_s: float = 3.0
    yaw_acceleration_rad_s2: float = 30.0

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"motion limit {name} = {value} must be a positive number")


def trapezoid_fractions(
    distance_m: float, rotation_rad: float, limits: MotionLimits, tick_s: float
) -> FloatArray:
    """Path fractions (N,) at ticks 1 .. N of a move that starts and ends at rest; the last is 1.

    The slower of translation and rotation sets the pace, and both follow the same fraction.
    """
    pace = min(
        _ratio(limits.speed_m_s, distance_m), _ratio(limits.yaw_speed_rad_s, rotation_rad)
    )  # fractions per second
    ramp = min(
        _ratio(limits.acceleration_m_s2, distance_m),
        _ratio(limits.yaw_acceleration_rad_s2, rotation_rad),
    )  # fractions per second squared
    if math.isinf(pace) or math.isinf(ramp):
        return np.ones(1)
    pace = min(pace, math.sqrt(ramp))
    ramp_s = pace / ramp
    total_s = ramp_s + 1.0 / pace
    ticks = max(1, math.ceil(total_s / tick_s))
    time_s = np.arange(1, ticks + 1) * (total_s / ticks)
    left_s = total_s - time_s
    fractions = pace * (time_s - ramp_s / 2)
    fractions = np.where(time_s < ramp_s, ramp * time_s**2 / 2, fractions)
    fractions = np.where(left_s < ramp_s, 1 - ramp * left_s**2 / 2, fractions)
    fractions[-1] = 1.0
    return fractions


def _ratio(limit: float, amount: float) -> float:
    return limit / abs(amount) if abs(amount) > 1e-9 else math.inf
