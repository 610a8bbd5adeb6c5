# SPDX-License-Identifier: MIT
"""The arm whose servo process hangs or died: the dashboard ends the program, and nobody waits."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import pytest
from families import wait_until

from equi_control.driver.arm import Arm
from equi_control.driver.config import DriverConfig
from equi_control.driver.driver import Driver
from equi_control.driver.state import DriverState, FaultCode
from equi_control.rtde.config import LinkConfig
from equi_control.servo.config import ServoConfig
from equi_control.servo.shared_state import Phase, ServoState

HOST = "127.0.0.9"
PATIENCE_S = 30.0


class StandInServo:
    """Says what the test lets it say."""

    pid = 1

    def __init__(self, phase: Phase = Phase.STREAMING) -> None:
        self.phase, self.alive, self.silent_s, self.killed = phase, True, 0.0, False
        self.aborted: list[str] = []

    def start(self) -> None:
        pass

    def beat(self) -> None:
        pass

    def state(self) -> ServoState:
        return ServoState(phase=self.phase, heartbeat_s=time.monotonic(), cycles=1)

    def silence_s(self) -> float:
        return self.silent_s

    def abort(self, why: str) -> None:
        self.aborted.append(why)

    def kill(self) -> None:
        self.killed, self.alive = True, False


class SlowDashboard:
    """Answers when it is let."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.answer = True
        self.may_answer = threading.Event()
        monkeypatch.setattr(
            "equi_control.driver.arm.controller_program.stop_program", self._stop_program
        )

    def _stop_program(self, host: str) -> bool:
        self.asked.append(host)
        self.may_answer.wait(PATIENCE_S)
        return self.answer


def is_asking() -> bool:
    return any(thread.name == "end program" for thread in threading.enumerate())


@pytest.fixture
def dashboard(monkeypatch: pytest.MonkeyPatch) -> Any:
    slow = SlowDashboard(monkeypatch)
    yield slow
    slow.may_answer.set()
    wait_until(lambda: not is_asking(), PATIENCE_S, "the thread ends")


def driver_with(servo: Any) -> Driver:
    config = DriverConfig(ServoConfig(LinkConfig(HOST)), use_gripper=False)
    driver = Driver(config, servo_factory=lambda _: servo)
    driver.connect()
    return driver


@pytest.mark.parametrize("change", [{"silent_s": 5.0}, {"alive": False}])
def test_the_program_of_a_lost_servo_process_is_ended_by_the_dashboard_without_waiting(
    dashboard: SlowDashboard, change: dict[str, Any]
) -> None:
    """On the old code a program paused by a protective stop stayed loaded."""
    servo = StandInServo()
    driver = driver_with(servo)
    vars(servo).update(change)

    driver.poll()  # returns, though the dashboard has not answered

    assert driver.state is DriverState.FAULT
    assert driver.fault is not None
    assert driver.fault.code is FaultCode.SERVO_FAILED
    assert servo.killed
    wait_until(lambda: dashboard.asked == [HOST], PATIENCE_S, "the dashboard is asked")
    assert not dashboard.may_answer.is_set()


def test_a_servo_process_that_answers_stops_the_arm_itself(dashboard: SlowDashboard) -> None:
    servo = StandInServo(Phase.FAULTED)
    driver = driver_with(servo)
    driver.poll()
    assert driver.state is DriverState.FAULT
    assert servo.aborted
    assert dashboard.asked == []


def test_a_servo_process_that_hangs_while_it_connects_leaves_the_robots_program_alone(
    dashboard: SlowDashboard,
) -> None:
    servo: Any = StandInServo(Phase.CONNECTING)
    arm = Arm(ServoConfig(LinkConfig(HOST)), lambda _: servo)
    arm.start()
    arm.kill_and_end_program()
    assert servo.killed
    assert not is_asking()


def test_the_next_servo_process_starts_only_when_the_program_was_ended(
    dashboard: SlowDashboard, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    made: list[Any] = []

    def make(_: ServoConfig) -> Any:
        made.append(StandInServo())
        return made[-1]

    arm = Arm(ServoConfig(LinkConfig(HOST)), make)
    arm.start()
    arm.kill_and_end_program()
    arm.start()
    arm.poll()
    assert len(made) == 1, "its program would be ended too"
    assert arm.starting

    dashboard.answer = False
    dashboard.may_answer.set()

    def started() -> bool:
        arm.poll()
        return len(made) == 2

    wait_until(started, PATIENCE_S, "the next one starts")
    assert "did not confirm the end of the program" in caplog.text
