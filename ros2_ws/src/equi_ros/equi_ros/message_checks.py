# SPDX-License-Identifier: MIT
"""What every message from outside must satisfy before anything is computed from it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from equi_ros.stamps import nanoseconds

MAX_FUTURE_S = 1.0
"""A report of what has happened cannot be from later than this; clocks agree far better [s]."""


class MalformedMessage(ValueError):
    """A message whose content means nothing (NaN, a stamp from the future); says which field."""


def require_plausible(name: str, values: Iterable[float], most: float) -> None:
    """Raise MalformedMessage unless every number is finite and of plausible size.

    Args:
        name: field of the message.
        values: its numbers.
        most: largest magnitude that can be meant.
    """
    numbers = [float(value) for value in values]
    for value in numbers:
        if not (math.isfinite(value) and abs(value) <= most):
            raise MalformedMessage(f"{name} is {numbers}; each must be finite, at most {most:g}")


def require_past(name: str, stamp: Any, now_ns: int) -> None:
    """Raise MalformedMessage if something that has happened is stamped in the future."""
    ahead_s = (nanoseconds(stamp) - now_ns) / 1e9
    if ahead_s > MAX_FUTURE_S:
        raise MalformedMessage(f"{name} is {ahead_s:.1f} s in the future; synchronise the clocks")
