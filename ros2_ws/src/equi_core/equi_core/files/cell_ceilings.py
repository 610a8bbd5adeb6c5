# SPDX-License-Identifier: MIT
"""How far a cell file may loosen what protects people, arm and data.

Nodes check their own parameters for sense; here is what no real cell may exceed, whatever its file
says. A simulated cell, whose busy computer plays robot, cameras and driver at once, may go further.
A value that is stricter than the node's default is always allowed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Bound:
    """Loosest values of one parameter."""

    real: float
    simulated: float
    lower: bool = False
    """The parameter protects by being large: the bound is the smallest value allowed."""


_AGE_SIMULATED_S = 60.0
BOUNDS: Mapping[str, Mapping[str, Bound]] = {
    "rtde_driver": {
        "limits.max_speed_m_s": Bound(0.5, 0.5),
        "limits.max_acceleration_m_s2": Bound(3.0, 3.0),
        "limits.max_jerk_m_s3": Bound(100.0, 100.0),
        "limits.max_yaw_rate_rad_s": Bound(3.2, 3.2),
        "limits.max_yaw_acceleration_rad_s2": Bound(20.0, 20.0),
        "limits.max_yaw_jerk_rad_s3": Bound(300.0, 300.0),
        "limits.max_step_m": Bound(0.1, 0.1),
        "limits.max_yaw_step_rad": Bound(math.pi / 2, math.pi / 2),
        "limits.yaw_range_rad": Bound(2 * math.pi, 2 * math.pi),
        "limits.max_tracking_error_m": Bound(0.05, 0.05),
        "limits.max_outside_m": Bound(0.05, 0.05),
        "limits.max_command_age_s": Bound(0.5, _AGE_SIMULATED_S),
        "limits.max_state_age_s": Bound(0.2, _AGE_SIMULATED_S),
        "max_command_observation_age_s": Bound(2.0, _AGE_SIMULATED_S),
        "servo.max_state_age_s": Bound(0.2, _AGE_SIMULATED_S),
        "servo.driver_silence_s": Bound(1.0, _AGE_SIMULATED_S),
        "servo_silence_s": Bound(1.0, _AGE_SIMULATED_S),
        "link.watchdog_hz": Bound(10.0, 1.0, lower=True),
    },
    "depth_fusion": {
        "max_cloud_age_s": Bound(1.0, _AGE_SIMULATED_S),
        "max_skew_s": Bound(0.3, _AGE_SIMULATED_S),
        "max_robot_age_s": Bound(0.5, _AGE_SIMULATED_S),
        "max_future_s": Bound(0.1, 0.1),
        "max_unseen_fraction": Bound(0.7, 0.7),
        "robot_margin_m": Bound(0.03, 0.03),
    },
    "policy": {
        "max_observation_age_s": Bound(1.0, _AGE_SIMULATED_S),
        "max_future_s": Bound(0.2, 0.2),
        "observation_timeout_s": Bound(60.0, 600.0),
        "execution_timeout_s": Bound(60.0, 600.0),
    },
}
_NEVER_REAL = ("ignore_calibration_verdict",)
"""Switches that a real cell's file cannot set; on the command line they are loud."""


def loosened_too_far(blocks: Mapping[str, Mapping[str, Any]], *, simulated: bool) -> Iterator[str]:
    """One sentence per parameter beyond its bound.

    Args:
        blocks: parameters by node and dotted name.
        simulated: whether the cell is.
    """
    kind = "simulated" if simulated else "real"
    for node, parameters in blocks.items():
        for name, value in parameters.items():
            if name in _NEVER_REAL and value is not False and not simulated:
                yield f"{node}: {name} is {value!r}; the file of a real cell cannot set it"
            bound = BOUNDS.get(node, {}).get(name)
            if bound is None:
                continue
            most = bound.simulated if simulated else bound.real
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                yield f"{node}: {name} is {str(value)[:80]!r}; it must be a number"
            elif not (value >= most if bound.lower else 0 <= value <= most):
                word = "at least" if bound.lower else "0 to"
                yield f"{node}: {name} is {value:.6g}; in a {kind} cell {word} {most:g} is allowed"
