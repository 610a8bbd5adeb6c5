"""`hold` stops whatever moves or is about to: on a servo process and a gripper that only listen."""

from __future__ import annotations

import time
from typing import Any

import pytest

from equi_control.driver.config import DriverConfig
from equi_control.driver.driver import Driver
from equi_control.driver.state import DriverState
from equi_control.driver.steps import Outcome
from equi_control.robotiq.worker import GripperReport
from equi_control.rtde.config import LinkConfig
from equi_control.servo.config import ServoConfig
from equi_control.servo.shared_state import Phase, SharedState
from equi_core.geometry import top_down_pose
from equi_core.motion.safety import StepCommand

HOME_M = (0.5, 0.0, 0.2)


class ListeningServo:
    """Notes what it is told; the test says where the arm is and whether it moves."""

    pid = 1
    alive = True

    def __init__(self, config: ServoConfig) -> None:
        self.orders: list[str] = []
        self._state = SharedState()
        self.put(phase=Phase.IDLE, finished=True)

    def put(self, **values: Any) -> None:
        pose = top_down_pose(HOME_M, 0.0)
        self._state.write(base_link_from_tcp=pose, commanded=[*HOME_M, 0.0], **values)

    def state(self) -> Any:
        self._state.write(heartbeat_s=time.monotonic())
        return self._state.read()

    @property
    def phase(self) -> Phase:
        return Phase(int(self.state()["phase"]))

    def silence_s(self) -> float:
        return 0.0

    def start(self) -> None:
        pass

    def activate(self) -> None:
        self.put(phase=Phase.STREAMING)

    def move_to(self, number: int, target: Any) -> None:
        self.orders.append("move")
        self.put(target_number=number, finished=True)

    def brake(self) -> None:
        self.orders.append("brake")


class ListeningGripper:
    """Connected and active, but never gets round to carrying out a wish."""

    def __init__(self, client: Any) -> None:
        self.wish: float | None = None

    @property
    def report(self) -> GripperReport:
        settled = self.wish is None
        return GripperReport(connected=True, active=True, settled=settled, reason="")

    def start(self) -> None:
        pass

    def activate(self) -> None:
        pass

    def move(self, closedness: float) -> None:
        self.wish = closedness

    def drop_unsent(self) -> bool:
        dropped, self.wish = self.wish is not None, None
        return dropped


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """Connected to servo and gripper; not activated."""
    monkeypatch.setattr("equi_control.driver.gripper.GripperWorker", ListeningGripper)
    running = Driver(DriverConfig(ServoConfig(LinkConfig("127.0.0.9"))), ListeningServo)
    running.connect()
    running.poll()
    return running


def servo_of(driver: Driver) -> ListeningServo:
    servo = driver._arm.servo
    assert isinstance(servo, ListeningServo)
    return servo


def gripper_of(driver: Driver) -> ListeningGripper:
    worker = driver._hand._worker
    assert isinstance(worker, ListeningGripper)
    return worker


def take_over(driver: Driver) -> None:
    driver.activate()
    driver.poll()
    assert driver.state is DriverState.HOLD


def test_the_turning_upright_after_a_take_over_is_stopped(driver: Driver) -> None:
    take_over(driver)
    servo_of(driver).put(finished=False)
    driver.poll()
    assert driver.moving

    assert driver.hold() == []

    assert servo_of(driver).orders == ["brake"]
    assert driver.state is DriverState.HOLD


def test_a_take_over_that_waits_for_the_gripper_is_stopped_as_well(driver: Driver) -> None:
    driver.activate()
    servo_of(driver).put(finished=False)

    assert driver.hold() == []

    assert servo_of(driver).orders == ["brake"]
    # It still takes over the arm, where it has stopped.
    driver.poll()
    assert driver.state is DriverState.HOLD


def test_a_wish_that_the_gripper_was_not_told_yet_is_dropped(driver: Driver) -> None:
    take_over(driver)
    driver.begin_episode("e")
    driver.submit(StepCommand("e", 0, 1.0, (0.0, 0.0, 0.0), 0.0, 0.0))
    driver.poll()
    assert gripper_of(driver).wish == 1.0

    (report,) = driver.hold()

    assert gripper_of(driver).wish is None
    assert report.outcome is Outcome.INTERRUPTED
    assert driver.state is DriverState.HOLD
    # Asked for again, it is carried out: it was never taken for done.
    driver.submit(StepCommand("e", 1, 1.0, (0.0, 0.0, 0.0), 0.0, 0.0))
    driver.poll()
    assert gripper_of(driver).wish == 1.0


def test_an_opening_that_was_asked_for_by_hand_is_dropped_too(driver: Driver) -> None:
    take_over(driver)
    driver.open_gripper()

    driver.hold()

    assert gripper_of(driver).wish is None
