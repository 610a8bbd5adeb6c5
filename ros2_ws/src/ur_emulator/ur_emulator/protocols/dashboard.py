# SPDX-License-Identifier: MIT
"""Dashboard server (29999): one line of text in, one line out, ended by a bare newline."""

from __future__ import annotations

import time
from collections.abc import Callable

from ur_emulator.constants import RuntimeState, SafetyMode
from ur_emulator.controller.controller import Controller
from ur_emulator.lines import LineReader
from ur_emulator.protocols.connections import Connection

GREETING = "Connected: Universal Robots Dashboard Server"

_SAFETY_NAMES = {
    SafetyMode.NORMAL: "NORMAL",
    SafetyMode.REDUCED: "REDUCED",
    SafetyMode.PROTECTIVE_STOP: "PROTECTIVE_STOP",
    SafetyMode.ROBOT_EMERGENCY_STOP: "ROBOT_EMERGENCY_STOP",
    SafetyMode.VIOLATION: "VIOLATION",
}


# Commands that an e-Series controller takes in remote control only.
_REMOTE_ONLY = frozenset(
    [
        *("play", "stop", "pause", "unlock protective stop", "power on", "power off"),
        *("brake release", "restart safety", "shutdown"),
    ]
)


class DashboardSession:
    """One dashboard client."""

    def __init__(self, connection: Connection, controller: Controller) -> None:
        self._connection = connection
        self._controller = controller
        self._reader = LineReader()
        self._answers = self._answer_table()
        self._send(GREETING)

    def received(self, data: bytes) -> None:
        """Answer every complete line."""
        for line in self._reader.feed(data):
            command = line.decode("utf-8", "replace").strip()
            if command:
                self._send(self._answer(command))
            if command == "quit":
                self._connection.close()
                return

    def closed(self) -> None:
        """Nothing to release."""

    def _send(self, line: str) -> None:
        self._connection.send(line.encode() + b"\n")

    def _answer(self, command: str) -> str:
        if not self._controller.remote_control and command in _REMOTE_ONLY:
            return f"Command not allowed: '{command}' needs remote control"
        exact = self._answers.get(command)
        if exact is not None:
            return exact()
        word = command.split(" ", 1)[0]
        if word == "load":
            return f"File not found: {command[5:]}"
        fixed = {
            "popup": "showing popup",
            "close": "closing popup",
            "addToLog": "Added log message",
            "setUserRole": "Setting user role",
        }
        return fixed.get(word, f"could not understand: '{command}'")

    def _answer_table(self) -> dict[str, Callable[[], str]]:
        robot = self._controller
        return {
            "play": lambda: "Starting program" if robot.resume_program() else _failed("play"),
            "stop": self._stop,
            "pause": lambda: "Pausing program" if robot.pause_program() else _failed("pause"),
            "unlock protective stop": lambda: robot.safety.unlock(time.monotonic()),
            "power on": lambda: robot.safety.power_on(time.monotonic()),
            "power off": self._power_off,
            "brake release": lambda: robot.safety.release_brakes(time.monotonic()),
            "running": lambda: f"Program running: {str(self._playing).lower()}",
            "isProgramSaved": lambda: "True " + robot.program_name,
            "PolyscopeVersion": lambda: robot.model.polyscope_version,
            "get serial number": lambda: robot.model.serial_number,
            "get robot model": lambda: robot.model.dashboard_name,
            "is in remote control": lambda: str(robot.remote_control).lower(),
            "programState": self._program_state,
            "robotmode": lambda: f"Robotmode: {robot.safety.robot_mode.name}",
            "safetymode": lambda: f"Safetymode: {_SAFETY_NAMES[robot.safety.safety_mode]}",
            "safetystatus": lambda: f"Safetystatus: {_SAFETY_NAMES[robot.safety.safety_mode]}",
            "get loaded program": lambda: "No program loaded",
            "quit": lambda: "Disconnected",
            "shutdown": lambda: "Shutting down",
            "restart safety": lambda: robot.safety.restart(),
        }

    @property
    def _playing(self) -> bool:
        return self._controller.runtime_state is RuntimeState.PLAYING

    def _stop(self) -> str:
        self._controller.stop_program()
        return "Stopped"

    def _power_off(self) -> str:
        self._controller.stop_program()
        return self._controller.safety.power_off(time.monotonic())

    def _program_state(self) -> str:
        state = self._controller.runtime_state.name
        name = self._controller.program_name or "<unnamed>"
        return f"{state} {name}"


def _failed(command: str) -> str:
    return f"Failed to execute: {command}"
