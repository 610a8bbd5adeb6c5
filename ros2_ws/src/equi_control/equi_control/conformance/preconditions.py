# SPDX-License-Identifier: MIT
"""What must hold before anything moves: which robot this is, and that it is ready."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from equi_control.conformance.plan import LONGEST_TRAVEL_RAD, MOVED_JOINT
from equi_control.rtde.dashboard import Dashboard
from equi_control.rtde.measurement_link import Sample
from equi_control.rtde.robot_reading import PROGRAM_PLAYING, ROBOT_MODE_RUNNING
from equi_core.motion.arm_models import ARM_MODELS, model_of_controller

_REST_RAD_S = 0.005
_NORMAL_BITS = 0x1
_JOINT_RESERVE_RAD = 0.3
_UNKNOWN = "unknown"


@dataclass(frozen=True)
class Identity:
    """Which robot answered."""

    model: str
    """As in `ARM_MODELS`; the controller's own words if it is none of them."""
    serial_number: str
    software: str

    def as_robot(self, name: str) -> Mapping[str, str]:
        """The block `robot` of the file."""
        return {
            "name": name or f"{self.model} {self.serial_number}",
            "serial_number": self.serial_number,
            "model": self.model,
            "software": self.software,
        }


def identify(dashboard: Dashboard, *, model: str = "", serial: str = "") -> Identity:
    """Ask the controller who it is; what old software cannot say may be given."""
    software = dashboard.ask_if_known("PolyscopeVersion") or _UNKNOWN
    match = re.search(r"(\d+)\.\d+", software)
    major = int(match.group(1)) if match else 0
    said = dashboard.ask_if_known("get robot model")
    return Identity(
        model=model or (model_of_controller(said, major) if said else _UNKNOWN),
        serial_number=serial or dashboard.ask_if_known("get serial number") or _UNKNOWN,
        software=software,
    )


def problems(dashboard: Dashboard, identity: Identity, sample: Sample) -> list[str]:
    """Why the sequence must not begin, one sentence each; empty if it may."""
    found = []
    if identity.model not in ARM_MODELS:
        found.append(
            f"the controller says it is '{identity.model}'; known are {', '.join(ARM_MODELS)}: "
            "give --model if its software is too old to say"
        )
    if identity.serial_number == _UNKNOWN:
        found.append(
            "the controller cannot say its serial number: give --serial, as on the label, so that "
            "the file can be told from those of other robots"
        )
    if sample.robot_mode != ROBOT_MODE_RUNNING:
        found.append(
            f"robot mode is {sample.robot_mode}, not {ROBOT_MODE_RUNNING} (running): power on and "
            "release the brakes at the pendant"
        )
    if sample.safety_bits & ~_NORMAL_BITS & 0x7FF or not sample.safety_bits & _NORMAL_BITS:
        found.append(
            f"safety status bits are {sample.safety_bits:#x}, not normal: leave reduced mode, "
            "protective and emergency stops"
        )
    if sample.program_state == PROGRAM_PLAYING:
        found.append("a program is playing: stop it, and end the driver if it runs")
    remote = dashboard.ask_if_known("is in remote control")
    if remote is not None and remote.strip().lower() == "false":
        found.append("remote control is off: switch it on at the pendant (top right)")
    if float(np.abs(sample.speeds_rad_s).max()) > _REST_RAD_S:
        found.append("the arm is moving; wait until it rests")
    room = 2 * np.pi - abs(float(sample.joints_rad[MOVED_JOINT]))
    if room < LONGEST_TRAVEL_RAD + _JOINT_RESERVE_RAD:
        found.append(
            f"the base joint is {room:.2f} rad from its limit; turn it back by a turn in freedrive"
        )
    if sample.target_speed_fraction < 0.99:
        found.append(
            f"the speed slider stands at {100 * sample.target_speed_fraction:.0f} %: put it to "
            "100 % (the sequence is slow by itself, and sets the slider to measure it)"
        )
    return found
