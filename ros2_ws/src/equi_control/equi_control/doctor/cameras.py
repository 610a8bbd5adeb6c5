# SPDX-License-Identifier: MIT
"""The cameras' streams: rate, skew, stamps, clock, from when clouds were taken and arrived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from equi_control.doctor.finding import Finding, fail, ok, skipped, warn

_LEAST_RATE_HZ = 3.0
_MAX_FUTURE_S = 0.02


@dataclass(frozen=True)
class Arrival:
    """One cloud."""

    stamp_s: float
    """When it was taken, by the camera's clock [s]."""
    arrived_s: float
    """When it arrived, by this computer's clock [s]."""


@dataclass(frozen=True)
class CameraLimits:
    """What perception of this cell accepts."""

    max_age_s: float
    max_skew_s: float


def check_cameras(
    arrivals: Mapping[str, Sequence[Arrival]], duration_s: float, limits: CameraLimits
) -> list[Finding]:
    """Rate, stamps, clock and skew of every camera.

    Args:
        arrivals: clouds by camera, in order of arrival; an empty list if none came.
        duration_s: how long was listened [s].
        limits: of the cell.
    """
    silent = [name for name, clouds in arrivals.items() if len(clouds) < 2]
    if silent:
        return [
            fail(
                "camera rate",
                f"no clouds from {', '.join(silent)} within {duration_s:g} s",
                "start the cameras (cameras:=realsense), compare their topics with the cell file "
                "(ros2 topic list), and look at ROS_DOMAIN_ID",
            ),
            *(skipped(name, "no clouds") for name in ("camera stamps", "clock offset")),
            skipped("camera skew", "no clouds"),
        ]
    return [
        _check_rate(arrivals),
        _check_stamps(arrivals),
        _check_clock(arrivals, limits),
        _check_skew(arrivals, limits),
    ]


def _check_rate(arrivals: Mapping[str, Sequence[Arrival]]) -> Finding:
    rates = {
        name: (len(clouds) - 1) / max(clouds[-1].arrived_s - clouds[0].arrived_s, 1e-6)
        for name, clouds in arrivals.items()
    }
    found = ", ".join(f"{name} {rate:.1f} Hz" for name, rate in rates.items())
    if min(rates.values()) < _LEAST_RATE_HZ:
        return fail(
            "camera rate",
            f"{found} (at least {_LEAST_RATE_HZ:g} Hz)",
            "use USB 3 ports of different controllers and short cables; a smaller depth profile",
        )
    return ok("camera rate", found)


def _check_stamps(arrivals: Mapping[str, Sequence[Arrival]]) -> Finding:
    wrong = []
    for name, clouds in arrivals.items():
        stamps = [cloud.stamp_s for cloud in clouds]
        if len(set(stamps)) < len(stamps):
            wrong.append(f"{name} repeats a stamp")
        elif any(b < a for a, b in pairwise(stamps)):
            wrong.append(f"{name} has stamps that run backwards")
    if wrong:
        return fail(
            "camera stamps",
            "; ".join(wrong),
            "restart the camera's driver; is a bag played, or a second driver running?",
        )
    return ok("camera stamps", "rise with every cloud")


def _check_clock(arrivals: Mapping[str, Sequence[Arrival]], limits: CameraLimits) -> Finding:
    ages = {
        name: median(cloud.arrived_s - cloud.stamp_s for cloud in clouds)
        for name, clouds in arrivals.items()
    }
    found = ", ".join(f"{name} {1e3 * age:.0f} ms old" for name, age in ages.items())
    if min(ages.values()) < -_MAX_FUTURE_S:
        return fail(
            "clock offset",
            f"{found}: from the future",
            "let both computers follow one clock (chrony); set global_time_enabled of the camera",
        )
    if max(ages.values()) > limits.max_age_s:
        return fail(
            "clock offset",
            f"{found} (at most {1e3 * limits.max_age_s:.0f} ms)",
            "compare the clocks of both computers (chronyc tracking); if they agree, the network "
            "or this computer is too slow for these clouds",
        )
    return ok("clock offset", found)


def _check_skew(arrivals: Mapping[str, Sequence[Arrival]], limits: CameraLimits) -> Finding:
    if len(arrivals) < 2:
        return ok("camera skew", "one camera")
    first, *others = arrivals.values()
    skews = [
        max(min(abs(cloud.stamp_s - other.stamp_s) for other in clouds) for clouds in others)
        for cloud in first[:-1]
    ]
    worst_s = median(skews)
    found = f"{1e3 * worst_s:.0f} ms between the nearest clouds"
    if worst_s > limits.max_skew_s:
        return fail(
            "camera skew",
            f"{found} (at most {1e3 * limits.max_skew_s:.0f} ms)",
            "raise the lower rate, or synchronise the cameras by cable (inter_cam_sync_mode)",
        )
    if worst_s > limits.max_skew_s / 2:
        return warn("camera skew", found, "near the limit: raise the rate of the slower camera")
    return ok("camera skew", found)
