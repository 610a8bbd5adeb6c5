# SPDX-License-Identifier: MIT
"""No kindness for a real robot: what a simulated cell may allow itself, another address may not.

The defaults are the loosest values for an arm that can hurt somebody. A simulated cell, whose
robot, cameras and driver share one busy computer, loosens some of them; they go no further than
loopback.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from equi_control.driver.config import DriverConfig
from equi_control.rtde.config import LinkConfig, LinkError
from equi_control.servo.config import ServoConfig

# Parameter, and whether a larger value is the looser one. A contract test names every field that is
# not here, and why.
_LOOSENED = (
    ("link.watchdog_hz", False),
    # Both ways: shorter follows more nervously, longer presses further into something rigid.
    ("link.lookahead_s", False),
    ("link.lookahead_s", True),
    ("link.gain", True),
    *((f"workspace.{axis}_min_m", False) for axis in "xyz"),
    *((f"workspace.{axis}_max_m", True) for axis in "xyz"),
    ("servo.max_state_age_s", True),
    ("servo.driver_silence_s", True),
    ("servo.blocked_lag_m", True),
    ("servo.contact_force_n", True),
    ("servo.contact_force_rate_n_s", True),
    ("servo.contact_deceleration_m_s2", False),
    ("servo.near_surface_speed_m_s", True),
    ("servo.near_surface_height_m", False),
    ("servo.step_speed_m_s", True),
    ("servo.max_tilt_rad", True),
    ("servo.joint_margin_rad", False),
    ("limits.max_speed_m_s", True),
    ("limits.max_acceleration_m_s2", True),
    ("limits.max_jerk_m_s3", True),
    ("limits.max_step_m", True),
    ("limits.max_yaw_step_rad", True),
    ("limits.max_yaw_from_start_rad", True),
    ("limits.yaw_range_rad", True),
    ("limits.max_yaw_rate_rad_s", True),
    ("limits.max_yaw_acceleration_rad_s2", True),
    ("limits.max_yaw_jerk_rad_s3", True),
    ("limits.max_command_age_s", True),
    ("limits.max_state_age_s", True),
    ("limits.max_tracking_error_m", True),
    ("limits.max_outside_m", True),
    ("servo_silence_s", True),
    ("gripper_grace_s", True),
    ("gripper_timeout_s", True),
    ("gripper_activation_timeout_s", True),
    ("arrival_tolerance_m", True),
    ("arrival_tolerance_rad", True),
    ("settle_timeout_s", True),
    ("step_timeout_s", True),
    # Below this share steps are refused, and every waiting time is stretched by it at most.
    ("min_speed_share", False),
    ("max_command_observation_age_s", True),
    ("max_measured_speed_m_s", True),
    ("overspeed_grace_s", True),
    ("max_measured_outside_m", True),
)


def is_loopback(host: str) -> bool:
    """Whether an address is on this computer, where only emulated robots are."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name: nobody knows where it leads


def refuse_loose_limits(config: DriverConfig) -> None:
    """Refuse limits looser than the defaults for any address but loopback.

    Raises:
        LinkError: names the parameters, their values and what is allowed.
    """
    host = config.servo.link.host
    if is_loopback(host):
        return
    defaults = DriverConfig(ServoConfig(LinkConfig(host)))
    found = []
    for name, larger_is_looser in _LOOSENED:
        value, allowed = _value(config, name), _value(defaults, name)
        # Written so that a value that is not a number is refused.
        if not ((value <= allowed) if larger_is_looser else (value >= allowed)):
            word = "at most" if larger_is_looser else "at least"
            found.append(f"{name} is {value} ({word} {allowed} for a real robot)")
    if found:
        raise LinkError(
            f"the limits are those of a simulated cell, but {host} is not a loopback address: "
            f"{'; '.join(found)}. Start with the cell file of the real cell, e.g. cell:=lab"
        )


def _value(config: DriverConfig, name: str) -> Any:
    part, _, field = name.rpartition(".")
    owner: Any = {
        "": config,
        "servo": config.servo,
        "link": config.servo.link,
        "limits": config.servo.limits,
        "workspace": config.servo.limits.workspace,
    }[part]
    return getattr(owner, field)
