# SPDX-License-Identifier: MIT
"""Settings of the servo process: plain data, so that they can be sent to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from equi_control.rtde.config import LinkConfig
from equi_core.motion.safety_limits import SafetyLimits


@dataclass(frozen=True)
class ServoConfig:
    """Everything the servo process needs."""

    link: LinkConfig
    limits: SafetyLimits = field(default_factory=SafetyLimits)
    max_state_age_s: float = 0.1
    """Silence of the controller for this long is a lost connection [s]."""
    blocked_lag_m: float = 0.008
    """Measured TCP behind the controller's own target by this much means contact [m]. Free motion
    lags by up to 4 mm. Braking from full speed adds about 45 mm (look-ahead, reaction, jerk)."""
    max_contact_force_n: float = 80.0
    """Estimated force at the TCP that counts as contact [N]."""
    max_tilt_rad: float = 0.2
    """A tool tilted further than this from straight down is not taken over [rad]."""
    realtime_priority: int = 5
    """Real-time priority requested for the process; ignored without permission."""
