# SPDX-License-Identifier: MIT
"""What each behaviour of the emulator rests on: measured, documented or guessed.

One row per field of `Profile`, and one per behaviour that is the same in every profile. Printed by
`ur-emulator --conformance`; the table in ros2_ws/docs/emulator.md is generated from here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from ur_emulator.fitting import Fit
from ur_emulator.profile import PROFILES, Profile


@dataclass(frozen=True)
class Row:
    """One behaviour."""

    behaviour: str
    value: str
    status: str
    """`measured on <robot>`, `documented (source)` or `guessed`, with what is guessed."""


_UR_RTDE = "documented (ur_rtde 1.6.5, observed with it)"
_RTDE_GUIDE = "documented (UR's RTDE guide)"
_DASHBOARD = "documented (UR's dashboard article)"
_SCALED = "documented (UR ROS driver, scaled trajectory controller)"
_SCRIPT = "documented (ur_rtde's control script)"

# Basis of each field of a profile: what is known, or why it is a guess.
PROFILE_BASIS: dict[str, str] = {
    "speed_slider": _RTDE_GUIDE,
    "servo_slider_effect": (
        "documented (ros2_controllers, on-robot speed scaling: at 50 % half of the way per "
        "command; ur_modern_driver issue 302: the arm creeps on); first-order shape guessed"
    ),
    "move_slider_effect": _SCALED,
    "reduced_speed_fraction": "guessed: the real one follows from the installation's limits",
    "joint_lag_s": "guessed",
    "servo_lag_factor": "documented (UR client library issue 86: 34 ms for a look-ahead of 30 ms)",
    "servo_dead_time_s": "guessed",
    "arm_stiffness_n_m": "guessed: order of magnitude of an arm with a gripper",
    "table_contact": "guessed: quasi-static springs, no friction, the TCP alone touches",
    "collision_lag_m": "guessed: path deviation stops are reported within millimetres",
    "force_limit_n": "guessed: a usual setting of the safety configuration, not checked",
    "force_bias_n": "guessed: CB3 estimates it from currents, e-Series measures it",
    "force_bias_nm": "guessed",
    "force_drift_n": "guessed",
    "force_noise_n": "guessed",
    "force_noise_nm": "guessed",
    "force_filter_s": "guessed",
    "safety_planes": "guessed: power off until safety is restarted; recovery mode is not emulated",
    "joint_limits_rad": "documented (UR ROS description: +-360 degrees); kind of stop guessed",
    "link_collisions": "guessed: capsules with the UR5 radii of UR's ROS description",
    "table_z_m": "guessed: set it to your cell",
    "own_links": "documented (UR's article on DH parameters)",
    "factory_seed": "guessed: millimetres, as factory calibrations of UR arms show",
    "program_start_s": "guessed",
    "script_late_s": "guessed",
    "resume_keeps_target": "guessed: a paused script continues where it was",
    "cycle_jitter_s": "guessed",
    "remote_control": "documented (ur_rtde's check of it); what is refused is guessed",
    "program_end_rad_s2": "guessed: on the long side",
    "protective_stop_scale": "documented (UR5 manual, stopping times of category 0)",
    "unlock_s": _DASHBOARD,
    "gripper_activation_s": "guessed",
    "gripper_power_s": "guessed",
    "gripper_echo_s": "guessed",
    "gripper_motion_s": "guessed: later than the echo in the strict profile, the harder order",
    "gripper_speed_scale": "documented (Robotiq 2F-85 manual: 20 to 150 mm/s)",
}

FIXED_ROWS: tuple[Row, ...] = (
    Row("RTDE version 2: packages, recipes, types, frequency division", "", _UR_RTDE),
    Row("an input register belongs to one connection until it is closed", "IN_USE", _UR_RTDE),
    Row("upload of the control script, replacement of a running program", "offset 0, 24", _UR_RTDE),
    Row("ready/done handshake; real-time commands are never acknowledged", "", _UR_RTDE),
    Row("word of asynchronous progress: id, counter, running, progress", "", _UR_RTDE),
    Row("moves arrive at their goal", "within 20 um", _UR_RTDE),
    Row(
        "links and joint speeds: UR3, UR5, UR10, UR3e, UR5e, UR10e, UR16e",
        "DH tables",
        "documented (UR's article on DH parameters); UR16e and joint speeds: not checked",
    ),
    Row("CB3: 3.15 at 125 Hz; e-Series: 5.11 at 500 Hz", "", _RTDE_GUIDE),
    Row("speed_scaling is the limiter's share, without the slider", "", _SCALED),
    Row("shape of moves: trapezoids; 1 rad of rotation counts as 1 m", "", "guessed"),
    Row("paths: every waypoint is a stop; no blends", "", "guessed"),
    Row("servo: newest target, first-order lag; gain has no effect", "", "guessed"),
    Row("a servo target far from the joints is a protective stop", "0.6 rad", "guessed"),
    Row("speedJ, speedL continue until speedStop, whatever their time", "", _SCRIPT),
    Row("speedL ends the program near a singularity", "", "guessed: threshold"),
    Row("two motions at once, or a goal out of reach, end the program", "", "guessed: reported"),
    Row("a number that is not finite, or beyond 1e6, ends the program", "", "guessed"),
    Row("force mode, servoC, freedrive and teach mode end the program", "", "not emulated"),
    Row("commands that the script of version 3 lacks are answered done", "", _SCRIPT),
    Row("programs other than the control script are run as empty", "", "not emulated"),
    Row(
        "watchdog: no write to the command register for 1/f s stops the program",
        "",
        "documented (rtde_set_watchdog; one report saw a protective stop)",
    ),
    Row("a leftover command in the registers runs after an upload", "", _UR_RTDE),
    Row("safety status bits, safety modes, robot modes", "", _RTDE_GUIDE),
    Row(
        "a protective stop pauses the program; play resumes, stop ends it",
        "",
        _DASHBOARD + "; whether CB3 pauses is not verified",
    ),
    Row("emergency stop: power off, release, power on, brake release", "", _DASHBOARD),
    Row("delays: power on 4 s, brake release 3 s, boot 20 s", "", "guessed"),
    Row(
        "jogging on the pendant ends the program; refused in remote control",
        "",
        "guessed: reported",
    ),
    Row("sign of the TCP force: of the surroundings on the tool, in base", "", "guessed"),
    Row("zeroFtSensor tares the force on e-Series, nothing on CB3", "", _SCRIPT),
    Row("dashboard answers that ur_rtde compares", "", _UR_RTDE),
    Row("Robotiq variables; `ack` without newline", "", "documented (ur_rtde's RobotiqGripper)"),
    Row("gripper force 20 to 235 N, positions 3 to 230", "", "documented (Robotiq 2F-85 manual)"),
    Row("fingers that rest 0.5 s short of their target have stopped", "", "guessed"),
)


def rows(fitted: Fit) -> tuple[Row, ...]:
    """Every behaviour of one emulated robot."""
    own = []
    for item in fields(Profile):
        status = PROFILE_BASIS[item.name]
        if item.name in fitted.measured:
            status = f"measured on {fitted.robot}"
        value = _text(getattr(fitted.profile, item.name))
        own.append(Row(f"{item.name}: {item.metadata['help']}", value, status))
    return (*own, *FIXED_ROWS)


def as_text(fitted: Fit) -> str:
    """The table for a terminal."""
    lines = [f"{row.behaviour} | {row.value or '-'} | {row.status}" for row in rows(fitted)]
    return "\n".join(["behaviour | value | status", *lines]) + "\n"


def as_markdown() -> str:
    """The table of the documentation: both profiles, as for a CB3 robot."""
    lenient, strict = PROFILES["lenient"], PROFILES["strict"]
    lines = ["| behaviour | lenient | strict | status |", "|---|---|---|---|"]
    for item in fields(Profile):
        values = [_text(getattr(profile, item.name)) for profile in (lenient, strict)]
        what = f"`{item.name}`: {item.metadata['help']}"
        lines.append(f"| {what} | {values[0]} | {values[1]} | {PROFILE_BASIS[item.name]} |")
    for row in FIXED_ROWS:
        value = row.value or "yes"
        lines.append(f"| {row.behaviour} | {value} | {value} | {row.status} |")
    return "\n".join(lines) + "\n"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        if len(set(value)) == 1 and len(value) > 1:
            return _text(value[0])
        return ", ".join(_text(part) for part in value) or "none"
    if value == math.inf:
        return "none"
    return f"{value:g}"
