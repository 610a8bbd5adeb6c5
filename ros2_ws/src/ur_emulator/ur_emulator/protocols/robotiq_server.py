# SPDX-License-Identifier: MIT
"""Robotiq gripper (63352): the text protocol of the URCap, over the arm's gripper.

`SET VAR n ...` is answered by `ack`, `GET VAR` by `VAR n`. Positions count 0 (open) to 255
(closed) in requests and 3 to 230 in measurements, as the 2F-85 itself reports.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ur_emulator.arms import GRIPPER_STROKE_M, Gripper
from ur_emulator.lines import LineReader
from ur_emulator.protocols.connections import Connection

OPEN_COUNT, CLOSED_COUNT = 3, 230
_SPEED_M_S = (0.020, 0.150)
_FORCE_N = (20.0, 235.0)
_AT_TARGET_M = 0.0015
# Fingers that moved less than this for this long, short of their target, count as stopped.
_STOPPED_M = 0.0001
_STOPPED_S = 0.5

MOVING, STOPPED_OPENING, STOPPED_CLOSING, AT_TARGET = 0, 1, 2, 3
RESET, ACTIVATING, ACTIVE = 0, 1, 3


@dataclass(frozen=True)
class GripperTiming:
    """How the gripper's register logic takes its time; the defaults take none."""

    activation_s: float
    echo_s: float = 0.0
    """From a request until PRE shows it."""
    motion_s: float = 0.0
    """From a request until the fingers move and OBJ shows it; may be later than the echo."""
    power_s: float = 0.0
    """The gripper gets power this late."""
    speed_scale: float = 1.0


class RobotiqUnit:
    """The gripper's register logic: power, activation, go-to, object detection."""

    def __init__(self, gripper: Gripper, timing: GripperTiming) -> None:
        self._gripper = gripper
        self._timing = timing
        self._power_in_s = timing.power_s
        self._activating_left_s = 0.0
        self.values = {"ACT": 0, "GTO": 0, "POS": 0, "SPE": 255, "FOR": 0, "ATR": 0, "ARD": 0}
        self.values.update(STA=RESET, OBJ=AT_TARGET, FLT=0, PRE=0, LBP=0, MOD=0)
        self._target_m = GRIPPER_STROKE_M
        self._closing = False
        self._stopped_at_m = math.nan
        self._stopped_s = 0.0
        self._echo: tuple[float, int] | None = None
        self._motion: tuple[float, int] | None = None

    def set_power(self, on: bool) -> None:
        """Give or take the gripper's power. An activation that was asked for begins with it."""
        self._power_in_s = 0.0 if on else math.inf
        if not on:
            self.values.update(STA=RESET, OBJ=MOVING)
            self._echo = self._motion = None

    def advance(self, period_s: float) -> None:
        """One controller period: power, activation, pending requests and the object status."""
        if self._power_in_s > 0:
            self._power_in_s -= period_s
            return
        self._begin_activation()
        self._advance_requests(period_s)
        if self.values["STA"] == ACTIVATING:
            self._activating_left_s -= period_s
            half = self._timing.activation_s / 2
            # Activation closes and opens the full stroke: it drops whatever is held.
            goal = 0.0 if self._activating_left_s > half else GRIPPER_STROKE_M
            self._gripper.command(goal, 0.150, 20.0)
            if self._activating_left_s <= 0:
                self.values["STA"] = ACTIVE
        elif self.values["STA"] == ACTIVE and self.values["GTO"] and self._motion is None:
            if self._gripper.stopped_by_contact or self._stopped_short(period_s):
                self.values["OBJ"] = STOPPED_CLOSING if self._closing else STOPPED_OPENING
            elif abs(self._gripper.opening_m - self._target_m) < _AT_TARGET_M:
                self.values["OBJ"] = AT_TARGET
            else:
                self.values["OBJ"] = MOVING

    def _begin_activation(self) -> None:
        if self.values["ACT"] == 1 and self.values["STA"] == RESET:
            self.values["STA"] = ACTIVATING
            self._activating_left_s = self._timing.activation_s

    def _advance_requests(self, period_s: float) -> None:
        if self._motion is not None:
            self._motion = (self._motion[0] - period_s, self._motion[1])
            if self._motion[0] <= 0:
                self._start_motion(self._motion[1])
        if self._echo is not None:
            self._echo = (self._echo[0] - period_s, self._echo[1])
            if self._echo[0] <= 0:
                self.values["PRE"], self._echo = self._echo[1], None

    def _stopped_short(self, period_s: float) -> bool:
        """Whether the fingers have rested short of their target for a while."""
        opening_m = self._gripper.opening_m
        if not abs(opening_m - self._stopped_at_m) < _STOPPED_M:
            self._stopped_at_m, self._stopped_s = opening_m, 0.0
        self._stopped_s += period_s
        return self._stopped_s > _STOPPED_S and abs(opening_m - self._target_m) >= _AT_TARGET_M

    def set(self, name: str, value: int) -> None:
        """Write one variable."""
        self.values[name] = value
        if name != "ACT":
            return
        if value == 0:
            self.values.update(STA=RESET, GTO=0, FLT=0)
            self._echo = self._motion = None
        elif self._power_in_s <= 0:
            self._begin_activation()

    def go(self) -> None:
        """Take over the requested position; PRE and OBJ show it in their own time."""
        if self.values["STA"] != ACTIVE or not self.values["GTO"]:
            return
        position = min(max(self.values["POS"], 0), 255)
        if self._timing.motion_s > 0:
            self._motion = (self._timing.motion_s, position)
        else:
            self._start_motion(position)
        if self._timing.echo_s > 0:
            self._echo = (self._timing.echo_s, position)
        else:
            self.values["PRE"] = position

    def _start_motion(self, position: int) -> None:
        self._motion = None
        closed = min(max((position - OPEN_COUNT) / (CLOSED_COUNT - OPEN_COUNT), 0.0), 1.0)
        self._target_m = GRIPPER_STROKE_M * (1.0 - closed)
        self._closing = self._target_m < self._gripper.opening_m
        self._gripper.command(
            self._target_m,
            _interpolate(_SPEED_M_S, self.values["SPE"]) * self._timing.speed_scale,
            _interpolate(_FORCE_N, self.values["FOR"]),
        )
        self._stopped_s = 0.0
        self.values["OBJ"] = MOVING

    def get(self, name: str) -> int | None:
        """Read one variable; None if there is none of that name."""
        if name == "POS":
            closed = 1.0 - self._gripper.opening_m / GRIPPER_STROKE_M
            return round(OPEN_COUNT + closed * (CLOSED_COUNT - OPEN_COUNT))
        return self.values.get(name)


