# SPDX-License-Identifier: MIT
"""Numbers of the UR controller's interfaces: ports, models, modes, safety bits."""

from __future__ import annotations

import enum
from dataclasses import dataclass

REGISTER_COUNT = 48


@dataclass(frozen=True)
class Ports:
    """TCP ports of one emulated robot; the defaults are those of a real controller."""

    rtde: int = 30004
    dashboard: int = 29999
    scripts: tuple[int, ...] = (30001, 30002, 30003)
    gripper: int = 63352
    control_api: int = 29100
    """Fault injection and recorder: a port of the emulator's own, not of the robot's."""

    @classmethod
    def block(cls, base: int) -> Ports:
        """Seven ports in a row: dashboard, three script ports, RTDE, gripper, control API.

        Raises:
            ValueError: the block does not fit into 1024 to 65535.
        """
        if not 1024 <= base <= 65529:
            raise ValueError(
                f"port base is {base}; the seven ports from it on must lie in 1024 to 65535"
            )
        return cls(base + 4, base, (base + 1, base + 2, base + 3), base + 5, base + 6)


class Service(str, enum.Enum):
    """The ports a fault can be injected into."""

    RTDE = "rtde"
    DASHBOARD = "dashboard"
    SCRIPT = "script"
    GRIPPER = "gripper"
    CONTROL_API = "control_api"


@dataclass(frozen=True)
class RobotModel:
    """What a controller reports about itself, and at which rate it works."""

    name: str
    version: tuple[int, int, int, int]
    rate_hz: int
    dashboard_name: str
    serial_number: str

    @property
    def is_e_series(self) -> bool:
        """Whether the controller is an e-Series one: remote control, force sensor, 500 Hz."""
        return self.version[0] >= 5

    @property
    def polyscope_version(self) -> str:
        """Answer to the dashboard command PolyscopeVersion."""
        return "URSoftware " + ".".join(str(part) for part in self.version) + " (Jun 01 2022)"


_CB3, _CB3_HZ = (3, 15, 8, 106339), 125
_E_SERIES, _E_SERIES_HZ = (5, 11, 10, 1010157), 500
# The dashboard of an e-Series controller leaves the "e" away.
MODELS = {
    "ur3": RobotModel("ur3", _CB3, _CB3_HZ, "UR3", "20133300000"),
    "ur5": RobotModel("ur5", _CB3, _CB3_HZ, "UR5", "20133500000"),
    "ur10": RobotModel("ur10", _CB3, _CB3_HZ, "UR10", "20133000000"),
    "ur3e": RobotModel("ur3e", _E_SERIES, _E_SERIES_HZ, "UR3", "20185300000"),
    "ur5e": RobotModel("ur5e", _E_SERIES, _E_SERIES_HZ, "UR5", "20185500000"),
    "ur10e": RobotModel("ur10e", _E_SERIES, _E_SERIES_HZ, "UR10", "20185000000"),
    "ur16e": RobotModel("ur16e", _E_SERIES, _E_SERIES_HZ, "UR16", "20185600000"),
}


class RuntimeState(enum.IntEnum):
    """State of the program, as RTDE reports it."""

    STOPPING = 0
    STOPPED = 1
    PLAYING = 2
    PAUSING = 3
    PAUSED = 4
    RESUMING = 5


class RobotMode(enum.IntEnum):
    """Power state of the arm."""

    BOOTING = 2
    POWER_OFF = 3
    POWER_ON = 4
    IDLE = 5
    RUNNING = 7


class SafetyMode(enum.IntEnum):
    """What the safety system allows."""

    NORMAL = 1
    REDUCED = 2
    PROTECTIVE_STOP = 3
    RECOVERY = 4
    SAFEGUARD_STOP = 5
    SYSTEM_EMERGENCY_STOP = 6
    ROBOT_EMERGENCY_STOP = 7
    VIOLATION = 8
    FAULT = 9


SAFETY_STATUS_BITS = {
    SafetyMode.NORMAL: 0x001,
    SafetyMode.REDUCED: 0x002,
    SafetyMode.PROTECTIVE_STOP: 0x404,
    SafetyMode.ROBOT_EMERGENCY_STOP: 0x4C0,
    SafetyMode.VIOLATION: 0x500,
}

JOINT_MODE_RUNNING = 253
JOINT_MODE_POWER_OFF = 239
