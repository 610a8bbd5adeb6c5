# SPDX-License-Identifier: MIT
"""`hold` stops whatever moves or is about to: on a servo process and a gripper that only listen."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from equi_control.driver.config import DriverConfig
from equi_control.driver.driver import Driver
from equi_control.driver.state import DriverState
from equi_control.driver.steps import Outcome
from equi_control.robotiq.worker import GripperReport
from equi_control.rtde.config import LinkConfig
from equi_control.servo.config import ServoConfig
from equi_control.servo.shared_state import Phase, ServoState
from equi_core.geometry import top_down_pose
from equi_core.motion.safety import StepCommand

HOME_M = (0.5, 0.0, 0.2)


class ListeningServo:
    """Records what it is told; the test says where the arm is and whether it moves."""

    pid = 1
    alive = True

    def __init__(self) -> None:
        self.commands: list[str] = []
        self._state = ServoState(
            phase=Phase.IDLE,
            finished=True,
            task_from_tcp=top_down_pose(HOME_M, 0.0),
            commanded=np.array([*HOME_M, 0.0]),
        )

    def put(self, **values: Any) -> None:
        self._state = self._state._replace(**values)

    def state(self) -> ServoState:
        return self._state._replace(heartbeat_s=time.monotonic())

    @property
    def phase(self) -> Phase:
        return self._state.phase

    def silence_s(self) -> float:
        return 0.0

    def start(self) -> None:
        pass

    def activate(self) -> None:
        self.put(phase=Phase.STREAMING)

    def move_to(self, number: int, target: Any) -> None:
        self.commands.append("move")
        self.put(target_number=number, finished=True)

    def decelerate(self) -> None:
        self.commands.append("decelerate")


class ListeningGripper:
    """Connected and active, but never gets round to carrying out a request."""

    def __init__(self) -> None:
        self.requested: float | None = None

    @property
    def report(self) -> GripperReport:
        settled = self.requested is None
        return GripperReport(connected=True, active=True, settled=settled, reason="")

    def start(self) -> None:
        pass

    def activate(self) -> None:
        pass

    def move(self, closedness: float) -> None:
        self.requested = closedness

    def drop_unsent(self) -> bool:
        dropped, self.requested = self.requested is not None, None
        return dropped


@pytest.fixture
def servo() -> ListeningServo:
    return ListeningServo()


@pytest.fixture
def gripper() -> ListeningGripper:
    return ListeningGripper()


@pytest.fixture
def driver(servo: Any, gripper: Any) -> Driver:
    """Connected to servo and gripper; not activated."""
    config = DriverConfig(ServoConfig(LinkConfig("127.0.0.9")))
    running = Driver(config, lambda _: servo, lambda _: gripper)
    running.connect()
    running.poll()
    return running


def take_over(driver: Driver) -> None:
    driver.activate()
    driver.poll()
    assert driver.state is DriverState.HOLD


def test_the_uprighting_after_a_take_over_is_stopped(driver: Driver, servo: ListeningServo) -> None:
    take_over(driver)
    servo.put(finished=False)
    driver.poll()
    assert driver.moving

    assert driver.hold() == []

    assert servo.commands == ["decelerate"]
    assert driver.state is DriverState.HOLD


def test_a_take_over_that_waits_for_the_gripper_is_stopped_as_well(
    driver: Driver, servo: ListeningServo
) -> None:
    driver.activate()
    servo.put(finished=False)

    assert driver.hold() == []

    assert servo.commands == ["decelerate"]
    # It still takes over the arm, where it has stopped.
    driver.poll()
    assert driver.state is DriverState.HOLD


def test_a_request_that_the_gripper_was_not_told_yet_is_dropped(
    driver: Driver, gripper: ListeningGripper
) -> None:
    take_over(driver)
    driver.begin_episode("e")
    driver.submit(StepCommand("e", 0, 1.0, (0.0, 0.0, 0.0), 0.0, 0.0))
    driver.poll()
    assert gripper.requested == 1.0

    (report,) = driver.hold()

    assert gripper.requested is None
    assert report.outcome is Outcome.INTERRUPTED
    assert driver.state is DriverState.HOLD
    # Asked for again, it is carried out: it was never taken for done.
    driver.submit(StepCommand("e", 1, 1.0, (0.0, 0.0, 0.0), 0.0, 0.0))
    driver.poll()
    assert gripper.requested == 1.0


def test_an_opening_that_was_asked_for_by_hand_is_dropped_too(
    driver: Driver, gripper: ListeningGripper
) -> None:
    take_over(driver)
    driver.open_gripper()

    driver.hold()

    assert gripper.requested is None
