# SPDX-License-Identifier: MIT
"""Specification of setting down: what was grasped at some height is let go at that height."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from equi_control.driver.config import DriverConfig
from equi_control.driver.set_down import SetDown
from equi_control.robotiq.worker import GripperReport
from equi_control.rtde.config import LinkConfig
from equi_control.servo.config import ServoConfig
from equi_control.servo.shared_state import ServoState
from equi_core.geometry import top_down_pose

CONFIG = DriverConfig(ServoConfig(LinkConfig(host="127.0.0.9")))
NOW_S = 50.0
GRASPED_AT_M, CARRIED_AT_M = 0.031, 0.2


class StandInArm:
    """Notes where it is sent; arrives when it is let."""

    def __init__(self) -> None:
        self.sent: list[list[float]] = []
        self.there = False

    def set_target(self, target) -> None:
        self.sent.append([float(value) for value in np.asarray(target)])
        self.there = False

    def arrived(self, servo_state) -> bool:
        return self.there

    def resting(self, servo_state) -> bool:
        return self.there


class StandInGripper:
    """Notes whether it was told to open; reports what it is set to."""

    def __init__(self) -> None:
        self.opened = False
        self.closedness = 1.0
        self.report = GripperReport(connected=True, settled=True, holding=False)

    def open(self) -> None:
        self.opened = True
        self.report = GripperReport(connected=True, settled=False, holding=True)


def at(height_m: float) -> ServoState:
    return ServoState(
        task_from_tcp=top_down_pose((0.45, -0.1, height_m), 0.6),
        commanded=np.array([0.45, -0.1, height_m, 0.6]),
    )


def carrying() -> tuple[Any, Any, SetDown]:
    """An object was grasped low, and is held high."""
    arm: Any = StandInArm()
    gripper: Any = StandInGripper()
    set_down = SetDown(arm, gripper, CONFIG)
    set_down.see(at(0.1))
    gripper.report = GripperReport(connected=True, settled=True, holding=True)
    set_down.see(at(GRASPED_AT_M))
    set_down.see(at(CARRIED_AT_M))
    set_down.start(at(CARRIED_AT_M), NOW_S)
    return arm, gripper, set_down


def test_it_is_lowered_to_where_it_was_grasped_then_let_go_then_the_arm_rises() -> None:
    arm, gripper, set_down = carrying()
    assert arm.sent == [pytest.approx([0.45, -0.1, GRASPED_AT_M + 0.002, 0.6])]
    assert not set_down.advance(at(0.1), NOW_S)
    assert not gripper.opened, "never on the way down"

    arm.there = True
    assert not set_down.advance(at(GRASPED_AT_M), NOW_S)
    assert gripper.opened
    assert len(arm.sent) == 1, "the arm waits for the fingers"
    assert not set_down.advance(at(GRASPED_AT_M), NOW_S)

    gripper.report = GripperReport(connected=True, settled=True, holding=False)
    assert not set_down.advance(at(GRASPED_AT_M), NOW_S)
    assert arm.sent[-1] == pytest.approx([0.45, -0.1, CARRIED_AT_M, 0.6])
    arm.there = True
    assert set_down.advance(at(CARRIED_AT_M), NOW_S)
    assert (set_down.active, set_down.failed) == (False, "")


def held_since_before() -> tuple[Any, Any, SetDown]:
    """A driver that starts while the gripper holds something high up."""
    arm: Any = StandInArm()
    gripper: Any = StandInGripper()
    gripper.closedness = 0.0  # this driver has asked for nothing yet
    set_down = SetDown(arm, gripper, CONFIG)
    gripper.report = GripperReport(connected=False)
    set_down.see(at(CARRIED_AT_M))
    gripper.report = GripperReport(connected=True, settled=True, holding=True)
    set_down.see(at(CARRIED_AT_M))
    return arm, gripper, set_down


def test_what_was_never_seen_to_be_grasped_is_not_let_go_high_above_the_table() -> None:
    """On the old code the height at the start counted as that of the grasp."""
    _, _, set_down = held_since_before()
    words = set_down.refusal(at(CARRIED_AT_M))
    assert "0.200 m above the table" in words
    assert "at most 0.05 m" in words
    assert "open_gripper again" in words
    assert set_down.refusal(at(float("nan")))


def test_what_was_never_seen_to_be_grasped_is_let_go_where_it_is_just_above_the_table() -> None:
    arm, _, set_down = held_since_before()
    assert set_down.refusal(at(0.04)) == ""
    set_down.start(at(0.04), NOW_S)
    assert arm.sent == [pytest.approx([0.45, -0.1, 0.04, 0.6])]


def test_a_grasp_that_was_seen_may_be_set_down_from_any_height() -> None:
    _, _, set_down = carrying()
    assert set_down.refusal(at(CARRIED_AT_M)) == ""


@pytest.mark.parametrize(
    "between",
    [
        GripperReport(connected=False),
        GripperReport(connected=True, settled=False, holding=False),
    ],
)
def test_fingers_that_squeeze_on_or_are_not_heard_for_a_moment_are_no_new_grasp(
    between: GripperReport,
) -> None:
    """On the old code the object was then let go where it was carried."""
    arm, gripper, set_down = carrying()
    set_down.cancel()
    for report in (between, GripperReport(connected=True, settled=True, holding=True)):
        gripper.report = report
        set_down.see(at(CARRIED_AT_M))
    set_down.start(at(CARRIED_AT_M), NOW_S)
    assert arm.sent[-1][2] == pytest.approx(GRASPED_AT_M + 0.002)


def test_the_height_is_that_of_the_last_grasp() -> None:
    arm: Any = StandInArm()
    gripper: Any = StandInGripper()
    set_down = SetDown(arm, gripper, CONFIG)
    for height_m in (0.03, 0.07):
        gripper.report = GripperReport(connected=True, settled=True, holding=True)
        set_down.see(at(height_m))
        gripper.report = GripperReport(connected=True, settled=True, holding=False)
        set_down.see(at(0.2))
    set_down.start(at(0.2), NOW_S)
    assert arm.sent[-1][2] == pytest.approx(0.072)


def test_an_arm_that_does_not_arrive_lets_go_of_nothing() -> None:
    """On the old code it waited for ever."""
    _, gripper, set_down = carrying()
    assert not set_down.advance(at(0.1), NOW_S + CONFIG.step_timeout_s - 0.1)
    assert set_down.advance(at(0.1), NOW_S + CONFIG.step_timeout_s + 0.1)
    assert set_down.failed.startswith("67.0 mm from the target after 30 s")
    assert not gripper.opened
    assert not set_down.active


def test_fingers_that_do_not_open_are_named() -> None:
    arm, _, set_down = carrying()
    arm.there = True
    set_down.advance(at(GRASPED_AT_M), NOW_S)
    assert set_down.advance(at(GRASPED_AT_M), NOW_S + CONFIG.step_timeout_s + 0.1)
    assert set_down.failed.startswith("the gripper did not open")
    assert len(arm.sent) == 1, "the arm stays"


def test_a_cancelled_set_down_does_nothing_more() -> None:
    arm, gripper, set_down = carrying()
    set_down.cancel()
    arm.there = True
    assert not set_down.advance(at(GRASPED_AT_M), NOW_S)
    assert not gripper.opened
