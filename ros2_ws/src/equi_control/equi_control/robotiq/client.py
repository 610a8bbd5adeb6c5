# SPDX-License-Identifier: MIT
"""The 2F-85 over the Robotiq URCap's text port: activation, moves, object detection, time-outs.

One request, one answer, one TCP read each. Every wait has an end; a gripper that does not answer
raises `GripperError` with what to check, and the object can be asked again after `connect`.
"""

from __future__ import annotations

import enum
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

PORT = 63352
OPEN_COUNT, CLOSED_COUNT = 3, 230
"""Measured positions of the fully open and fully closed gripper (vary by a count or two)."""
_ACTIVE = 3
_POLL_S = 0.01
# Fingers this near to the requested count are there: units differ, and the drive has some play.
_AT_TARGET_COUNTS = 6


class GripperError(RuntimeError):
    """The gripper is unreachable, not active, or reports a fault; says what to do."""


class ObjectStatus(enum.IntEnum):
    """What the gripper knows about what is between its fingers."""

    MOVING = 0
    STOPPED_OPENING = 1
    STOPPED_CLOSING = 2
    AT_TARGET = 3


@dataclass(frozen=True)
class GripperStatus:
    """One reading of the gripper."""

    active: bool
    opening: float
    """0 closed .. 1 open."""
    object_status: ObjectStatus
    fault: int
    position: int = OPEN_COUNT
    """POS: where the fingers are."""
    requested: int = OPEN_COUNT
    """PRE: the echo of the newest request that the gripper has taken."""

    def ended(self, request: int | None) -> bool:
        """Whether the motion to a requested count has ended, by OBJ, PRE and POS together.

        The three are updated one after the other, in either order. Right after a request OBJ may
        still speak of the motion before: "at the target" is believed only there, "stopped while
        opening" only of a request to open, "while closing" only of one to close.
        """
        if request is None:
            return not self.moving
        if self.requested != request or self.moving:
            return False
        reachable = min(max(request, OPEN_COUNT), CLOSED_COUNT)
        if self.object_status is ObjectStatus.AT_TARGET:
            return abs(self.position - reachable) <= _AT_TARGET_COUNTS
        if self.object_status is ObjectStatus.STOPPED_CLOSING:
            return self.position <= reachable + _AT_TARGET_COUNTS
        return self.position >= reachable - _AT_TARGET_COUNTS

    @property
    def holding(self) -> bool:
        """Whether closing was stopped by an object."""
        return self.active and self.object_status is ObjectStatus.STOPPED_CLOSING

    @property
    def moving(self) -> bool:
        """Whether the fingers are under way."""
        return self.object_status is ObjectStatus.MOVING


def count_of(closedness: float) -> int:
    """The count to request for a closedness, 0 open .. 1 closed."""
    if not 0.0 <= closedness <= 1.0:
        raise GripperError(f"closedness is {closedness}; it must lie between 0 and 1")
    # The ends go to the stops, so that unit-to-unit differences leave no gap.
    if closedness in (0.0, 1.0):
        return 255 if closedness else 0
    return round(OPEN_COUNT + closedness * (CLOSED_COUNT - OPEN_COUNT))


