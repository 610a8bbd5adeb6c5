# SPDX-License-Identifier: MIT
"""`hold` stops whatever moves or is about to: on a servo process and a gripper that only listen."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from equi_control.driver.config import DriverConfig
from equi_control.driver.driver import Driver, Refused
from equi_control.driver.state import DriverState
from equi_control.driver.steps import Outcome
from equi_control.robotiq.worker import GripperReport
from equi_control.rtde.config import LinkConfig
from equi_control.servo.config import ServoConfig
from equi_control.servo.shared_state import Phase, ServoState
from equi_core.cell_geometry import CellGeometry
from equi_core.geometry import top_down_pose
from equi_core.motion.safety import StepCommand
from equi_core.motion.ur5_kinematics import HOME_RAD, inverse_near

HOME_M = (0.5, 0.0, 0.2)
JOINTS_RAD = inverse_near(
    top_down_pose(HOME_M, 0.0) @ np.linalg.inv(CellGeometry().flange_from_tcp), HOME_RAD
)


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
            joints_rad=JOINTS_RAD,
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

    def settle(self) -> None:
        self.commands.append("settle")

    def beat(self) -> None:
        pass


class ListeningGripper:
    """Connected and active, but never gets round to carrying out a request."""

    holding = False

    def __init__(self) -> None:
        self.requested: float | None = None

    @property
    def report(self) -> GripperReport:
        settled = self.requested is None
        return GripperReport(
            connected=True, active=True, settled=settled, holding=self.holding, reason=""
        )

    def start(self) -> None:
        pass

    def activate(self, within_s: float) -> None:
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
    assert driver.state is DriverState.PAUSED


def test_a_take_over_that_waits_for_the_gripper_is_stopped_as_well(
    driver: Driver, servo: ListeningServo
) -> None:
    driver.activate()
    servo.put(finished=False)

    assert driver.hold() == []

    assert servo.commands == ["decelerate"]
    # It still takes over the arm, where it has stopped, and waits there.
    driver.poll()
    assert driver.state is DriverState.PAUSED


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
    assert driver.state is DriverState.PAUSED
    # Asked for again, it is carried out: it was never taken for done.
    driver.resume()
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


def test_a_paused_driver_refuses_every_command_until_it_is_resumed(
    driver: Driver, servo: ListeningServo
) -> None:
    take_over(driver)
    driver.begin_episode("e")
    driver.hold()
    servo.commands.clear()

    (refused,) = driver.submit(StepCommand("e", 0, 0.0, (0.05, 0.0, 0.0), 0.0, 0.0))
    with pytest.raises(Refused, match="PAUSED"):
        driver.go_home()
    with pytest.raises(Refused, match="holds"):
        driver.open_gripper()
    driver.poll()

    assert refused.outcome is Outcome.REJECTED
    assert refused.reasons[0].startswith("paused")
    assert servo.commands == []
    assert driver.state is DriverState.PAUSED

    driver.resume()
    assert driver.submit(StepCommand("e", 0, 0.0, (0.05, 0.0, 0.0), 0.0, 0.0)) == []
    assert servo.commands == ["move"]


def test_stopping_ones_own_motion_leaves_the_driver_ready(
    driver: Driver, servo: ListeningServo
) -> None:
    take_over(driver)
    driver.begin_episode("e")
    driver.submit(StepCommand("e", 0, 0.0, (0.05, 0.0, 0.0), 0.0, 0.0))

    (report,) = driver.stop_motion()

    assert report.outcome is Outcome.INTERRUPTED
    assert servo.commands == ["move", "decelerate"]
    assert driver.state is DriverState.HOLD


def test_only_a_paused_driver_can_be_resumed(driver: Driver) -> None:
    take_over(driver)

    with pytest.raises(Refused, match="it is HOLD"):
        driver.resume()


def test_a_step_ends_only_where_the_arm_is_measured_and_the_gripper_waits_for_it(
    driver: Driver, servo: ListeningServo, gripper: ListeningGripper
) -> None:
    take_over(driver)
    driver.begin_episode("e")

    # The servo process says at once that it has commanded the whole way; the arm stays behind.
    driver.submit(StepCommand("e", 0, 1.0, (0.05, 0.0, 0.0), 0.0, 0.0))
    servo.put(joint_speeds_rad_s=np.full(6, 0.01))
    assert driver.poll() == []
    assert gripper.requested is None

    servo.put(task_from_tcp=top_down_pose((0.55, 0.0, 0.2), 0.0), joint_speeds_rad_s=np.zeros(6))
    driver.poll()
    assert gripper.requested == 1.0


def test_an_arm_that_rests_short_of_its_target_has_not_arrived_and_the_gripper_stays(
    servo: Any, gripper: Any
) -> None:
    config = DriverConfig(ServoConfig(LinkConfig("127.0.0.9")), settle_timeout_s=0.02)
    driver = Driver(config, lambda _: servo, lambda _: gripper)
    driver.connect()
    driver.poll()
    take_over(driver)
    driver.begin_episode("e")
    driver.submit(StepCommand("e", 0, 1.0, (0.05, 0.0, 0.0), 0.0, 0.0))

    reports = []
    deadline_s = time.monotonic() + 30.0
    while not reports and time.monotonic() < deadline_s:
        reports = driver.poll()

    assert reports[0].outcome is Outcome.INTERRUPTED
    assert reports[0].reasons[-1].startswith("not_arrived: the arm rests 50.0 mm")
    assert gripper.requested is None
    assert servo.commands[-1] == "settle"
    assert driver.state is DriverState.HOLD


def test_a_speed_slider_near_zero_refuses_steps(driver: Driver, servo: ListeningServo) -> None:
    take_over(driver)
    driver.begin_episode("e")
    servo.put(speed_slider=0.05)
    driver.poll()

    (refused,) = driver.submit(StepCommand("e", 0, 0.0, (0.05, 0.0, 0.0), 0.0, 0.0))

    assert refused.outcome is Outcome.REJECTED
    assert refused.reasons[0].startswith("too_slow: speed slider 5%")


def test_a_take_over_that_the_servo_process_refuses_is_over_and_says_why(
    driver: Driver, servo: ListeningServo
) -> None:
    driver.activate()
    servo.put(phase=Phase.IDLE, take_over_refusals=1, message="wrong_branch: the elbow")

    driver.poll()

    assert not driver.activating
    assert driver.state is DriverState.IDLE
    assert driver.notice == "take_over_refused: wrong_branch: the elbow"


def test_a_driver_that_starts_with_something_in_the_gripper_does_not_drop_it(
    driver: Driver, servo: ListeningServo, gripper: ListeningGripper
) -> None:
    gripper.holding = True
    take_over(driver)

    with pytest.raises(Refused, match=r"0\.200 m above the table"):
        driver.open_gripper()

    assert (driver.state, gripper.requested) == (DriverState.HOLD, None)
    servo.put(phase=Phase.FAULTED)
    with pytest.raises(Refused, match="not driven to set it down"):
        driver.open_gripper()
    assert gripper.requested is None


def test_a_driver_without_a_gripper_says_so(servo: Any, caplog: pytest.LogCaptureFixture) -> None:
    config = DriverConfig(ServoConfig(LinkConfig("127.0.0.9")), use_gripper=False)
    Driver(config, lambda _: servo).connect()
    assert "use_gripper is false" in caplog.text
