# SPDX-License-Identifier: MIT
"""Client of the emulator's control API: inject faults, record, read and set the scene."""

from __future__ import annotations

import json
import socket
from typing import Any

from ur_emulator.constants import Ports


class RequestError(ValueError):
    """A request that cannot be carried out; says what is allowed."""


class EmulatorClient:
    """One connection to the control API; a context manager."""

    def __init__(
        self, address: str, timeout_s: float = 10.0, port: int = Ports.control_api
    ) -> None:
        self._socket = socket.create_connection((address, port), timeout_s)
        self._reader = self._socket.makefile("rb")

    def __enter__(self) -> EmulatorClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def request(self, op: str, **arguments: Any) -> dict[str, Any]:
        """Carry out one operation; raises RequestError with the emulator's answer if refused."""
        self._socket.sendall(json.dumps({"op": op, **arguments}).encode() + b"\n")
        line = self._reader.readline()
        if not line:
            raise RequestError(f"the emulator closed the connection during '{op}'")
        answer: dict[str, Any] = json.loads(line)
        if not answer.pop("ok"):
            raise RequestError(f"'{op}' refused: {answer['error']}")
        return answer

    def status(self) -> dict[str, Any]:
        """State of the robot: modes, joints, TCP, last events, lateness of the loop."""
        return self.request("status")

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()
        self._socket.close()
