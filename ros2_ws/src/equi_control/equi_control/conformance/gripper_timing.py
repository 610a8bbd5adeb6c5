# SPDX-License-Identifier: MIT
"""Timing of a Robotiq gripper over its text port, with the order in which PRE and OBJ answer."""

from __future__ import annotations

import socket
import time
from typing import Any

import numpy as np

from equi_control.conformance.operator import Aborted
from equi_control.robotiq.client import PORT

_ACTIVE = 3
_MOVING = 0
_ACTIVATION_LIMIT_S = 20.0
_MOVE_LIMIT_S = 8.0
_NOTICE_LIMIT_S = 2.0
_STROKES = 2
_OPEN, _CLOSED = 0, 255


def measure_gripper(host: str) -> dict[str, Any]:
    """Activate, close and open the gripper, polling as fast as it answers.

    Raises:
        Aborted: no gripper, or it does not do what it is told.
    """
    with _Port(host) as port:
        activation_s = _activate(port)
        closes, opens = [], []
        for _ in range(_STROKES):
            closes.append(_move(port, _CLOSED))
            opens.append(_move(port, _OPEN))
    strokes = [*closes, *opens]
    return {
        "activation_s": activation_s,
        "close_s": float(np.median([total for total, _, _ in closes])),
        "open_s": float(np.median([total for total, _, _ in opens])),
        "echo_delay_s": float(np.median([echo for _, echo, _ in strokes])),
        "motion_delay_s": float(np.median([motion for _, _, motion in strokes])),
    }


def _activate(port: _Port) -> float:
    port.set("ACT 0")
    port.set("ATR 0")
    port.wait("STA", 0, _ACTIVATION_LIMIT_S)
    begun_s = time.monotonic()
    port.set("ACT 1")
    port.wait("STA", _ACTIVE, _ACTIVATION_LIMIT_S)
    activated_s = time.monotonic() - begun_s
    # Activation ends open; go there by request, so that the first stroke is a whole one.
    _settle(port, _OPEN)
    return activated_s


def _settle(port: _Port, position: int) -> None:
    port.set(f"POS {position} SPE 255 FOR 0 GTO 1")
    deadline_s = time.monotonic() + _MOVE_LIMIT_S
    quiet_since_s, last = time.monotonic(), port.get("POS")
    while time.monotonic() - quiet_since_s < 0.4:
        now = port.get("POS")
        if now != last:
            quiet_since_s, last = time.monotonic(), now
        if time.monotonic() > deadline_s:
            raise Aborted("the gripper does not come to rest")


def _move(port: _Port, position: int) -> tuple[float, float, float]:
    """One stroke: total time, and when PRE and OBJ first showed it [s]."""
    begun_s = time.monotonic()
    port.set(f"POS {position} SPE 255 FOR 0 GTO 1")
    acknowledged_s = time.monotonic()
    echo_s: float | None = None
    motion_s: float | None = None
    while True:
        if echo_s is None and port.get("PRE") == position:
            echo_s = time.monotonic() - acknowledged_s
        status = port.get("OBJ")
        now_s = time.monotonic()
        if status == _MOVING:
            motion_s = now_s - acknowledged_s if motion_s is None else motion_s
        elif motion_s is not None and echo_s is not None:
            break
        if motion_s is None and now_s - begun_s > _NOTICE_LIMIT_S:
            raise Aborted(
                f"the gripper never showed that it moves to {position} (OBJ {status}); is it "
                "jammed, or has it no power?"
            )
        if now_s - begun_s > _MOVE_LIMIT_S:
            raise Aborted(f"the gripper did not finish its stroke to {position}")
    total_s = now_s - begun_s
    _settle(port, position)
    return total_s, echo_s, motion_s


class _Port:
    """Requests and answers, one TCP read each."""

    def __init__(self, host: str) -> None:
        try:
            self._socket = socket.create_connection((host, PORT), 2.0)
        except OSError as error:
            raise Aborted(
                f"no gripper at {host}:{PORT} ({error}); --no-gripper leaves it out"
            ) from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> _Port:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def set(self, values: str) -> None:
        answer = self._ask(f"SET {values}")
        if answer != "ack":
            raise Aborted(f"the gripper answered '{answer}' to 'SET {values}'")

    def get(self, name: str) -> int:
        words = self._ask(f"GET {name}").split()
        if len(words) != 2 or words[0] != name or not words[1].isdigit():
            raise Aborted(f"the gripper answered '{' '.join(words)}' to 'GET {name}'")
        return int(words[1])

    def wait(self, name: str, value: int, limit_s: float) -> None:
        deadline_s = time.monotonic() + limit_s
        while (found := self.get(name)) != value:
            if time.monotonic() > deadline_s:
                raise Aborted(f"the gripper's {name} is {found} and did not become {value}")

    def _ask(self, request: str) -> str:
        try:
            self._socket.sendall(request.encode() + b"\n")
            answer = self._socket.recv(1024)
        except OSError as error:
            raise Aborted(f"the gripper did not answer '{request}' ({error})") from error
        if not answer:
            raise Aborted(f"the gripper closed its port at '{request}'")
        return answer.decode("ascii", "replace").strip()
