# SPDX-License-Identifier: MIT
"""PRE and OBJ in either order: a request counts as carried out only when the fingers have stopped.

PRE echoes a request, OBJ shows what the fingers do. A gripper may show either first; whoever
believes the old OBJ after the new PRE takes a grasp for done before it began.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from equi_control.robotiq.client import RobotiqClient
from equi_control.robotiq.worker import GripperWorker
from ur_emulator.launching import EmulatorProcess

ARRIVED = 0.03


@pytest.fixture(
    scope="module", params=[(0.02, 0.15), (0.15, 0.02)], ids=["PRE before OBJ", "OBJ before PRE"]
)
def emulator(request: pytest.FixtureRequest) -> Iterator[EmulatorProcess]:
    echo_s, motion_s = request.param
    behaviours = {"gripper_echo_s": echo_s, "gripper_motion_s": motion_s}
    with EmulatorProcess(profile="strict", behaviours=behaviours) as running:
        yield running


@pytest.fixture
def worker(emulator: EmulatorProcess) -> Iterator[GripperWorker]:
    emulator.api.request("place_object", width_m=None)
    worker = GripperWorker(RobotiqClient(emulator.address, timeout_s=5.0))
    worker.start()
    worker.activate(within_s=60.0)
    wait_until_settled(worker)
    yield worker
    worker.stop()


def wait_until_settled(worker: GripperWorker) -> None:
    deadline_s = time.monotonic() + 60.0
    while not (worker.report.active and worker.report.settled):
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


def test_a_request_is_settled_only_when_the_fingers_are_there(worker: GripperWorker) -> None:
    for closedness in (1.0, 0.0, 1.0, 0.5):
        worker.move(closedness)
        wait_until_settled(worker)
        assert worker.report.opening == pytest.approx(1.0 - closedness, abs=ARRIVED)
        assert not worker.report.holding
        assert not worker.report.jammed


def test_an_object_is_held_only_when_the_fingers_are_at_it(
    worker: GripperWorker, emulator: EmulatorProcess
) -> None:
    worker.move(0.0)
    wait_until_settled(worker)
    emulator.api.request("place_object", width_m=0.04)
    worker.move(1.0)
    while not worker.report.settled:
        report = worker.report
        assert not report.holding or report.opening == pytest.approx(0.04 / 0.085, abs=ARRIVED)
        time.sleep(0.005)
    assert worker.report.holding
    assert worker.report.opening == pytest.approx(0.04 / 0.085, abs=ARRIVED)
