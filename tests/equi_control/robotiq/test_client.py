# SPDX-License-Identifier: MIT
"""The gripper client against the emulated gripper: activation, moves, objects, time-outs."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from equi_control.robotiq.client import GripperError, ObjectStatus, RobotiqClient
from equi_control.robotiq.worker import GripperWorker
from ur_emulator.launching import EmulatorProcess

# The emulated fingers report arrival within 1.5 mm of 85 mm, and go on to the end.
ARRIVED = 0.02


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorProcess]:
    with EmulatorProcess() as running:
        yield running


@pytest.fixture
def gripper(emulator: EmulatorProcess) -> Iterator[RobotiqClient]:
    emulator.api.request("clear_faults")
    emulator.api.request("place_object", width_m=None)
    with RobotiqClient(emulator.address, timeout_s=5.0) as client:
        client.activate(timeout_s=30.0)
        client.move(0.0)
        client.wait_until_stopped(timeout_s=60.0)
        yield client


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + 90.0
    while not condition():
        assert time.monotonic() < deadline_s, f"never happened: {what}"
        time.sleep(0.01)


def test_an_empty_gripper_closes_all_the_way_and_holds_nothing(gripper: RobotiqClient) -> None:
    gripper.move(1.0)
    status = gripper.wait_until_stopped(timeout_s=60.0)

    assert status.object_status is ObjectStatus.AT_TARGET
    assert status.opening == pytest.approx(0.0, abs=ARRIVED)
    assert not status.holding


def test_a_move_never_looks_finished_before_it_began(gripper: RobotiqClient) -> None:
    # As slowly as they can: a test that is held up must not find them arrived.
    gripper.move(1.0, speed=0)

    # The request is echoed by now; the status must already say that the fingers move.
    assert gripper.status().object_status is ObjectStatus.MOVING


def test_an_object_is_detected_and_its_width_measured(
    gripper: RobotiqClient, emulator: EmulatorProcess
) -> None:
    emulator.api.request("place_object", width_m=0.05)

    gripper.move(1.0)
    status = gripper.wait_until_stopped(timeout_s=60.0)

    assert status.holding
    assert status.opening == pytest.approx(0.05 / 0.085, abs=0.01)


def test_a_lost_object_turns_holding_false(
    gripper: RobotiqClient, emulator: EmulatorProcess
) -> None:
    emulator.api.request("place_object", width_m=0.05)
    gripper.move(1.0)
    gripper.wait_until_stopped(timeout_s=60.0)

    emulator.api.request("lose_object")

    wait_for(lambda: not gripper.status().holding, "holding turns false")


def test_half_way_is_half_way(gripper: RobotiqClient) -> None:
    gripper.move(0.5)

    status = gripper.wait_until_stopped(timeout_s=60.0)

    assert status.opening == pytest.approx(0.5, abs=ARRIVED)


def test_a_closedness_outside_its_range_is_refused(gripper: RobotiqClient) -> None:
    with pytest.raises(GripperError, match="between 0 and 1"):
        gripper.move(1.5)


def test_a_frozen_gripper_is_a_time_out_and_not_a_hang(emulator: EmulatorProcess) -> None:
    with RobotiqClient(emulator.address, timeout_s=0.3) as client:
        emulator.api.request("freeze", service="gripper")
        with pytest.raises(GripperError, match="does not answer"):
            client.status()
    emulator.api.request("thaw", service="gripper")


def test_no_gripper_is_an_error_with_advice() -> None:
    with pytest.raises(GripperError, match="powered"):
        RobotiqClient("127.77.0.2", timeout_s=0.5).connect()


@contextmanager
def confused_gripper(obj: str) -> Iterator[int]:
    """A gripper's port that answers as it should, but for `GET OBJ`; yields its number."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            with client:
                while request := client.recv(1024).decode().split():
                    value = obj if request[1] == "OBJ" else "3"
                    client.sendall(f"{request[1]} {value}\n".encode())

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield server.getsockname()[1]
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


