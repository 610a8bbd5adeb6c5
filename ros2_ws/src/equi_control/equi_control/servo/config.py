# SPDX-License-Identifier: MIT
"""Settings of the servo process: plain data, so that they can be sent to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from equi_control.rtde.config import LinkConfig
from equi_core.motion.arm_models import arm_model
from equi_core.motion.joint_limits import JointLimits
from equi_core.motion.safety_limits import SafetyLimits


@dataclass(frozen=True)
class ServoConfig:
    """Everything the servo process needs."""

    link: LinkConfig
    limits: SafetyLimits = field(default_factory=SafetyLimits)
    max_state_age_s: float = 0.1
    """Silence of the controller for this long is a lost connection [s]."""
    driver_silence_s: float = 0.5
    """A driver that has not been heard for longer hangs, and the arm is stopped [s]."""
    blocked_lag_m: float = 0.008
    """Measured TCP behind the controller's own target by this much means contact [m]. Free motion
    lags by up to 4 mm."""
    contact_force_n: float = 25.0
    """Estimated force at the TCP, beyond that at the step's start, that counts as contact [N]."""
    contact_force_rate_n_s: float = 500.0
    """Two thirds of that force count as contact if they grow faster than this [N/s]."""
    contact_deceleration_m_s2: float = 5.0
    """With which the controller brakes the arm on contact [m/s2]."""
    near_surface_height_m: float = 0.15
    """Steps that end or begin below this height above the table may meet something rigid [m]."""
    near_surface_speed_m_s: float = 0.06
    """Their speed, unless they lead up [m/s]: a stiff arm must notice contact within a millimetre
    or two."""
    max_tilt_rad: float = 0.2
    """A tool tilted further than this from straight down is not taken over [rad]."""
    joint_margin_rad: float = 0.35
    """Distance that every joint keeps from the end of its range [rad]."""
    realtime_priority: int = 5
    """Real-time priority requested for the process; ignored without permission."""

    @property
    def joint_limits(self) -> JointLimits:
        """What the joints of the configured arm must obey."""
        return JointLimits(arm_model(self.link.robot_model), margin_rad=self.joint_margin_rad)
