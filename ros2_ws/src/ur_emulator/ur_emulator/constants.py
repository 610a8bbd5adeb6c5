"""Numbers of the UR controller's interfaces: ports, versions, modes, safety bits."""

from __future__ import annotations

import enum
from dataclasses import dataclass

RTDE_PORT = 30004
DASHBOARD_PORT = 29999
SCRIPT_PORTS = (30001, 30002, 30003)
GRIPPER_PORT = 63352
CONTROL_API_PORT = 29100
"""Ours, not the robot's: fault injection and the recorder."""

REGISTER_COUNT = 48


class Service(str, enum.Enum):
    """The ports a fault can be injected into."""

    RTDE = "rtde"
    DASHBOARD = "dashboard"
    SCRIPT = "script"
    GRIPPER = "gripper"
    CONTROL_API = "control_api"


@dataclass(frozen=True)
class Series:
    """What a controller generation reports and at which rate it works."""

    name: str
    version: tuple[int, int, int, int]
    rate_hz: int
    robot_model: str
    serial_number: str

    @property
    def polyscope_version(self) -> str:
        """Answer to the dashboard's question for the version."""
        return "URSoftware " + ".".join(str(part) for part in self.version) + " (Jun 01 2022)"


SERIES = {
    "cb3": Series("cb3", (3, 15, 8, 106339), 125, "UR5", "20133500000"),
    "e-series": Series("e-series", (5, 11, 10, 1010157), 500, "UR5", "20185500000"),
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
    SafetyMode.PROTECTIVE_STOP: 0x404,
    SafetyMode.ROBOT_EMERGENCY_STOP: 0x4C0,
}

JOINT_MODE_RUNNING = 253
JOINT_MODE_POWER_OFF = 239
