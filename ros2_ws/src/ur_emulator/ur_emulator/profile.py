# SPDX-License-Identifier: MIT
"""How strictly the emulator behaves like a robot: one field per behaviour.

`LENIENT` is forgiving and suits tests of protocols. `STRICT` is as unforgiving as a real arm in
everything a program can trip over. Each field can be set by itself, in code (`replace`) and on the
command line (`--servo-slider-effect 0.5`). The conformance table says what each value rests on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ur_emulator.constants import RobotModel


class ProfileError(ValueError):
    """A behaviour set to a value that makes no sense; names it, the value and what is allowed."""


def _number(default: float, least: float, most: float, meaning: str) -> Any:
    return field(default=default, metadata={"least": least, "most": most, "help": meaning})


def _switch(default: bool, meaning: str) -> Any:
    return field(default=default, metadata={"help": meaning})


def _vector(default: tuple[float, ...], least: float, most: float, meaning: str) -> Any:
    return field(default=default, metadata={"least": least, "most": most, "help": meaning})


PROTECTIVE_STOP_RAD_S2 = (13.0, 6.0, 19.0, 19.0, 19.0, 19.0)
"""Category-0 stopping times of the UR5 at full speed and reach, as decelerations of its joints."""
_G = 10_000.0  # wide enough for any deceleration or force here


@dataclass(frozen=True)
class Profile:
    """Behaviours of one emulated robot; the defaults are the lenient profile."""

    # Speed slider and reduced mode
    speed_slider: float = _number(1.0, 0.0, 1.0, "speed slider at start")
    servo_slider_effect: float = _number(
        0.0, 0.0, 1.0, "how far the slider slows servo and speed streams: 0 not at all, 1 fully"
    )
    move_slider_effect: float = _number(1.0, 0.0, 1.0, "the same for moves")
    reduced_speed_fraction: float = _number(
        0.3, 0.0, 1.0, "speed scaling of the limiter in reduced mode"
    )
    # Following
    joint_lag_s: float = _number(0.012, 0.0, 0.5, "lag of the joints behind their target")
    servo_lag_factor: float = _number(1.0, 0.05, 10.0, "servo lag divided by the look-ahead time")
    servo_dead_time_s: float = _number(0.0, 0.0, 1.0, "time until a servo target has any effect")
    # Contact
    arm_stiffness_n_m: float = _number(
        0.0, 0.0, 1e7, "stiffness of the arm at its TCP [N/m]; 0: passes through everything"
    )
    table_contact: bool = _switch(False, "the table is solid for the built-in arm's TCP")
    collision_lag_m: float = _number(
        0.06, 1e-4, 1.0, "TCP displaced this far by contact: protective stop"
    )
    force_limit_n: float = _number(
        math.inf, 0.0, math.inf, "contact force above this: protective stop"
    )
    # Force estimate
    force_bias_n: tuple[float, ...] = _vector(
        (0.0, 0.0, 0.0), -500.0, 500.0, "constant error of the TCP force estimate"
    )
    force_bias_nm: tuple[float, ...] = _vector(
        (0.0, 0.0, 0.0), -500.0, 500.0, "constant error of its torques"
    )
    force_drift_n: float = _number(0.0, 0.0, 100.0, "error that changes with the arm's pose")
    force_noise_n: float = _number(0.0, 0.0, 100.0, "noise of one component, standard deviation")
    force_noise_nm: float = _number(0.0, 0.0, 100.0, "the same of its torques")
    force_filter_s: float = _number(0.0, 0.0, 1.0, "time constant of the estimate")
    # Installation
    safety_planes: tuple[tuple[float, ...], ...] = field(
        default=(),
        metadata={"help": "planes nx,ny,nz,d in base: a TCP with n.p + d < 0 is a violation"},
    )
    joint_limits_rad: tuple[float, ...] = _vector(
        (math.inf,) * 6, 0.0, math.inf, "largest angle of each joint: beyond it a protective stop"
    )
    link_collisions: bool = _switch(
        False, "links that meet the table or each other are a protective stop"
    )
    table_z_m: float = _number(0.0, -2.0, 2.0, "height of the table in base")
    # Kinematics
    own_links: bool = _switch(False, "a ur5e has its own links; otherwise those of the ur5")
    factory_seed: int = field(
        default=0, metadata={"help": "factory kinematics of one robot; 0: nominal"}
    )
    # Program
    program_start_s: float = _number(0.03, 0.0, 10.0, "from the end of an upload to playing")
    script_late_s: float = _number(
        0.0, 0.0, 1.0, "a script thread begins this much later than it is started"
    )
    resume_keeps_target: bool = _switch(
        False, "play resumes towards the old pose until the watchdog's time has passed again"
    )
    cycle_jitter_s: float = _number(0.0, 0.0, 0.1, "lateness of the controller's cycles, typical")
    remote_control: bool = _switch(True, "e-Series: in remote control at start")
    # Stops
    program_end_rad_s2: float = _number(4.0, 0.01, _G, "deceleration when a program ends")
    protective_stop_scale: float = _number(
        1.0, 0.01, 100.0, "factor on the decelerations of protective and emergency stops"
    )
    unlock_s: float = _number(5.0, 0.0, 60.0, "time until a protective stop can be unlocked")
    # Gripper
    gripper_activation_s: float = _number(2.5, 0.0, 60.0, "duration of the activation")
    gripper_power_s: float = _number(0.0, 0.0, 600.0, "the gripper gets power this late")
    gripper_echo_s: float = _number(0.0, 0.0, 5.0, "from a request until PRE shows it")
    gripper_motion_s: float = _number(0.0, 0.0, 5.0, "from a request until OBJ shows motion")
    gripper_speed_scale: float = _number(1.0, 0.05, 5.0, "factor on the finger speed")

    def __post_init__(self) -> None:
        for item in fields(self):
            _check(item.name, getattr(self, item.name), dict(item.metadata))


def _check(name: str, value: Any, allowed: dict[str, Any]) -> None:
    if name == "safety_planes":
        for plane in value:
            length = math.sqrt(sum(part**2 for part in plane[:3])) if len(plane) == 4 else 0.0
            if not (abs(length - 1.0) < 1e-3 and math.isfinite(plane[3])):
                raise ProfileError(
                    f"safety plane is {plane}; it must be nx,ny,nz,d with a normal of length 1"
                )
        return
    if "least" not in allowed:
        return
    values = value if isinstance(value, tuple) else (value,)
    if isinstance(value, tuple) and len(value) not in (3, 6):
        raise ProfileError(f"{name} has {len(value)} numbers; it must have 3 or 6")
    for number in values:
        if math.isnan(number) or not allowed["least"] <= number <= allowed["most"]:
            raise ProfileError(
                f"{name} is {number}; allowed: {allowed['least']} to {allowed['most']}"
            )


LENIENT = Profile()
STRICT = Profile(
    servo_slider_effect=1.0,
    arm_stiffness_n_m=25_000.0,
    table_contact=True,
    collision_lag_m=0.006,
    force_limit_n=150.0,
    force_bias_n=(6.0, -4.0, 9.0),
    force_bias_nm=(0.8, -0.5, 0.3),
    force_drift_n=4.0,
    force_noise_n=3.0,
    force_noise_nm=0.3,
    force_filter_s=0.02,
    joint_limits_rad=(2 * math.pi,) * 6,
    link_collisions=True,
    own_links=True,
    factory_seed=2,
    script_late_s=0.04,
    resume_keeps_target=True,
    cycle_jitter_s=0.0005,
    gripper_echo_s=0.02,
    gripper_motion_s=0.06,
)
PROFILES = {"lenient": LENIENT, "strict": STRICT}


def profile_for(name: str, model: RobotModel) -> Profile:
    """A profile by name, for one model: e-Series arms measure force at the flange.

    Raises:
        ProfileError: there is no such profile.
    """
    if name not in PROFILES:
        raise ProfileError(f"profile is '{name}'; known: {', '.join(PROFILES)}")
    profile = PROFILES[name]
    if name == "strict" and model.is_e_series:
        return replace(
            profile,
            force_bias_n=(2.0, -1.5, 3.0),
            force_bias_nm=(0.1, -0.1, 0.05),
            force_drift_n=1.0,
            force_noise_n=0.8,
            force_noise_nm=0.05,
        )
    return profile
