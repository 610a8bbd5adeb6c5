# SPDX-License-Identifier: MIT
"""How long one straight motion may take: steps, ways home and set-downs end by then, or fail."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from equi_control.driver.config import DriverConfig
from equi_control.servo.shared_state import ServoState


def longest_motion_s(config: DriverConfig, servo_state: ServoState) -> float:
    """Time limit of one motion [s]; slider and speed scaling stretch it."""
    return config.step_timeout_s / max(servo_state.speed_share, config.min_speed_share)


class Deadline:
    """Watches one motion after the other; each begins with `begin`."""

    def __init__(self, config: DriverConfig) -> None:
        self._config = config
        self._since_s = math.inf
        self._target = np.full(3, math.nan)

    def begin(self, target: ArrayLike, now_s: float) -> None:
        """A motion to a pose (4,): x, y, z [m], yaw [rad] begins."""
        self._since_s, self._target = now_s, np.asarray(target, dtype=np.float64)[:3]

    def missed(self, servo_state: ServoState, now_s: float) -> str:
        """Why the motion will not end any more, in words; empty while it may."""
        limit_s = longest_motion_s(self._config, servo_state)
        if not now_s - self._since_s > limit_s:
            return ""
        away_mm = 1e3 * float(np.linalg.norm(servo_state.position_m - self._target))
        return (
            f"{away_mm:.1f} mm from the target after {limit_s:.0f} s; slider and speed scaling at "
            f"{servo_state.speed_share:.0%}"
        )
