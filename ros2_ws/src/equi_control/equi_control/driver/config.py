# SPDX-License-Identifier: MIT
"""Settings of the driver above the servo process."""

from __future__ import annotations

from dataclasses import dataclass

from equi_control.servo.config import ServoConfig
from equi_core.setting_fields import setting


@dataclass(frozen=True)
class DriverConfig:
    """Settings of the driver above the servo process."""

    servo: ServoConfig
    home_position_m: tuple[float, float, float] = (0.5, 0.0, 0.2)
    home_yaw_rad: float = setting(0.0, low=-3.2, high=3.2)
    use_gripper: bool = True
    gripper_timeout_s: float = setting(6.0, low=0.5, high=60.0)
    """A motion of the fingers takes no longer than this [s]."""
    gripper_activation_timeout_s: float = setting(12.0, low=1.0, high=120.0)
    """A gripper that is not active by then is a fault, and is not activated later [s]."""
    gripper_grace_s: float = setting(0.8, low=0.0, high=30.0)
    """A gripper may be unreachable for this long: time to reconnect once, and for a loss of the
    whole controller, which takes the gripper with it, to be named as such."""
    arrival_tolerance_m: float = setting(0.003, low=0.0005, high=0.02)
    """A step is done where the measured TCP is this near to its target [m]."""
    arrival_tolerance_rad: float = setting(0.03, low=0.001, high=0.3)
    """The same for its yaw [rad]."""
    settle_timeout_s: float = setting(1.0, low=0.1, high=30.0)
    """An arm that rests for this long away from its target has not arrived [s]."""
    step_timeout_s: float = setting(30.0, low=1.0, high=300.0)
    """A step that takes longer has not arrived [s]; a slow speed slider stretches it."""
    min_speed_share: float = setting(0.1, low=0.01, high=1.0)
    """With slider and speed scaling below this share, together, steps are refused."""
    servo_silence_s: float = setting(0.5, low=0.05, high=60.0)
    """A servo process that is silent for longer is taken to hang, and killed."""
    connect_timeout_s: float = setting(30.0, low=0.1, high=600.0)
    max_command_observation_age_s: float = setting(2.0, low=0.05, high=60.0)
    """A command that answers an older observation is refused."""
    max_measured_speed_m_s: float = setting(0.5, low=0.01, high=1.5)
    """Measured TCP speed above which the fault LIMIT_VIOLATED is latched."""
    overspeed_grace_s: float = setting(0.03, low=0.0, high=1.0)
    """The speed may be above for this long: fingers that slide off the edge of something they press
    against spring by the few millimetres that the arm lags behind, within a cycle or two."""
    max_measured_outside_m: float = setting(0.05, low=0.001, high=0.2)
    """Measured distance from the box above which LIMIT_VIOLATED is latched."""
