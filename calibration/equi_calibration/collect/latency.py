# SPDX-License-Identifier: MIT
"""Delays from recordings of one small motion: how late images arrive, how late the arm follows.

Two recordings of the same motion, one of them late: the shift in time that makes them one is the
delay. Scale and offset between the recordings do not matter, so a board's pixel column can be
compared with a TCP height.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar

from equi_calibration.errors import LatencyError

FloatArray = NDArray[np.float64]

_FEWEST_SAMPLES = 12
_LEAST_CORRELATION = 0.9
_GRID_STEP_S = 0.004
_REST_WINDOW_S = 0.15
_REST_SPREAD_M = 3e-4
_LEAST_SHIFT_M = 3e-4
_EARLY_SHARE = 0.2
_FEWEST_STARTS = 2


@dataclass(frozen=True)
class Delay:
    """How much later one recording is."""

    delay_s: float
    sigma_s: float
    correlation: float


@dataclass(frozen=True)
class CameraDelay:
    """How late the images of a camera arrive."""

    motion: Delay
    """By the motion that they show: from exposure to arrival, whatever the stamps say."""
    stamped_s: float
    """Mean of arrival minus stamp; differs from the above if the stamps are not exposures."""


@dataclass(frozen=True)
class Latencies:
    """Delays of a cell."""

    cameras: Mapping[str, CameraDelay]
    command_to_motion: Delay


def estimate_delay(
    reference_s: ArrayLike,
    reference: ArrayLike,
    late_s: ArrayLike,
    late: ArrayLike,
    *,
    longest_s: float = 1.0,
) -> Delay:
    """Delay of `late` behind `reference`, both sampled at their own times.

    Args:
        reference_s: times (N,) of the earlier recording [s].
        reference: its values (N,).
        late_s: times (M,) of the later recording [s].
        late: its values (M,).
        longest_s: largest delay that is considered; a little less than nothing is allowed, too.

    Raises:
        LatencyError: too few samples, no motion, or recordings of different motions.
    """
    times, values = _sorted(reference_s, reference, "reference")
    late_times, late_values = _sorted(late_s, late, "late recording")
    shortest_s = -0.05
    # Only samples whose counterpart exists for every delay are compared.
    inside = (late_times - longest_s >= times[0]) & (late_times - shortest_s <= times[-1])
    if inside.sum() < _FEWEST_SAMPLES:
        raise LatencyError(
            f"only {int(inside.sum())} samples overlap, at least {_FEWEST_SAMPLES} are needed; "
            f"record for more than {longest_s:.1f} s before and after"
        )
    late_times, late_values = late_times[inside], late_values[inside]

    def misfit(delay_s: float) -> float:
        expected = np.interp(late_times - delay_s, times, values)
        return _residual(expected, late_values)

    grid = np.arange(shortest_s, longest_s, _GRID_STEP_S)
    costs = np.array([misfit(delay) for delay in grid])
    best = int(np.argmin(costs))
    if best in (0, len(grid) - 1):
        raise LatencyError(
            f"the best delay lies at the edge of the search ({grid[best]:.2f} s); do both "
            "recordings show the same motion, and do their clocks agree?"
        )
    answer = minimize_scalar(
        misfit, bounds=(grid[best - 1], grid[best + 1]), method="bounded", options={"xatol": 1e-5}
    )
    total = float(np.sum((late_values - late_values.mean()) ** 2))
    correlation = float(np.sqrt(max(0.0, 1.0 - answer.fun / total)))
    if correlation < _LEAST_CORRELATION:
        raise LatencyError(
            f"the recordings agree only with correlation {correlation:.2f}, at least "
            f"{_LEAST_CORRELATION} wanted; make the motion larger and keep the board in view"
        )
    return Delay(float(answer.x), _sigma(misfit, float(answer.x), len(late_values)), correlation)


def start_delays(
    times_s: ArrayLike, heights_m: ArrayLike, commands_s: Sequence[float]
) -> list[float]:
    """How long after each command an arm at rest begins to move [s].

    An arm that accelerates evenly has gone as far as the square of the time since it began, so the
    root of the early displacement is extended back to zero: a threshold alone would add the time
    that the arm needs to reach it. Commands to an arm that was not at rest are left out.

    Args:
        times_s: times (N,) of the recording [s].
        heights_m: heights (N,) of the TCP [m].
        commands_s: when each command was given [s].
    """
    times, heights = _sorted(times_s, heights_m, "recording of the arm")
    ends = [*commands_s[1:], float("inf")]
    return [
        start - moment
        for moment, end in zip(commands_s, ends, strict=True)
        if (start := _start_of_motion(times, heights, moment, end)) is not None
    ]


def mean_start(delays_s: Sequence[float]) -> Delay:
    """One delay from several starts, with its standard error.

    Raises:
        LatencyError: fewer than two starts were seen.
    """
    if len(delays_s) < _FEWEST_STARTS:
        raise LatencyError(
            f"the arm was seen to start from rest {len(delays_s)} times, at least {_FEWEST_STARTS} "
            "are needed; is its speed slider at zero?"
        )
    spread = float(np.std(delays_s, ddof=1)) / np.sqrt(len(delays_s))
    return Delay(float(np.median(delays_s)), spread, 1.0)


def _start_of_motion(
    times: FloatArray, heights: FloatArray, moment_s: float, end_s: float
) -> float | None:
    before = heights[(times > moment_s - _REST_WINDOW_S) & (times <= moment_s)]
    after = (times > moment_s) & (times < end_s)
    if len(before) < 3 or float(np.ptp(before)) > _REST_SPREAD_M or not after.any():
        return None
    gone = np.abs(heights[after] - np.median(before))
    peak = int(np.argmax(gone))
    early = np.flatnonzero(
        (gone[:peak] > _LEAST_SHIFT_M) & (gone[:peak] < _EARLY_SHARE * gone[peak])
    )
    if len(early) < 3:
        return None
    slope, offset = np.polyfit(times[after][early] - moment_s, np.sqrt(gone[early]), 1)
    return moment_s - float(offset / slope) if slope > 0 else None


def _residual(expected: FloatArray, seen: FloatArray) -> float:
    """Sum of squares left after the best scale and offset."""
    centred, target = expected - expected.mean(), seen - seen.mean()
    power = float(centred @ centred)
    if power < 1e-18:
        return float(target @ target)
    return float(target @ target - (centred @ target) ** 2 / power)


def _sigma(misfit: Callable[[float], float], delay_s: float, samples: int) -> float:
    """Standard error of the delay from the curvature of the misfit."""
    step = 2 * _GRID_STEP_S
    floor = misfit(delay_s)
    curvature = (misfit(delay_s + step) + misfit(delay_s - step) - 2 * floor) / step**2
    variance = floor / max(samples - 3, 1)
    return float(np.sqrt(2.0 * variance / curvature)) if curvature > 0 else float("inf")


def _sorted(times_s: ArrayLike, values: ArrayLike, name: str) -> tuple[FloatArray, FloatArray]:
    times = np.asarray(times_s, dtype=np.float64)
    numbers = np.asarray(values, dtype=np.float64)
    if times.ndim != 1 or times.shape != numbers.shape or len(times) < _FEWEST_SAMPLES:
        raise LatencyError(
            f"the {name} has {times.shape} times and {numbers.shape} values; it needs at least "
            f"{_FEWEST_SAMPLES} of both"
        )
    if not (np.all(np.isfinite(times)) and np.all(np.isfinite(numbers))):
        raise LatencyError(f"the {name} holds numbers that are not finite")
    if float(np.ptp(numbers)) < 1e-9:
        raise LatencyError(f"the {name} does not move; make the motion larger")
    order = np.argsort(times, kind="stable")
    return times[order], numbers[order]
