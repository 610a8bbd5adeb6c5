# SPDX-License-Identifier: MIT
"""Specification of the take-over: arm first, then the gripper, which has a deadline."""

from __future__ import annotations

from typing import Any

import pytest

from equi_control.driver.take_over import TakeOver, TakeOverResult
from equi_control.robotiq.worker import GripperReport
from equi_control.servo.shared_state import Phase, ServoState

TIMEOUT_S = 12.0
CONNECTING, STREAMING = ServoState(phase=Phase.IDLE), ServoState(phase=Phase.STREAMING)


class StandInArm:
    last_state: ServoState | None = None
    asked = False

    def take_over(self) -> None:
        self.asked = True


class StandInGripper:
    def __init__(self) -> None:
        self.report = GripperReport(connected=True, active=False)
        self.asked_within_s: list[float] = []

    def activate(self, within_s: float) -> None:
        self.asked_within_s.append(within_s)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now_s = [100.0]
    monkeypatch.setattr("equi_control.driver.take_over.time.monotonic", lambda: now_s[0])
    return now_s


def started() -> tuple[Any, Any, TakeOver]:
    arm: Any = StandInArm()
    gripper: Any = StandInGripper()
    take_over = TakeOver(arm, gripper, TIMEOUT_S)
    take_over.start()
    return arm, gripper, take_over


def test_the_gripper_is_activated_once_and_only_when_the_arm_is_held(clock: list[float]) -> None:
    arm, gripper, take_over = started()
    assert arm.asked
    assert take_over.advance(CONNECTING) is TakeOverResult.PENDING
    assert gripper.asked_within_s == []
    for _ in range(3):
        assert take_over.advance(STREAMING) is TakeOverResult.PENDING
    # It is told not to activate any more before the fault: nobody sees a late stroke.
    (within_s,) = gripper.asked_within_s
    assert TIMEOUT_S - 1.0 < within_s < TIMEOUT_S
    gripper.report = GripperReport(connected=True, active=True)
    assert take_over.advance(STREAMING) is TakeOverResult.DONE
    assert not take_over.active


def test_a_gripper_that_is_not_active_in_time_ends_the_take_over(clock: list[float]) -> None:
    """On the old code it had no deadline: power minutes later meant a stroke."""
    _, _, take_over = started()
    take_over.advance(STREAMING)
    clock[0] += TIMEOUT_S - 0.1
    assert take_over.advance(STREAMING) is TakeOverResult.PENDING
    clock[0] += 0.2
    assert take_over.advance(STREAMING) is TakeOverResult.GRIPPER_LATE
    assert not take_over.active


def test_a_refusal_of_the_servo_process_ends_it_and_an_old_one_does_not(
    clock: list[float],
) -> None:
    arm, gripper, take_over = started()
    arm.last_state = ServoState(take_over_refusals=1)
    take_over.start()
    assert take_over.advance(ServoState(take_over_refusals=1)) is TakeOverResult.PENDING
    assert take_over.advance(ServoState(take_over_refusals=2)) is TakeOverResult.REFUSED
    assert gripper.asked_within_s == []
