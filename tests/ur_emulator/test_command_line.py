# SPDX-License-Identifier: MIT
"""`ur-emulator`: models, ports and addresses, and what it says when it refuses them."""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import subprocess
import sys
from dataclasses import replace

import pytest
from families import ProcessFamily

from ur_emulator import EmulatorClient, EmulatorProcess
from ur_emulator.constants import MODELS, Ports
from ur_emulator.main import _make_arm, _parser
from ur_emulator.profile import STRICT


def run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ur_emulator.main", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--model", "ur20"), "model is 'ur20'; emulated are: ur3, ur5, ur10"),
        (("--address", "0.0.0.0"), "loopback addresses only"),
        (("--port-base", "65530"), "port base is 65530; the seven ports"),
        (("--arm", "steel"), "no arm is called 'steel'; installed are: "),
    ],
)
def test_a_refusal_names_the_value_and_what_is_allowed(
    options: tuple[str, ...], words: str
) -> None:
    done = run(*options)

    assert done.returncode == 2
    assert words in done.stderr


def test_a_taken_port_is_named() -> None:
    with EmulatorProcess() as running:
        done = run("--address", running.address)

    assert done.returncode == 2
    assert f"cannot listen on {running.address}:30004 for rtde" in done.stderr


def test_real_ports_are_the_default() -> None:
    assert Ports() == Ports(30004, 29999, (30001, 30002, 30003), 63352, 29100)


def test_with_a_port_base_seven_ports_in_a_row_answer_and_the_real_ones_do_not() -> None:
    with EmulatorProcess(port_base=41000) as robot:
        with socket.create_connection((robot.address, 41000), 10.0) as dashboard:
            assert dashboard.makefile("r").readline().startswith("Connected")
        with socket.create_connection((robot.address, 41005), 10.0) as gripper:
            gripper.sendall(b"GET STA\n")
            assert gripper.recv(20).strip() == b"STA 0"
        for port in (41001, 41002, 41003, 41004):
            socket.create_connection((robot.address, port), 10.0).close()
        with EmulatorClient(robot.address, port=41006) as api:
            assert api.status()["model"] == "ur5"

        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((robot.address, 30004), 10.0)


@pytest.mark.parametrize(("old", "model"), [("cb3", "ur5"), ("e-series", "ur5e")])
def test_the_former_names_of_the_models_still_work(old: str, model: str) -> None:
    with EmulatorProcess(model=old) as robot:
        assert robot.api.status()["model"] == model


def test_its_linear_algebra_has_one_thread_however_it_is_started() -> None:
    """At real-time priority the others would spin; the first contact cost seconds."""
    program = (
        "import os; os.environ.pop('OPENBLAS_NUM_THREADS', None)\n"
        "import ur_emulator.main, numpy as np\n"
        "square = np.ones((600, 600)); square @ square\n"
        "print(len(os.listdir('/proc/self/task')))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )
    assert ran.stdout.strip() == "1"


@pytest.mark.parametrize(("linger_s", "stays"), [("60", True), ("0", False)])
def test_asked_to_end_it_stays_for_its_drivers_as_long_as_it_may(
    processes: ProcessFamily, loopback_address: str, linger_s: str, stays: bool
) -> None:
    robot = processes.start(
        [
            *(sys.executable, "-m", "ur_emulator.main", "--address", loopback_address),
            *("--linger-s", linger_s),
        ]
    )
    robot.wait_for_text("ready: ur5")
    gripper = socket.create_connection((loopback_address, Ports.gripper), 10.0)
    with gripper:
        gripper.sendall(b"GET STA\n")
        assert gripper.recv(20).strip() == b"STA 0"

        robot.signal_alone(signal.SIGINT)

        if stays:
            gripper.sendall(b"GET ACT\n")
            assert gripper.recv(20).strip() == b"ACT 0"
        else:
            with contextlib.suppress(ConnectionResetError):
                assert gripper.recv(20) == b""
    assert robot.wait_for_exit() == 0


@pytest.mark.parametrize(("seed", "warned"), [(2, True), (0, False)])
def test_factory_kinematics_that_the_physics_arm_does_not_have_are_said_to_be_ignored(
    caplog: pytest.LogCaptureFixture, seed: int, warned: bool
) -> None:
    options = _parser().parse_args(["--arm", "physics", "--profile", "strict"])
    profile = replace(STRICT, factory_seed=seed)
    with caplog.at_level(logging.WARNING):
        _make_arm(options, MODELS["ur5"], profile).close()
    assert (f"factory_seed {seed} is IGNORED" in caplog.text) is warned
