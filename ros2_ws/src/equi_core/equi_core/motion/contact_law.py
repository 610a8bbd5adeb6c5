# SPDX-License-Identifier: MIT
"""Contact, noticed by what a step changes: force since its start, its growth, and lag.

The one law of the robot's servo process and of the training world's stiff arm. The controller
estimates the force at the TCP, on a CB3 from motor currents: biased by tens of newtons, noisy,
drifting with the pose. So a step compares with the force at its own start. A stiff arm against
something rigid goes from nothing to a protective stop within millimetres; the growth of the force
shows that some cycles before its size does.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

_BASELINE_S = 0.1
"""The force before a step is the median over this time: what was pressed before it is over."""
_MEAN_S = 0.016
"""Noise is averaged over this time."""
_GROWTH_S = 0.024
"""The growth of the force is measured over this time."""
_GROWING_SHARE = 2 / 3
_LEADS_UP_SHARE = 0.7


@dataclass(frozen=True)
class ContactLimits:
    """What counts as contact, and how fast the arm may be where it has to be expected."""

    lag_m: float = 0.008
    """Measured TCP behind the controller's own target by this much means contact [m]. Free motion
    lags by up to 4 mm."""
    force_n: float = 25.0
    """Force at the TCP, beyond that at the step's start, that counts as contact [N]."""
    force_rate_n_s: float = 500.0
    """Two thirds of that force count as contact if they grow faster than this [N/s]."""
    near_surface_height_m: float = 0.15
    """Steps that end or begin below this height above the table may meet something rigid [m]."""
    near_surface_speed_m_s: float = 0.04
    """Their speed, unless they lead up [m/s]."""
    step_speed_m_s: float = 0.08
    """Speed of all other steps [m/s]."""

    def near_surface(self, start_m: ArrayLike, target_m: ArrayLike) -> bool:
        """Whether a way between two positions (3,) [m] is low and does not lead up."""
        start = np.asarray(start_m, dtype=np.float64)
        target = np.asarray(target_m, dtype=np.float64)
        way = target - start
        leads_up = way[2] > _LEADS_UP_SHARE * float(np.linalg.norm(way))
        low = min(target[2], start[2]) <= self.near_surface_height_m
        return bool(low and not leads_up)

    def speed_of_step(self, start_m: ArrayLike, target_m: ArrayLike) -> float:
        """Greatest speed [m/s] of a policy's step between two positions (3,) [m]."""
        near = self.near_surface(start_m, target_m)
        return self.near_surface_speed_m_s if near else self.step_speed_m_s


class ContactLaw:
    """Sees the force of every cycle; asked while the arm is under way."""

    def __init__(self, limits: ContactLimits, period_s: float) -> None:
        self._limits, self._period_s = limits, period_s
        self._mean_count = max(1, round(_MEAN_S / period_s))
        self._growth_count = max(1, round(_GROWTH_S / period_s))
        self._forces: deque[FloatArray] = deque(maxlen=max(8, round(_BASELINE_S / period_s)))
        self._baseline: FloatArray | None = None
        self._pressed_n = 0.0
        self.force_n = 0.0
        """Force since the start of the step, averaged [N]."""

    def see_force(self, force_n: ArrayLike) -> None:
        """Take the force (3,) [N] of a new cycle."""
        self._forces.append(np.array(force_n, dtype=np.float64))

    def begin_step(self) -> None:
        """A new target: what is felt now is the new zero, unless the arm still presses.

        Then the old zero stays, and only a force beyond that at the start is contact: letting go,
        and sliding along what is pressed, must not look like it. Once it has let go, the arm feels
        as finely as any.
        """
        if self._forces:
            now = np.median(self._forces, axis=0)
            known = now if self._baseline is None else self._baseline
            self._pressed_n = float(np.linalg.norm(now - known))
            if not self._pressed_n > self._limits.force_n / 2:
                self._baseline, self._pressed_n = now, 0.0
        # Older samples belong to the step before.
        recent = list(self._forces)[-self._mean_count :]
        self._forces.clear()
        self._forces.extend(recent)
        self.force_n = 0.0

    def contact_at(self, lag_m: float) -> str:
        """What shows contact in this cycle, in words; empty if nothing does.

        Args:
            lag_m: distance of the measured TCP from the controller's target [m].
        """
        limits = self._limits
        forces = np.array(self._forces)
        now = forces[-self._mean_count :].mean(axis=0)
        baseline = now if self._baseline is None else self._baseline
        self.force_n = float(np.linalg.norm(now - baseline))
        if self.force_n < limits.force_n / 2:
            self._pressed_n = 0.0
        more_n = self.force_n - self._pressed_n
        growth_n_s = 0.0
        span = self._mean_count + self._growth_count
        if len(forces) >= span:
            before = forces[-span : -self._growth_count].mean(axis=0)
            elapsed_s = self._growth_count * self._period_s
            growth_n_s = float(np.linalg.norm(now - before)) / elapsed_s
        words = f"{lag_m * 1e3:.1f} mm behind the target, {self.force_n:.0f} N since the start"
        # Written so that a value that is not a number counts as contact.
        if not lag_m <= limits.lag_m or not more_n <= limits.force_n:
            return words
        grown = more_n > _GROWING_SHARE * limits.force_n
        if grown and not growth_n_s <= limits.force_rate_n_s:
            return f"{words}, growing by {growth_n_s:.0f} N/s"
        return ""
