# SPDX-License-Identifier: MIT
"""A bare RTDE session (protocol 2) that only asks: version, outputs, who holds the input registers.

ur_rtde needs a program on the controller for some of this, and hides the rest. Nothing is written
here: inputs are claimed to see whether they are free, never set, and closing gives them back.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from equi_control.rtde.config import LinkLostError

PORT = 30004
_HEADER = struct.Struct(">HB")
_PROTOCOL, _VERSION, _OUTPUTS, _INPUTS, _START, _DATA = b"VvOISU"
_STRUCTS = {
    "DOUBLE": "d",
    "INT32": "i",
    "UINT32": "I",
    "UINT64": "Q",
    "UINT8": "B",
    "BOOL": "?",
    "VECTOR3D": "3d",
    "VECTOR6D": "6d",
    "VECTOR6INT32": "6i",
    "VECTOR6UINT32": "6I",
}
_MISSING = "NOT_FOUND"
_TAKEN = "IN_USE"


@dataclass(frozen=True)
class RtdeSample:
    """One data package."""

    arrived_s: float
    """Monotonic clock of this computer [s]."""
    values: dict[str, Any]
    """By RTDE name; vectors as tuples."""


class RtdeSession:
    """One connection to one controller; a context manager."""

    def __init__(self, host: str, port: int = PORT, timeout_s: float = 2.0) -> None:
        self._address, self._timeout_s = (host, port), timeout_s
        self._socket: socket.socket | None = None
        self._buffer = b""
        self._known: list[tuple[str, str]] = []
        self._layout = struct.Struct(">B")

    def __enter__(self) -> RtdeSession:
        try:
            self._socket = socket.create_connection(self._address, self._timeout_s)
        except OSError as error:
            raise LinkLostError(
                f"no RTDE at {self._address[0]}:{self._address[1]} ({error}); is the address right "
                "and the robot on?"
            ) from error
        if self._ask(_PROTOCOL, struct.pack(">H", 2)) != b"\x01":
            raise LinkLostError(f"{self._address[0]} refuses RTDE protocol 2; update PolyScope")
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._buffer = None, b""

    def controller_version(self) -> tuple[int, int, int, int]:
        """Version of the controller's software: major, minor, bug fix, build."""
        major, minor, fix, build = struct.unpack(">4I", self._ask(_VERSION))
        return major, minor, fix, build

    def start(self, names: Sequence[str]) -> None:
        """Let the controller send the named outputs at its full rate.

        Args:
            names: RTDE outputs. Those that this controller does not have are left out.

        Raises:
            LinkLostError: the controller falls silent, or has none of them.
        """
        names = list(names)
        types = self._output_types(names)
        self._known = [
            (name, kind) for name, kind in zip(names, types, strict=True) if kind in _STRUCTS
        ]
        if not self._known:
            raise LinkLostError(f"{self._address[0]} has none of the outputs {', '.join(names)}")
        if len(self._known) < len(names):
            self._output_types([name for name, _ in self._known])
        self._layout = struct.Struct(">B" + "".join(_STRUCTS[kind] for _, kind in self._known))
        if self._ask(_START) != b"\x01":
            raise LinkLostError(f"{self._address[0]} does not start to send RTDE data")

    def next_sample(self) -> RtdeSample:
        """Wait for the next data package.

        Raises:
            LinkLostError: none came in time.
        """
        while True:
            kind, payload = self._package()
            if kind == _DATA and len(payload) == self._layout.size:
                return RtdeSample(time.monotonic(), _named(self._known, self._layout, payload))

    def read(self, names: Sequence[str], duration_s: float) -> list[RtdeSample]:
        """`start`, then every package that comes within some time [s]."""
        self.start(names)
        samples: list[RtdeSample] = []
        end_s = time.monotonic() + duration_s
        while time.monotonic() < end_s:
            samples.append(self.next_sample())
        return samples

    def taken_inputs(self, names: Sequence[str]) -> list[str]:
        """Inputs of these that another client holds, or that do not exist."""
        names = list(names)
        types = self._ask(_INPUTS, ",".join(names).encode())[1:].decode("ascii", "replace")
        found = zip(names, types.split(","), strict=False)
        return [name for name, kind in found if kind in (_TAKEN, _MISSING)]

    def _output_types(self, names: Sequence[str]) -> list[str]:
        request = struct.pack(">d", 500.0) + ",".join(names).encode()
        types = self._ask(_OUTPUTS, request)[1:].decode("ascii", "replace").split(",")
        return (types + [_MISSING] * len(names))[: len(names)]

    def _ask(self, kind: int, payload: bytes = b"") -> bytes:
        connection = self._connected()
        try:
            connection.sendall(_HEADER.pack(_HEADER.size + len(payload), kind) + payload)
        except OSError as error:
            raise LinkLostError(f"{self._address[0]}: RTDE broke off ({error})") from error
        while True:
            answered, answer = self._package()
            if answered == kind:
                return answer

    def _package(self) -> tuple[int, bytes]:
        connection = self._connected()
        deadline_s = time.monotonic() + self._timeout_s
        while True:
            if len(self._buffer) >= _HEADER.size:
                length, kind = _HEADER.unpack_from(self._buffer)
                if length < _HEADER.size:
                    raise LinkLostError(f"{self._address[0]} sends no RTDE (length {length})")
                if len(self._buffer) >= length:
                    payload = self._buffer[_HEADER.size : length]
                    self._buffer = self._buffer[length:]
                    return kind, payload
            connection.settimeout(max(deadline_s - time.monotonic(), 0.01))
            try:
                data = connection.recv(65536)
            except OSError as error:
                raise LinkLostError(
                    f"{self._address[0]}: RTDE was silent for {self._timeout_s:g} s"
                ) from error
            if not data:
                raise LinkLostError(f"{self._address[0]} closed the RTDE connection")
            self._buffer += data

    def _connected(self) -> socket.socket:
        if self._socket is None:
            raise LinkLostError("the RTDE session is closed; open a new one")
        return self._socket


def _named(
    known: Sequence[tuple[str, str]], layout: struct.Struct, payload: bytes
) -> dict[str, Any]:
    flat = list(layout.unpack(payload))[1:]
    values: dict[str, Any] = {}
    at = 0
    for name, kind in known:
        count = int(_STRUCTS[kind][:-1] or 1)
        values[name] = flat[at] if count == 1 else tuple(flat[at : at + count])
        at += count
    return values
