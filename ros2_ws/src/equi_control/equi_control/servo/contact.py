# SPDX-License-Identifier: MIT
"""Contact, noticed by what a step changes: force since its start, its growth, and lag.

The controller estimates the force at the TCP, on a CB3 from motor currents: biased by tens of
newtons, noisy, drifting with the pose. So a step compares with the force at its own start. A stiff
arm against something rigid goes from nothing to a protective stop within millimetres; the growth of
the force shows that some cycles before its size does.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from equi_control.rtde.robot_reading import Reading
from equi_control.servo.config import ServoConfig

FloatArray = NDArray[np.float64]

_BASELINE_S = 0.1
"""The force before a step is the median over this time: what was pressed before it is over."""
_MEAN_S = 0.016
"""Noise is averaged over this time."""
_GROWTH_S = 0.024
"""The growth of the force is measured over this time."""


_GROWING_SHARE = 2 / 3


class ContactMonitor:
    """Sees every reading; asked while the arm is under way."""

    def __init__(self, config: ServoConfig, period_s: float) -> None:
        self._config, self._period_s = config, period_s
        self._mean_count = max(1, round(_MEAN_S / period_s))
        self._growth_count = max(1, round(_GROWTH_S / period_s))
        self._forces: deque[FloatArray] = deque(maxlen=max(8, round(_BASELINE_S / period_s)))
        self._baseline: FloatArray | None = None
        self._pressed_n = 0.0
        self.force_n = 0.0
        """Force since the start of the step, averaged [N]."""

    def see(self, reading: Reading) -> None:
        """Take the force of a new cycle."""
        self._forces.append(np.array(reading.wrench[:3]))

    def begin_step(self) -> None:
        """A new target: what is felt now is the new zero, unless the arm still presses.

        Then the old zero stays, and only a force beyond that at the start is contact: letting go
        must not look like it.
        """
        if self._forces:
            now = np.median(self._forces, axis=0)
            known = now if self._baseline is None else self._baseline
            self._pressed_n = float(np.linalg.norm(now - known))
            if not self._pressed_n > self._config.contact_force_n / 2:
                self._baseline, self._pressed_n = now, 0.0
        # Older samples belong to the step before.
        recent = list(self._forces)[-self._mean_count :]
        self._forces.clear()
        self._forces.extend(recent)
        self.force_n = 0.0

    def contact(self, reading: Reading) -> str:
        """What shows contact in this cycle, in words; empty if nothing does."""
        config = self._config
        lag_m = float(
            np.linalg.norm(
                reading.base_link_from_target_tcp[:3, 3] - reading.base_link_from_tcp[:3, 3]
            )
        )
        forces = np.array(self._forces)
        now = forces[-self._mean_count :].mean(axis=0)
        baseline = now if self._baseline is None else self._baseline
        self.force_n = float(np.linalg.norm(now - baseline))
        more_n = self.force_n - self._pressed_n
        growth_n_s = 0.0
        span = self._mean_count + self._growth_count
        if len(forces) >= span:
            before = forces[-span : -self._growth_count].mean(axis=0)
            elapsed_s = self._growth_count * self._period_s
            growth_n_s = float(np.linalg.norm(now - before)) / elapsed_s
        words = f"{lag_m * 1e3:.1f} mm behind the target, {self.force_n:.0f} N since the start"
        # Written so that a value that is not a number counts as contact.
        if not lag_m <= config.blocked_lag_m or not more_n <= config.contact_force_n:
            return words
        grown = more_n > _GROWING_SHARE * config.contact_force_n
        if grown and not growth_n_s <= config.contact_force_rate_n_s:
            return f"{words}, growing by {growth_n_s:.0f} N/s"
        return ""
