# SPDX-License-Identifier: MIT
"""Unmodified ur_rtde against the emulator over loopback TCP: every call the driver builds on.

The emulator runs in its own process, because constructors of the library hold Python's lock.
Nothing here is timed; waiting is for conditions, with generous limits.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import rtde_control
import rtde_receive

from ur_emulator import EmulatorProcess

TCP = [0.0, 0.0, 0.169, 0.0, 0.0, 0.0]


def wait_for(condition: Callable[[], bool], what: str, limit_s: float = 60.0) -> None:
    deadline_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline_s, f"never happened: {what}"
        time.sleep(0.005)


@dataclass
class Robot:
    emulator: EmulatorProcess
    control: rtde_control.RTDEControlInterface
    receive: rtde_receive.RTDEReceiveInterface

    def pose(self) -> np.ndarray:
        return np.array(self.receive.getActualTCPPose())

    def settle(self) -> None:
        wait_for(self.control.isSteady, "the arm at rest")

    def restart_program(self) -> None:
        # Registers are level state: a servo command left in them would run at once. A kick clears
        # the command register.
        self.control.kickWatchdog()
        assert self.control.reuploadScript()
        wait_for(self.control.isProgramRunning, "the program runs")


@pytest.fixture(scope="module", params=["ur5", "ur5e"])
def robot(request: pytest.FixtureRequest) -> Iterator[Robot]:
    with EmulatorProcess(model=request.param) as emulator:
        control = rtde_control.RTDEControlInterface(emulator.address)
        receive = rtde_receive.RTDEReceiveInterface(emulator.address)
        assert control.setTcp(TCP)
        wait_for(lambda: abs(receive.getActualTCPPose()[2] - 0.262859) < 1e-6, "TCP in effect")
        yield Robot(emulator, control, receive)
        control.disconnect()
        receive.disconnect()


@pytest.fixture
def home(robot: Robot) -> np.ndarray:
    """The arm at a known pose with a running program; returns that pose."""
    if not robot.control.isProgramRunning():
        robot.restart_program()
    assert robot.control.moveJ([0.0, -1.6, 1.6, -1.57, -1.57, 0.0], 2.0, 6.0)
    robot.settle()
    return robot.pose()


def test_the_tcp_in_the_controllers_base_matches_the_dh_table(robot: Robot) -> None:
    # Hand-computed from the DH table: home flange at (-0.4869, -0.10915, 0.431859), tool down.
    assert robot.control.moveJ(np.radians([0, -90, 90, -90, -90, 0]).tolist(), 2.0, 6.0)
    robot.settle()

    np.testing.assert_allclose(robot.pose()[:3], (-0.4869, -0.10915, 0.431859 - 0.169), atol=1e-5)
    np.testing.assert_allclose(robot.pose()[3:], (2.2214415, 2.2214415, 0.0), atol=1e-5)


def test_blocking_moves_arrive(robot: Robot, home: np.ndarray) -> None:
    goal = home + np.array([0.02, -0.03, -0.05, 0, 0, 0])

    assert robot.control.moveL(goal.tolist(), 0.25, 1.2)
    robot.settle()
    np.testing.assert_allclose(robot.pose(), goal, atol=2e-5)

    assert robot.control.moveJ_IK(home.tolist(), 2.0, 6.0)
    robot.settle()
    np.testing.assert_allclose(robot.pose(), home, atol=2e-5)

    joints = robot.receive.getActualQ()
    assert robot.control.moveL_FK([joints[0] + 0.05, *joints[1:]], 0.25, 1.2)
    robot.settle()
    assert robot.receive.getActualQ()[0] == pytest.approx(joints[0] + 0.05, abs=1e-4)


def test_an_asynchronous_move_reports_progress_and_can_be_stopped(
    robot: Robot, home: np.ndarray
) -> None:
    goal = home + np.array([0, 0.15, 0, 0, 0, 0])
    # Slowly: five seconds are enough to stop it on the way, whatever holds this test up.
    assert robot.control.moveL(goal.tolist(), 0.03, 1.0, True)
    assert robot.control.getAsyncOperationProgress() >= 0
    wait_for(lambda: robot.pose()[1] - home[1] > 0.01, "the move is under way")

    robot.control.stopL(4.0)
    wait_for(lambda: robot.control.getAsyncOperationProgress() < 0, "the move has ended")
    robot.settle()

    assert 0.01 < robot.pose()[1] - home[1] < 0.14


def test_servo_streams_are_followed_and_held_until_servo_stop(
    robot: Robot, home: np.ndarray
) -> None:
    for step in range(120):
        target = home + np.array([0, 0, -0.03 * min(1.0, step / 60), 0, 0, 0])
        assert robot.control.servoL(target.tolist(), 0.5, 0.5, 0.008, 0.05, 300)
        time.sleep(0.008)
    wait_for(lambda: abs(robot.pose()[2] - home[2] + 0.03) < 1e-4, "the last target is held")
    assert robot.control.servoStop()

    joints = np.array(robot.receive.getActualQ())
    for step in range(60):
        target = joints + np.array([0.001 * step, 0, 0, 0, 0, 0])
        assert robot.control.servoJ(target.tolist(), 0.5, 0.5, 0.008, 0.05, 300)
        time.sleep(0.008)
    wait_for(
        lambda: abs(robot.receive.getActualQ()[0] - joints[0] - 0.059) < 1e-4, "joints followed"
    )
    assert robot.control.servoStop()


def test_speed_commands_go_on_until_speed_stop(robot: Robot, home: np.ndarray) -> None:
    assert robot.control.speedL([0, 0, 0.05, 0, 0, 0], 0.5, 0.1)
    wait_for(lambda: abs(robot.receive.getActualTCPSpeed()[2] - 0.05) < 1e-3, "the TCP speed")
    wait_for(lambda: robot.pose()[2] - home[2] > 0.02, "the motion outlasts its time argument")
    assert robot.control.speedStop()
    robot.settle()

    assert robot.control.speedJ([0.1, 0, 0, 0, 0, 0], 0.5, 0.1)
    wait_for(lambda: abs(robot.receive.getActualQd()[0] - 0.1) < 1e-3, "the joint speed")
    assert robot.control.speedStop()
    robot.settle()


def test_a_path_is_uploaded_and_run_to_its_last_waypoint(robot: Robot, home: np.ndarray) -> None:
    waypoints = [
        [*(home + np.array([0, 0, -0.02, 0, 0, 0])), 0.25, 1.2, 0.0],
        [*(home + np.array([0, 0.02, -0.02, 0, 0, 0])), 0.25, 1.2, 0.0],
    ]

    assert robot.control.moveL(waypoints)
    robot.settle()

    np.testing.assert_allclose(robot.pose()[:3], waypoints[-1][:3], atol=1e-4)


def test_kinematic_questions_are_answered(robot: Robot, home: np.ndarray) -> None:
    control = robot.control
    joints = robot.receive.getActualQ()

    np.testing.assert_allclose(control.getForwardKinematics(joints, TCP), home, atol=1e-4)
    np.testing.assert_allclose(control.getInverseKinematics(home.tolist()), joints, atol=1e-4)
    assert control.getInverseKinematicsHasSolution(home.tolist())
    assert not control.getInverseKinematicsHasSolution([2.0, 0, 0, 0, 0, 0])
    assert control.isPoseWithinSafetyLimits(home.tolist())
    assert not control.isPoseWithinSafetyLimits((home - np.array([0, 0, 0.9, 0, 0, 0])).tolist())
    assert control.isJointsWithinSafetyLimits(joints)
    assert not control.isJointsWithinSafetyLimits([7.0, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(control.getTCPOffset(), TCP, atol=1e-9)
    moved = control.poseTrans(home.tolist(), [0, 0, 0.1, 0, 0, 0])
    assert moved[2] == pytest.approx(home[2] - 0.1, abs=1e-4)


def test_the_payload_reaches_the_controller(robot: Robot, home: np.ndarray) -> None:
    assert robot.control.setPayload(0.95, [0.0, 0.0, 0.06])

    assert robot.emulator.api.status()["payload_kg"] == pytest.approx(0.95)
    wait_for(lambda: robot.receive.getPayload() == pytest.approx(0.95), "payload in the stream")


def kicked_for_a_while(robot: Robot) -> bool:
    """Feed a watchdog of one second for longer than that; whether it never had to wait for us."""
    began_s = kicked_s = time.monotonic()
    longest_s = 0.0
    while kicked_s - began_s < 2.0:
        time.sleep(0.02)
        robot.control.kickWatchdog()
        now_s = time.monotonic()
        longest_s, kicked_s = max(longest_s, now_s - kicked_s), now_s
    return longest_s < 0.5


def test_a_starved_watchdog_stops_the_program_and_reupload_restarts_it(
    robot: Robot, home: np.ndarray
) -> None:
    for _ in range(10):
        assert robot.control.setWatchdog(1.0)
        if kicked_for_a_while(robot):
            break
        robot.restart_program()  # this process was not scheduled and starved it
    assert robot.control.isProgramRunning()

    wait_for(lambda: not robot.control.isProgramRunning(), "the watchdog stops the program")
    assert not robot.control.moveL(home.tolist())

    robot.restart_program()
    assert robot.control.moveL(home.tolist())


def test_stop_script_ends_the_program(robot: Robot, home: np.ndarray) -> None:
    robot.control.stopScript()

    wait_for(lambda: not robot.control.isProgramRunning(), "the program has ended")
    assert robot.emulator.api.status()["runtime_state"] == "STOPPED"


def test_two_motions_at_once_end_the_program(robot: Robot, home: np.ndarray) -> None:
    assert robot.control.speedL([0, 0, 0.01, 0, 0, 0], 0.5, 0.1)
    wait_for(lambda: robot.receive.getActualTCPSpeed()[2] > 0.005, "moving")

    robot.control.servoL(home.tolist(), 0.5, 0.5, 0.008, 0.05, 300)

    wait_for(lambda: not robot.control.isProgramRunning(), "the program has ended")
    assert "was started during" in robot.emulator.api.status()["events"][-1]


def test_an_unreachable_servo_target_ends_the_program_without_a_move(
    robot: Robot, home: np.ndarray
) -> None:
    robot.control.servoL([1.5, 0, 0.2, 0, 3.1, 0], 0.5, 0.5, 0.008, 0.05, 300)

    wait_for(lambda: not robot.control.isProgramRunning(), "the program has ended")
    np.testing.assert_allclose(robot.pose(), home, atol=1e-4)


def test_a_servo_jump_is_a_protective_stop_and_not_a_leap(robot: Robot, home: np.ndarray) -> None:
    joints = np.array(robot.receive.getActualQ())

    robot.control.servoJ(
        (joints + np.array([2.5, 0, 0, 0, 0, 0])).tolist(), 0.5, 0.5, 0.008, 0.05, 300
    )

    wait_for(robot.receive.isProtectiveStopped, "the protective stop")
    np.testing.assert_allclose(robot.receive.getActualQ(), joints, atol=1e-3)
    unlock(robot)


def test_a_protective_stop_refuses_commands_until_unlocked_and_restarted(
    robot: Robot, home: np.ndarray
) -> None:
    robot.emulator.api.request("protective_stop")
    wait_for(robot.receive.isProtectiveStopped, "the protective stop is seen")
    wait_for(lambda: not robot.control.servoL(home.tolist(), 0.5, 0.5, 0.008, 0.05, 300), "refused")

    unlock(robot)
    robot.restart_program()
    assert robot.control.moveL(home.tolist())


def test_an_emergency_stop_needs_release_power_and_brakes(robot: Robot, home: np.ndarray) -> None:
    robot.emulator.api.request("emergency_stop")
    wait_for(robot.receive.isEmergencyStopped, "the emergency stop is seen")
    wait_for(lambda: robot.receive.getRobotMode() == 3, "power is off")
    assert dashboard(robot, "brake release") == "Brake releasing"
    assert robot.receive.getRobotMode() == 3, "brakes released although the button is pressed"

    robot.emulator.api.request("release_emergency_stop")
    dashboard(robot, "power on")
    wait_for(lambda: robot.receive.getRobotMode() == 5, "power is on, brakes closed")
    dashboard(robot, "brake release")
    wait_for(lambda: robot.receive.getRobotMode() == 7, "running again")
    robot.restart_program()
    assert robot.control.moveL(home.tolist())


def test_a_second_client_is_told_that_the_registers_are_in_use(robot: Robot) -> None:
    with pytest.raises(RuntimeError, match="already in use"):
        rtde_control.RTDEControlInterface(robot.emulator.address)


def test_two_robots_move_independently(robot: Robot, home: np.ndarray) -> None:
    with EmulatorProcess() as other:
        control = rtde_control.RTDEControlInterface(other.address)
        receive = rtde_receive.RTDEReceiveInterface(other.address)
        assert control.setTcp(TCP)

        assert control.moveJ([0.3, -1.5, 1.5, -1.57, -1.57, 0.0], 2.0, 6.0)
        wait_for(control.isSteady, "the second robot at rest")

        assert receive.getActualQ()[0] == pytest.approx(0.3, abs=1e-3)
        np.testing.assert_allclose(robot.pose(), home, atol=1e-4)
        control.disconnect()
        receive.disconnect()


def unlock(robot: Robot) -> None:
    """Unlock as an operator does: again and again until the waiting time is over."""
    wait_for(
        lambda: (
            dashboard(robot, "unlock protective stop") == "Protective stop releasing"
            and not robot.receive.isProtectiveStopped()
        ),
        "unlocked",
    )


def dashboard(robot: Robot, command: str) -> str:
    """One dashboard command over a plain socket: greeting, request, answer."""
    with socket.create_connection((robot.emulator.address, 29999), 10.0) as client:
        reader = client.makefile("r")
        assert reader.readline().startswith("Connected")
        client.sendall(command.encode() + b"\n")
        return reader.readline().strip()
