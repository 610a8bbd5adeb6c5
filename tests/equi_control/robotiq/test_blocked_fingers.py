# SPDX-License-Identifier: MIT
"""Fingers that cannot open: beside an obstacle that is a contact, in a real jam it is a fault.

The gripper reports both alike (OBJ: stopped while opening), so what tells them apart is what was
held before, and how often it happens in a row.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from equi_control.robotiq.client import RobotiqClient
from equi_control.robotiq.worker import GripperWorker
from ur_emulator.launching import EmulatorProcess


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorProcess]:
    with EmulatorProcess(profile="strict") as running:
        yield running


@pytest.fixture
def worker(emulator: EmulatorProcess) -> Iterator[GripperWorker]:
    emulator.api.request("clear_faults")
    emulator.api.request("place_object", width_m=None)
    emulator.api.request("place_walls", gap_m=None)
    worker = GripperWorker(RobotiqClient(emulator.address, timeout_s=5.0))
    worker.start()
    worker.activate(within_s=60.0)
    wait_until_settled(worker)
    ask_for(worker, 0.0)
    yield worker
    worker.stop()


def wait_until_settled(worker: GripperWorker) -> None:
    deadline_s = time.monotonic() + 60.0
    while not (worker.report.active and worker.report.settled):
        assert time.monotonic() < deadline_s, worker.report
        time.sleep(0.005)


def ask_for(worker: GripperWorker, closedness: float) -> None:
    worker.move(closedness)
    wait_until_settled(worker)


def test_fingers_that_open_against_an_obstacle_are_not_jammed(
    worker: GripperWorker, emulator: EmulatorProcess
) -> None:
    ask_for(worker, 1.0)
    emulator.api.request("place_walls", gap_m=0.0)

    ask_for(worker, 0.0)

    assert worker.report.opening < 0.05
    assert not worker.report.jammed
    assert not worker.report.holding


def test_once_the_obstacle_is_gone_they_open(
    worker: GripperWorker, emulator: EmulatorProcess
) -> None:
    ask_for(worker, 1.0)
    emulator.api.request("place_walls", gap_m=0.0)
    ask_for(worker, 0.0)
    emulator.api.request("place_walls", gap_m=None)

    ask_for(worker, 0.0)

    assert worker.report.opening > 0.95
    assert not worker.report.jammed


def test_fingers_that_refuse_to_open_again_and_again_are_jammed(
    worker: GripperWorker, emulator: EmulatorProcess
) -> None:
    ask_for(worker, 1.0)
    emulator.api.request("gripper_jam", on=True)
    refusals = 0
    while not worker.report.jammed:
        assert refusals < 5
        ask_for(worker, 0.0)
        refusals += 1

    assert refusals == 5


def test_a_motion_between_two_refusals_starts_the_count_again(
    worker: GripperWorker, emulator: EmulatorProcess
) -> None:
    for _ in range(3):
        emulator.api.request("place_walls", gap_m=None)
        ask_for(worker, 0.5)
        ask_for(worker, 1.0)
        emulator.api.request("place_walls", gap_m=0.0)
        for _ in range(3):
            ask_for(worker, 0.0)
            assert not worker.report.jammed


def test_what_is_held_cannot_keep_the_fingers_from_opening(
    worker: GripperWorker, emulator: EmulatorProcess
) -> None:
    emulator.api.request("place_object", width_m=0.04)
    ask_for(worker, 1.0)
    assert worker.report.holding
    emulator.api.request("gripper_jam", on=True)

    ask_for(worker, 0.0)

    assert worker.report.jammed
    assert not worker.report.holding


def test_nearly_open_fingers_that_meet_something_at_once_hold_it(
    worker: GripperWorker, emulator: EmulatorProcess
) -> None:
    """One finger beside a rigid block that is not in the middle stops both."""
    ask_for(worker, 0.04)
    emulator.api.request("place_object", width_m=0.0812)

    ask_for(worker, 1.0)

    assert worker.report.opening > 0.94
    assert worker.report.holding
    assert not worker.report.jammed


def test_fully_open_fingers_that_do_not_close_are_jammed(
    worker: GripperWorker, emulator: EmulatorProcess
) -> None:
    ask_for(worker, 0.0)
    emulator.api.request("gripper_jam", on=True)

    ask_for(worker, 1.0)

    assert worker.report.jammed
