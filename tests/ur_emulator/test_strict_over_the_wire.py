# SPDX-License-Identifier: MIT
"""The strict profile as a program meets it: unmodified ur_rtde, dashboard and gripper clients."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import rtde_control
import rtde_io
import rtde_receive
from dashboard_client import DashboardClient

from ur_emulator import EmulatorProcess, RequestError
from ur_emulator.constants import MODELS
from ur_emulator.mechanics.kinematics import HOME_RAD, Kinematics
from ur_emulator.mechanics.links import LINKS
from ur_emulator.protocols import rtde_wire as wire

PLAYING, PAUSED = 2, 4


@pytest.fixture(scope="module")
def robot() -> Iterator[EmulatorProcess]:
    with EmulatorProcess(profile="strict") as emulator:
        yield emulator


@pytest.fixture
def control(robot: EmulatorProcess) -> Iterator[rtde_control.RTDEControlInterface]:
    robot.api.request("stop_program")
    robot.api.request("set_speed_slider", fraction=1.0)
    robot.api.request("clear_obstacles")
    robot.api.request("freedrive_joints", joints_rad=list(HOME_RAD))
    control = rtde_control.RTDEControlInterface(robot.address)
    yield control
    control.disconnect()


@pytest.fixture
def receive(robot: EmulatorProcess) -> Iterator[rtde_receive.RTDEReceiveInterface]:
    receive = rtde_receive.RTDEReceiveInterface(robot.address)
    yield receive
    receive.disconnect()


def wait(condition: Callable[[], object], patience_s: float = 20.0) -> None:
    deadline_s = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def unlocks(dashboard: DashboardClient) -> bool:
    """Whether a protective stop can be unlocked yet."""
    try:
        dashboard.unlockProtectiveStop()
    except RuntimeError:
        return False
    return True


def test_the_rtde_slider_shows_as_target_speed_fraction(
    robot: EmulatorProcess,
    control: rtde_control.RTDEControlInterface,
    receive: rtde_receive.RTDEReceiveInterface,
) -> None:
    io = rtde_io.RTDEIOInterface(robot.address)
    assert io.setSpeedSlider(0.2)
    wait(lambda: receive.getTargetSpeedFraction() == pytest.approx(0.2))
    assert receive.getSpeedScaling() == pytest.approx(1.0)
    io.disconnect()

    # A moveJ of 0.2 rad at 0.5 rad/s takes 0.4 s and more; at 20 % five times as long.
    goal = [0.2, *HOME_RAD[1:]]
    began_s = time.monotonic()
    assert control.moveJ(goal, 0.5, 5.0)
    assert time.monotonic() - began_s > 5 * 0.4


def test_reduced_mode_shows_in_scaling_and_safety_mode(
    robot: EmulatorProcess,
    control: rtde_control.RTDEControlInterface,
    receive: rtde_receive.RTDEReceiveInterface,
) -> None:
    assert control.isProgramRunning()
    robot.api.request("set_reduced_mode", on=True)
    wait(lambda: receive.getSafetyMode() == 2)
    wait(lambda: receive.getSpeedScaling() == pytest.approx(0.3))
    robot.api.request("set_reduced_mode", on=False)
    wait(lambda: receive.getSafetyMode() == 1)


def test_an_immovable_block_pauses_the_program_and_play_pushes_again_until_stopped(
    robot: EmulatorProcess,
    control: rtde_control.RTDEControlInterface,
    receive: rtde_receive.RTDEReceiveInterface,
) -> None:
    pose = receive.getActualTCPPose()
    # 20 mm below the flange, in base_link.
    centre = [-pose[0], -pose[1], pose[2] - 0.07]
    robot.api.request("add_obstacle", centre_m=centre, size_m=[0.2, 0.2, 0.1])
    goal = [*pose[:2], pose[2] - 0.05, *pose[3:]]
    assert not control.moveL(goal, 0.1, 1.0)
    wait(lambda: receive.isProtectiveStopped() and receive.getRuntimeState() == PAUSED)
    assert receive.getActualTCPPose()[2] == pytest.approx(pose[2] - 0.02, abs=1e-3)

    dashboard = DashboardClient(robot.address)
    dashboard.connect()
    assert dashboard.programState().startswith("PAUSED")
    stops = len(robot.api.status()["events"])
    wait(lambda: unlocks(dashboard))
    wait(lambda: not receive.isProtectiveStopped())
    dashboard.play()
    wait(receive.isProtectiveStopped)
    assert len(robot.api.status()["events"]) > stops
    wait(lambda: unlocks(dashboard))
    dashboard.stop()
    assert dashboard.programState().startswith("STOPPED")
    with pytest.raises(RuntimeError):
        dashboard.play()
    dashboard.disconnect()


def test_jogging_on_the_pendant_ends_the_program_of_a_connected_client(
    robot: EmulatorProcess,
    control: rtde_control.RTDEControlInterface,
    receive: rtde_receive.RTDEReceiveInterface,
) -> None:
    assert control.isProgramRunning()
    before = receive.getActualTCPPose()
    assert robot.api.request("jog", dxyz_m=[0.0, 0.0, 0.01])["moves"]
    wait(lambda: receive.getActualTCPPose()[2] > before[2] + 0.009)
    assert not control.isProgramRunning()
    assert not control.moveJ(list(HOME_RAD), 0.5, 1.0)


def test_the_reported_tcp_is_that_of_this_robots_calibration_not_of_the_nominal_table(
    robot: EmulatorProcess, receive: rtde_receive.RTDEReceiveInterface
) -> None:
    robot.api.request("stop_program")
    joints = np.array(receive.getActualQ())
    reported_m = np.array(receive.getActualTCPPose()[:3])
    nominal_m = Kinematics(LINKS["ur5"]).base_from_tcp(joints, np.eye(4))[:3, 3]
    assert 0.0005 < np.linalg.norm(reported_m - nominal_m) < 0.01

    robot.api.request("set_factory_kinematics", seed=0)
    wait(lambda: np.allclose(receive.getActualTCPPose()[:3], nominal_m, atol=1e-6))
    robot.api.request("set_factory_kinematics", seed=2)


def test_a_cb3_has_no_remote_control_to_switch(robot: EmulatorProcess) -> None:
    with pytest.raises(RequestError, match="CB3"):
        robot.api.request("set_remote_control", on=False)


def test_an_e_series_in_local_control_refuses_programs_and_dashboard_commands() -> None:
    with EmulatorProcess(model="ur5e", behaviours={"remote_control": False}) as emulator:
        with socket.create_connection((emulator.address, 29999), 10.0) as dashboard:
            lines = dashboard.makefile("r")
            lines.readline()
            answers = []
            for command in ("is in remote control", "play", "robotmode"):
                dashboard.sendall(command.encode() + b"\n")
                answers.append(lines.readline().strip())
        assert answers[0] == "false"
        assert "needs remote control" in answers[1]
        assert answers[2] == "Robotmode: RUNNING"
        with pytest.raises(RuntimeError):
            rtde_control.RTDEControlInterface(emulator.address)
        emulator.api.request("set_remote_control", on=True)
        control = rtde_control.RTDEControlInterface(emulator.address)
        assert control.isProgramRunning()
        control.disconnect()


@pytest.mark.parametrize("model", ["ur3", "ur10e"])
def test_every_model_reports_its_controller_and_moves_its_own_links(model: str) -> None:
    with EmulatorProcess(model=model, behaviours={"factory_seed": 0}) as emulator:
        with socket.create_connection((emulator.address, 30004), 10.0) as client:
            client.sendall(wire.encode_package(wire.CONTROLLER_VERSION))
            version = struct.unpack(">HB4I", client.recv(100))[2:]
        assert version == MODELS[model].version
        status = emulator.api.status()
        expected_m = Kinematics(LINKS[model]).base_from_tcp(np.array(HOME_RAD), np.eye(4))[:3, 3]
        assert status["actual_tcp"][:3] == pytest.approx(expected_m, abs=1e-6)


def test_a_gripper_without_power_does_not_activate_until_it_gets_it(
    robot: EmulatorProcess,
) -> None:
    def ask(gripper: socket.socket, line: str) -> str:
        gripper.sendall(line.encode() + b"\n")
        return gripper.recv(100).decode().strip()

    robot.api.request("gripper_power", on=False)
    with socket.create_connection((robot.address, 63352), 10.0) as gripper:
        assert ask(gripper, "SET ACT 1") == "ack"
        before_s = robot.api.status()["timestamp_s"]
        wait(lambda: robot.api.status()["timestamp_s"] > before_s + 0.5)
        assert ask(gripper, "GET STA") == "STA 0"
        robot.api.request("gripper_power", on=True)
        wait(lambda: ask(gripper, "GET STA") == "STA 3")
