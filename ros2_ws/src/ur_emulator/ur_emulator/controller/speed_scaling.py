# SPDX-License-Identifier: MIT
"""How the speed slider and reduced mode slow motions."""

from __future__ import annotations

from dataclasses import dataclass

from ur_emulator.profile import Profile


@dataclass(frozen=True)
class SpeedScaling:
    """Shares of the commanded speed, 0 to 1."""

    limiter: float
    """RTDE speed_scaling while a program plays: what the safety limits leave, slider apart."""
    moves: float
    streams: float
    """Of servo and speed streams."""

    @classmethod
    def of(cls, profile: Profile, slider: float, reduced: bool) -> SpeedScaling:
        """The scaling of a profile with its slider somewhere, in normal or reduced mode."""
        limiter = profile.reduced_speed_fraction if reduced else 1.0
        slowed = 1.0 - slider * limiter
        return cls(
            limiter,
            moves=1.0 - profile.move_slider_effect * slowed,
            streams=1.0 - profile.servo_slider_effect * slowed,
        )
