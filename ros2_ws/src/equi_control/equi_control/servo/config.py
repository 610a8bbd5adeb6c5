# SPDX-License-Identifier: MIT
"""Settings of the servo process: plain data, so that they can be sent to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from equi_control.rtde.config import LinkConfig
from equi_core.motion.arm_models import arm_model
from equi_core.motion.contact_law import ContactLimits
from equi_core.motion.joint_limits import JointLimits
from equi_core.motion.safety_limits import SafetyLimits
from equi_core.setting_fields import setting

# Of the law that training's stiff arm obeys too.
_CONTACT = ContactLimits()


@dataclass(frozen=True)
class ServoConfig:
    """Everything the servo process needs."""

    link: LinkConfig
    limits: SafetyLimits = field(default_factory=SafetyLimits)
    max_state_age_s: float = setting(0.1, low=0.005, high=60.0)
    """Silence of the controller for this long is a lost connection [s]."""
    driver_silence_s: float = setting(0.5, low=0.05, high=60.0)
    """A driver that has not been heard for longer hangs, and the arm is stopped [s]."""
    blocked_lag_m: float = setting(_CONTACT.lag_m, low=0.001, high=0.05)
    """Measured TCP behind the controller's own target by this much means contact [m]. Free motion
    lags by up to 4 mm."""
    contact_force_n: float = setting(_CONTACT.force_n, low=1.0, high=200.0)
    """Estimated force at the TCP, beyond that at the step's start, that counts as contact [N]."""
    contact_force_rate_n_s: float = setting(_CONTACT.force_rate_n_s, low=10.0, high=100000.0)
    """Two thirds of that force count as contact if they grow faster than this [N/s]."""
    contact_deceleration_m_s2: float = setting(10.0, low=0.5, high=20.0)
    """With which the controller brakes the arm on contact [m/s2]; 10 is servoStop's own default."""
    near_surface_height_m: float = setting(_CONTACT.near_surface_height_m, low=0.0, high=1.0)
    """Steps that end or begin below this height above the table may meet something rigid [m]."""
    near_surface_speed_m_s: float = setting(_CONTACT.near_surface_speed_m_s, low=0.005, high=0.25)
    """Their speed, unless they lead up [m/s]: a stiff arm must notice contact within a millimetre
    or two, and what is streamed ahead of it (`link.lookahead_s` times this) must not press it to
    a protective stop while this process is not scheduled."""
    step_speed_m_s: float = setting(_CONTACT.step_speed_m_s, low=0.005, high=0.25)
    """Speed of all other steps [m/s]: contact that nobody expects must not be a protective stop
    either. Only ways longer than a step, as the way home, are faster, above that height."""
    max_tilt_rad: float = setting(0.2, low=0.0, high=0.6)
    """A tool tilted further than this from straight down is not taken over [rad]."""
    joint_margin_rad: float = setting(0.35, low=0.0, high=1.5)
    """Distance that every joint keeps from the end of its range [rad]."""
    realtime_priority: int = setting(5, low=0, high=99)
    """Real-time priority requested for the process; ignored without permission."""

    @property
    def joint_limits(self) -> JointLimits:
        """What the joints of the configured arm must obey."""
        return JointLimits(arm_model(self.link.robot_model), margin_rad=self.joint_margin_rad)

    @property
    def contact_limits(self) -> ContactLimits:
        """What the law of contact needs of these settings."""
        return ContactLimits(
            lag_m=self.blocked_lag_m,
            force_n=self.contact_force_n,
            force_rate_n_s=self.contact_force_rate_n_s,
            near_surface_height_m=self.near_surface_height_m,
            near_surface_speed_m_s=self.near_surface_speed_m_s,
            step_speed_m_s=self.step_speed_m_s,
        )