class RobotiqClient:
    """A connection to one gripper."""

    def __init__(self, host: str, port: int = PORT, timeout_s: float = 1.0) -> None:
        self._address = (host, port)
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        self._requested: int | None = None

    def __enter__(self) -> RobotiqClient:
        self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect(self) -> None:
        """Open the port; moves nothing."""
        self.close()
        try:
            self._socket = socket.create_connection(self._address, self._timeout_s)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise GripperError(
                f"gripper at {self._address[0]}:{self._address[1]} cannot be reached ({error}); "
                "is the Robotiq URCap installed and the gripper powered?"
            ) from error

    def close(self) -> None:
        """Close the port."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def status(self) -> GripperStatus:
        """Ask for everything the driver needs."""
        object_status = self._object_status()
        position = self._get("POS")
        share = (position - OPEN_COUNT) / (CLOSED_COUNT - OPEN_COUNT)
        return GripperStatus(
            active=self._get("STA") == _ACTIVE,
            opening=min(max(1.0 - share, 0.0), 1.0),
            object_status=object_status,
            fault=self._get("FLT"),
            position=position,
            requested=self._get("PRE"),
        )

    def activate(
        self, timeout_s: float = 10.0, is_wanted: Callable[[], bool] = lambda: True
    ) -> None:
        """Activate if need be. The fingers then run through their whole stroke.

        A gripper that is not active in time, or while it is still wanted, is told not to any more.
        """
        if self._get("STA") == _ACTIVE:
            return
        deadline_s = time.monotonic() + timeout_s
        self._set(ACT=0)
        self._set(ATR=0)
        self._wait_for("STA", 0, deadline_s)
        try:
            self._set(ACT=1)
            self._wait_for("STA", _ACTIVE, deadline_s, is_wanted)
        except GripperError:
            self._set(ACT=0)
            raise

    def withdraw_activation(self) -> None:
        """Tell a gripper that is not active not to become so."""
        if self._get("STA") != _ACTIVE:
            self._set(ACT=0)

    def move(self, closedness: float, speed: int = 255, force: int = 0) -> None:
        """Start to move to a closedness, 0 open .. 1 closed; returns when the request is taken.

        Args:
            closedness: requested closedness.
            speed: 0 (20 mm/s) to 255 (150 mm/s).
            force: 0 (20 N) to 255 (235 N).
        """
        count = count_of(closedness)
        self._set(POS=count, SPE=speed, FOR=force, GTO=1)
        self._requested = count
        self._wait_for("PRE", count, time.monotonic() + self._timeout_s)

    def wait_until_stopped(self, timeout_s: float = 5.0) -> GripperStatus:
        """Wait until the fingers have stopped: at the target or at an object."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            status = self.status()
            if status.ended(self._requested):
                return status
            if time.monotonic() > deadline_s:
                raise GripperError(f"gripper still moving after {timeout_s} s; is it jammed?")
            time.sleep(_POLL_S)

    def _object_status(self) -> ObjectStatus:
        value = self._get("OBJ")
        try:
            return ObjectStatus(value)
        except ValueError as error:
            raise GripperError(
                f"gripper reports OBJ {value}, which is none of 0 to 3; is this a 2F-85?"
            ) from error

    def _wait_for(
        self,
        name: str,
        value: int,
        deadline_s: float,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        while (found := self._get(name)) != value:
            if time.monotonic() > deadline_s or not is_wanted():
                raise GripperError(
                    f"gripper {name} is {found} and never became {value}; "
                    "look at its light: blue is active, red is a fault"
                )
            time.sleep(_POLL_S)

    def _set(self, **values: int) -> None:
        words = " ".join(f"{name} {value}" for name, value in values.items())
        answer = self._ask(f"SET {words}")
        if answer != "ack":
            raise GripperError(f"gripper answered '{answer}' to 'SET {words}' instead of 'ack'")

    def _get(self, name: str) -> int:
        answer = self._ask(f"GET {name}").split()
        try:
            found, value = answer
            if found == name:
                return int(value)
        except ValueError:
            pass  # not two words, or no number: the sentence below quotes it
        raise GripperError(f"gripper answered '{' '.join(answer)}' to 'GET {name}'")

    def _ask(self, request: str) -> str:
        if self._socket is None:
            raise GripperError("not connected to the gripper; call connect first")
        try:
            self._socket.sendall(request.encode() + b"\n")
            answer = self._socket.recv(1024)
        except OSError as error:
            self.close()
            raise GripperError(f"gripper does not answer '{request}' ({error})") from error
        if not answer:
            self.close()
            raise GripperError(f"gripper closed the connection at '{request}'")
        return answer.decode("ascii", "replace").strip()
