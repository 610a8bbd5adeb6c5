# SPDX-License-Identifier: MIT
"""One reading of the robot and what follows from it: may the arm be driven, and if not, why.

Plain data, without the library that fetches it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

PROGRAM_PLAYING = 2
ROBOT_MODE_RUNNING = 7
_EMERGENCY_STOP_BITS = 1 << 5 | 1 << 6 | 1 << 7
# Protective stop, safeguard stop, violation, fault, and a stop without explanation.
_PROTECTIVE_STOP_BITS = 1 << 2 | 1 << 4 | 1 << 8 | 1 << 9 | 1 << 10


class Problem(enum.Enum):
    """Why the arm must not be driven; values are stable codes."""

    NONE = "none"
    CONNECTION_LOST = "connection_lost"
    PROTECTIVE_STOP = "protective_stop"
    EMERGENCY_STOP = "emergency_stop"
    ROBOT_NOT_RUNNING = "robot_not_running"
    PROGRAM_STOPPED = "program_stopped"
    DRIVER_SILENT = "driver_silent"
    """Not the robot's: the driver above the servo process hangs."""


ADVICE = {
    Problem.NONE: "",
    Problem.CONNECTION_LOST: "check cable and controller, then reset the fault to reconnect",
    Problem.PROTECTIVE_STOP: (
        "find the cause, clear the arm, enable the robot on the pendant, then reset the fault"
    ),
    Problem.EMERGENCY_STOP: (
        "remove the danger, release the button, power on and release the brakes on the pendant, "
        "then reset the fault"
    ),
    Problem.ROBOT_NOT_RUNNING: "power on and release the brakes on the pendant, then reset",
    Problem.DRIVER_SILENT: "free the computer of other load, read the log, then reset the fault",
    Problem.PROGRAM_STOPPED: "see the pendant for the reason, then reset the fault",
}
"""What the operator should do about each problem."""


@dataclass(frozen=True)
class Reading:
    """Everything measured in one controller cycle, in base_link."""

    base_link_from_tcp: FloatArray
    base_link_from_target_tcp: FloatArray
    """Where the controller itself commands the TCP to be: the difference to measured is contact."""
    twist: FloatArray
    """Linear [m/s] and angular [rad/s] velocity (6,) of the TCP."""
    wrench: FloatArray
    """Force [N] and torque [N m] (6,) on the TCP as the controller estimates them."""
    joints_rad: FloatArray
    joint_speeds_rad_s: FloatArray
    controller_time_s: float
    age_s: float
    """Time since the controller's clock was last seen to advance [s]."""
    connected: bool
    program_state: int
    robot_mode: int
    safety_mode: int
    safety_bits: int
    speed_slider: float = 1.0
    """The pendant's speed slider, 0 to 1 (RTDE target_speed_fraction)."""
    speed_scaling: float = 1.0
    """What the controller's own limits leave of the speed, 0 to 1 (RTDE speed_scaling)."""

    @property
    def speed_share(self) -> float:
        """Share of the commanded speed at which the controller moves the arm, 0 to 1.

        The product of slider and scaling, as UR's own drivers take it. What is no number is none.
        """
        share = self.speed_slider * self.speed_scaling
        return min(share, 1.0) if share >= 0.0 else 0.0

    @property
    def at_rest(self) -> bool:
        """Whether no joint moves."""
        return bool(np.abs(self.joint_speeds_rad_s).max() < 2e-3)


def problem_of(reading: Reading, max_age_s: float) -> Problem:
    """The one thing that is wrong, most urgent first."""
    if not reading.connected or not reading.age_s <= max_age_s:
        return Problem.CONNECTION_LOST
    if reading.safety_bits & _EMERGENCY_STOP_BITS:
        return Problem.EMERGENCY_STOP
    if reading.safety_bits & _PROTECTIVE_STOP_BITS:
        return Problem.PROTECTIVE_STOP
    if reading.robot_mode != ROBOT_MODE_RUNNING:
        return Problem.ROBOT_NOT_RUNNING
    if reading.program_state != PROGRAM_PLAYING:
        return Problem.PROGRAM_STOPPED
    return Problem.NONE
