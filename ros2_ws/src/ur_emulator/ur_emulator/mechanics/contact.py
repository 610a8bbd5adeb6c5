# SPDX-License-Identifier: MIT
"""Obstacles that do not give way, and what a stiff arm feels when its tool is sent into them.

Arm and obstacle are two springs in series, without friction and without inertia: enough to know how
far the tool is held back and how hard it presses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# Stiffness of a steel plate on a table, far above an arm's.
DEFAULT_STIFFNESS_N_M = 1e6


class ObstacleError(ValueError):
    """An obstacle that makes no sense; names the value and what is allowed."""


@dataclass(frozen=True)
class Obstacle:
    """A rigid box in base, turned about z; one that is very large serves as a plane."""

    centre_m: tuple[float, float, float]
    size_m: tuple[float, float, float]
    yaw_rad: float = 0.0
    stiffness_n_m: float = DEFAULT_STIFFNESS_N_M

    def __post_init__(self) -> None:
        numbers = (*self.centre_m, *self.size_m, self.yaw_rad, self.stiffness_n_m)
        if len(self.centre_m) != 3 or len(self.size_m) != 3 or not all(map(math.isfinite, numbers)):
            raise ObstacleError("an obstacle needs a centre and a size of three finite numbers")
        if min(self.size_m) <= 0 or self.stiffness_n_m <= 0:
            raise ObstacleError(
                f"obstacle has size {self.size_m} m and stiffness {self.stiffness_n_m} N/m; "
                "all must be above zero"
            )

    def penetration(self, point_m: FloatArray) -> FloatArray:
        """Shortest way (3,) out of the box for a point inside it; zeros outside."""
        c, s = math.cos(self.yaw_rad), math.sin(self.yaw_rad)
        x, y, z = (float(p - q) for p, q in zip(point_m, self.centre_m, strict=True))
        local = (c * x + s * y, -s * x + c * y, z)
        depths = [half / 2 - abs(value) for half, value in zip(self.size_m, local, strict=True)]
        if min(depths) <= 0:
            return np.zeros(3)
        axis = depths.index(min(depths))
        out = [0.0, 0.0, 0.0]
        out[axis] = math.copysign(depths[axis], local[axis])
        return np.array([c * out[0] - s * out[1], s * out[0] + c * out[1], out[2]])


def table(height_m: float) -> Obstacle:
    """A table top of 4 m by 4 m: thick, so that a tool sent through it is still pushed up."""
    return Obstacle((0.0, 0.0, height_m - 1.0), (4.0, 4.0, 2.0))


def resist(
    point_m: FloatArray, obstacles: tuple[Obstacle, ...], arm_stiffness_n_m: float
) -> tuple[FloatArray, FloatArray]:
    """How far (3,) [m] a tool is kept from where its motors want it, and the force (3,) [N] on it.

    The force is that of the obstacles on the tool: it points out of them.
    """
    displacement, force = np.zeros(3), np.zeros(3)
    for obstacle in obstacles:
        way_out = obstacle.penetration(point_m + displacement)
        share = obstacle.stiffness_n_m / (obstacle.stiffness_n_m + arm_stiffness_n_m)
        displacement = displacement + share * way_out
        force = force + arm_stiffness_n_m * share * way_out
    return displacement, force
