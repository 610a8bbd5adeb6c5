# SPDX-License-Identifier: MIT
"""Specification of the gripper's object status: moving, there, or stopped on the way."""

from __future__ import annotations

import pytest

from ur_emulator.protocols.robotiq_server import (
    ACTIVE,
    AT_TARGET,
    CLOSED_COUNT,
    MOVING,
    OPEN_COUNT,
    RESET,
    STOPPED_CLOSING,
    GripperTiming,
    RobotiqUnit,
)

PERIOD_S = 0.008


class Fingers:
    """Go at once to where they are sent, or to where something stops them, and never say so."""

    def __init__(self, stopped_at_m: float = 0.0) -> None:
        self.opening_m = 0.085
        self.stopped_by_contact = False
        self._stopped_at_m = stopped_at_m

    def command(self, opening_m: float, speed_m_s: float, force_n: float) -> None:
        self.opening_m = max(opening_m, self._stopped_at_m)


def closing_unit(fingers: Fingers) -> RobotiqUnit:
    """An activated gripper that has just been told to close."""
    unit = RobotiqUnit(fingers, GripperTiming(activation_s=PERIOD_S))
    unit.set("ACT", 1)
    unit.advance(2 * PERIOD_S)
    unit.set("POS", 255)
    unit.set("GTO", 1)
    unit.go()
    return unit


def status_after(unit: RobotiqUnit, duration_s: float) -> int | None:
    for _ in range(round(duration_s / PERIOD_S)):
        unit.advance(PERIOD_S)
    return unit.get("OBJ")


@pytest.mark.parametrize("short_m", [0.002, 0.03])
def test_fingers_that_rest_short_of_their_target_count_as_stopped_after_a_while(short_m):
    unit = closing_unit(Fingers(stopped_at_m=short_m))
    assert status_after(unit, 0.3) == MOVING
    assert status_after(unit, 0.4) == STOPPED_CLOSING


def test_fingers_at_their_target_are_there_and_stay_so():
    unit = closing_unit(Fingers())
    assert status_after(unit, 0.1) == AT_TARGET
    assert status_after(unit, 2.0) == AT_TARGET


def test_a_new_request_is_a_new_motion():
    fingers = Fingers(stopped_at_m=0.03)
    unit = closing_unit(fingers)
    assert status_after(unit, 1.0) == STOPPED_CLOSING
    unit.go()
    assert status_after(unit, 0.3) == MOVING


def strict_unit(echo_s: float, motion_s: float) -> RobotiqUnit:
    """An activated gripper that lies open and shows its requests late."""
    unit = RobotiqUnit(Fingers(), GripperTiming(PERIOD_S, echo_s=echo_s, motion_s=motion_s))
    unit.set("ACT", 1)
    unit.advance(2 * PERIOD_S)
    unit.set("GTO", 1)
    for _ in range(20):
        unit.advance(PERIOD_S)
    assert unit.get("OBJ") == AT_TARGET
    unit.set("POS", 255)
    unit.go()
    return unit


def first_cycle(unit: RobotiqUnit, name: str, value: int) -> int:
    for cycle in range(100):
        if unit.get(name) == value:
            return cycle
        unit.advance(PERIOD_S)
    raise AssertionError(f"{name} never became {value}")


def test_the_old_object_status_can_outlast_the_echo_of_a_new_request() -> None:
    """The trap: PRE shows the request while OBJ still says that the last one has been reached."""
    unit = strict_unit(echo_s=0.016, motion_s=0.048)
    assert unit.get("PRE") == 0
    assert first_cycle(unit, "PRE", 255) == 2
    assert unit.get("OBJ") == AT_TARGET
    assert unit.get("POS") == OPEN_COUNT


def test_motion_can_also_show_before_the_echo() -> None:
    unit = strict_unit(echo_s=0.048, motion_s=0.016)
    # These fingers are there at once; they have moved when the request is not echoed yet.
    for _ in range(3):
        unit.advance(PERIOD_S)
    assert unit.get("POS") == CLOSED_COUNT
    assert unit.get("PRE") == 0
    for _ in range(4):
        unit.advance(PERIOD_S)
    assert unit.get("PRE") == 255


def test_a_gripper_that_gets_its_power_late_activates_then() -> None:
    unit = RobotiqUnit(Fingers(), GripperTiming(activation_s=0.1, power_s=0.4))
    unit.set("ACT", 1)
    for _ in range(48):
        unit.advance(PERIOD_S)
    assert unit.get("STA") == RESET
    for _ in range(20):
        unit.advance(PERIOD_S)
    assert unit.get("STA") == ACTIVE


def test_a_gripper_without_power_forgets_its_activation() -> None:
    unit = closing_unit(Fingers())
    unit.set_power(False)
    assert unit.get("STA") == RESET
    unit.set_power(True)
    for _ in range(5):
        unit.advance(PERIOD_S)
    assert unit.get("STA") == ACTIVE
