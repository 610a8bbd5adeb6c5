# SPDX-License-Identifier: MIT
"""RTDE's TCP force: what the arm touches, seen through an estimate with bias, drift and noise."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ur_emulator.profile import Profile

FloatArray = NDArray[np.float64]


class ForceEstimate:
    """A wrench (6,) at the TCP in base: force that the surroundings exert [N], torque [Nm]."""

    def __init__(self, profile: Profile, seed: int = 0) -> None:
        self._profile = profile
        self._rng = np.random.default_rng(seed)
        self._bias = np.array([*profile.force_bias_n, *profile.force_bias_nm])
        self._noise = np.array([profile.force_noise_n] * 3 + [profile.force_noise_nm] * 3)
        # An estimate from joint currents errs with the pose: each component in its own way.
        self._phases = np.random.default_rng(seed + 1).uniform(0, 2 * math.pi, (3, 6))
        self._tare = np.zeros(6)
        self.filtered = np.zeros(6)
        """The wrench without its errors, as the safety system judges it."""
        self.wrench = np.zeros(6)

    def advance(self, contact: FloatArray, joints_rad: FloatArray, period_s: float) -> None:
        """Take one cycle's true contact wrench (6,)."""
        time_constant_s = self._profile.force_filter_s
        share = 1.0 if time_constant_s <= 0 else 1.0 - math.exp(-period_s / time_constant_s)
        self.filtered = self.filtered + share * (contact - self.filtered)
        self.wrench = self.filtered + self._bias - self._tare
        if self._profile.force_drift_n > 0:
            waves = np.sin(joints_rad[None, :] + self._phases).mean(axis=1)
            self.wrench[:3] += self._profile.force_drift_n * waves
        if self._noise.any():
            self.wrench = self.wrench + self._noise * self._rng.standard_normal(6)

    def zero(self) -> None:
        """zero_ftsensor: what is read now becomes zero."""
        self._tare = self._tare + self.wrench
