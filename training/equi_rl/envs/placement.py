# SPDX-License-Identifier: MIT
"""Drawing places on the table by rejection, from a given generator."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from equi_rl.sim.errors import SceneError

T = TypeVar("T")
Point = tuple[float, float]

_MAX_TRIES = 10_000


def draw_until(draw: Callable[[], T], accept: Callable[[T], bool]) -> T:
    """The first draw that is accepted."""
    for _ in range(_MAX_TRIES):
        candidate = draw()
        if accept(candidate):
            return candidate
    raise SceneError(f"no acceptable placement in {_MAX_TRIES} draws; the conditions conflict")


def in_square(rng: np.random.Generator, centre: Point, half_m: float) -> Point:
    """Uniform in an axis-aligned square."""
    x, y = rng.uniform(-half_m, half_m, 2)
    return centre[0] + float(x), centre[1] + float(y)


def distance_m(first: Point, second: Point) -> float:
    """Distance on the table."""
    return math.hypot(first[0] - second[0], first[1] - second[1])