class RobotiqSession:
    """One client of the gripper."""

    def __init__(self, connection: Connection, unit: RobotiqUnit) -> None:
        self._connection = connection
        self._unit = unit
        self._reader = LineReader()

    def received(self, data: bytes) -> None:
        """Answer all complete lines of one read in one piece."""
        answers = [
            self._answer(line.decode("ascii", "replace").split())
            for line in self._reader.feed(data)
            if line
        ]
        if answers:
            # `ack` stands alone and without a newline: clients compare the whole read with it.
            self._connection.send(
                "\n".join(answers).encode() + (b"" if "ack" in answers else b"\n")
            )

    def closed(self) -> None:
        """Nothing to release."""

    def _answer(self, words: list[str]) -> str:
        if len(words) >= 2 and words[0] == "GET":
            value = self._unit.get(words[1])
            return f"{words[1][:20]} {'?' if value is None else value}"
        if len(words) >= 3 and words[0] == "SET" and len(words) % 2 == 1:
            pairs = dict(zip(words[1::2], words[2::2], strict=True))
            if all(name in self._unit.values and _is_number(v) for name, v in pairs.items()):
                for name, number in pairs.items():
                    self._unit.set(name, int(number))
                if "GTO" in pairs or "POS" in pairs:
                    self._unit.go()
                return "ack"
        return "nack"


def _is_number(text: str) -> bool:
    """A register holds one byte: more than nine digits have no meaning, and no end."""
    return len(text) <= 9 and text.isascii() and text.isdigit()


def _interpolate(ends: tuple[float, float], count: int) -> float:
    return ends[0] + (ends[1] - ends[0]) * min(max(count, 0), 255) / 255