@pytest.mark.parametrize("obj", ["7", "--1", "-", "1.5", "?", "1 2"])
def test_an_answer_that_means_nothing_is_a_gripper_error(obj: str) -> None:
    with (
        confused_gripper(obj) as port,
        RobotiqClient("127.0.0.1", port, timeout_s=5.0) as client,
        pytest.raises(GripperError, match="OBJ"),
    ):
        client.status()


def test_the_worker_outlives_an_answer_that_means_nothing() -> None:
    with confused_gripper("7") as port:
        worker = GripperWorker(RobotiqClient("127.0.0.1", port, timeout_s=5.0))
        worker.start()
        try:
            wait_for(lambda: "OBJ 7" in worker.report.reason, "the answer is reported")
            assert not worker.report.connected
        finally:
            worker.stop()


def test_a_request_that_was_dropped_is_not_carried_out_when_the_gripper_comes_back(
    gripper: RobotiqClient, emulator: EmulatorProcess
) -> None:
    worker = GripperWorker(RobotiqClient(emulator.address, timeout_s=5.0))
    worker.start()
    try:
        wait_for(lambda: worker.report.connected, "connected")
        emulator.api.request("refuse", service="gripper", on=True)
        emulator.api.request("cut", service="gripper")
        wait_for(lambda: not worker.report.connected, "the loss is reported")
        worker.move(1.0)

        assert worker.drop_unsent()
        emulator.api.request("refuse", service="gripper", on=False)
        wait_for(lambda: worker.report.connected and worker.report.settled, "connected again")
        time.sleep(0.5)

        assert worker.report.opening == pytest.approx(1.0, abs=ARRIVED)
        assert not worker.drop_unsent()
    finally:
        worker.stop()


def asks_to_activate(emulator: EmulatorProcess) -> bool:
    with socket.create_connection((emulator.address, 63352), 10.0) as port:
        port.sendall(b"GET ACT\n")
        return port.recv(100).strip() == b"ACT 1"


def test_an_activation_that_was_dropped_is_withdrawn_before_the_power_returns(
    gripper: RobotiqClient, emulator: EmulatorProcess
) -> None:
    emulator.api.request("gripper_power", on=False)
    worker = GripperWorker(RobotiqClient(emulator.address, timeout_s=5.0))
    worker.start()
    try:
        wait_for(lambda: worker.report.connected and not worker.report.active, "without power")
        worker.activate(within_s=600.0)
        wait_for(lambda: asks_to_activate(emulator), "activation asked for")

        worker.drop_unsent()
        wait_for(lambda: not asks_to_activate(emulator), "activation withdrawn")
    finally:
        emulator.api.request("gripper_power", on=True)
        worker.stop()


def test_an_activation_is_withdrawn_even_if_the_connection_broke_meanwhile(
    emulator: EmulatorProcess,
) -> None:
    emulator.api.request("clear_faults")
    emulator.api.request("gripper_power", on=False)
    worker = GripperWorker(RobotiqClient(emulator.address, timeout_s=1.0))
    worker.start()
    try:
        wait_for(lambda: worker.report.connected, "without power")
        worker.activate(within_s=600.0)
        wait_for(lambda: asks_to_activate(emulator), "activation asked for")
        emulator.api.request("drop", service="gripper", fraction=1.0)
        wait_for(lambda: not worker.report.connected, "connection lost")

        worker.drop_unsent()
        emulator.api.request("clear_faults")
        wait_for(lambda: not asks_to_activate(emulator), "activation withdrawn")
    finally:
        emulator.api.request("clear_faults")
        emulator.api.request("gripper_power", on=True)
        worker.stop()


def test_the_worker_reports_a_loss_at_once_and_comes_back_by_itself(
    emulator: EmulatorProcess,
) -> None:
    emulator.api.request("clear_faults")
    worker = GripperWorker(RobotiqClient(emulator.address, timeout_s=5.0))
    worker.start()
    try:
        worker.activate()
        wait_for(lambda: worker.report.active, "active")

        emulator.api.request("refuse", service="gripper", on=True)
        emulator.api.request("cut", service="gripper")
        wait_for(lambda: not worker.report.connected, "the loss is reported")
        assert not worker.report.holding
        assert worker.report.reason

        emulator.api.request("refuse", service="gripper", on=False)
        wait_for(lambda: worker.report.connected, "connected again")
    finally:
        worker.stop()
