# SPDX-License-Identifier: MIT
"""The link: frames stop here, and a reading is not taken at the word of the library."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from equi_control.rtde.robot_reading import Problem, Reading, problem_of
from equi_control.rtde.rtde_link import LinkConfig, LinkError, RtdeLink
from equi_core.geometry import tilt_of, top_down_pose, yaw_of
from ur_emulator.launching import EmulatorProcess

GOOD = Reading(
    base_link_from_tcp=np.eye(4),
    base_link_from_target_tcp=np.eye(4),
    twist=np.zeros(6),
    wrench=np.zeros(6),
    joints_rad=np.zeros(6),
    joint_speeds_rad_s=np.zeros(6),
    controller_time_s=1.0,
    age_s=0.01,
    connected=True,
    program_state=2,
    robot_mode=7,
    safety_mode=1,
    safety_bits=1,
)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, Problem.NONE),
        ({"connected": False}, Problem.CONNECTION_LOST),
        ({"age_s": 0.2}, Problem.CONNECTION_LOST),
        ({"age_s": float("nan")}, Problem.CONNECTION_LOST),
        ({"safety_bits": 0x404, "program_state": 4}, Problem.PROTECTIVE_STOP),
        ({"safety_bits": 0x4C0, "robot_mode": 3}, Problem.EMERGENCY_STOP),
        ({"safety_bits": 1 << 4}, Problem.PROTECTIVE_STOP),
        ({"safety_bits": 1 << 8}, Problem.PROTECTIVE_STOP),
        ({"robot_mode": 5}, Problem.ROBOT_NOT_RUNNING),
        ({"program_state": 1}, Problem.PROGRAM_STOPPED),
        ({"safety_bits": 0x404, "age_s": 9.0}, Problem.CONNECTION_LOST),
    ],
)
def test_a_reading_has_one_problem_most_urgent_first(
    change: dict[str, Any], problem: Problem
) -> None:
    assert problem_of(replace(GOOD, **change), max_age_s=0.1) is problem


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"host": ""}, "address"),
        ({"host": "x", "gain": 5}, "gain"),
        ({"host": "x", "lookahead_s": 1}, "lookahead_s"),
    ],
)
def test_bad_settings_are_refused_by_name(change: dict[str, Any], name: str) -> None:
    with pytest.raises(LinkError, match=name):
        LinkConfig(**change)


class ReceiverOfMovingArm:
    """Stands in for the library: an arm at full speed, and a package after every so many values.

    In a package the arm is where it should be. `asked` counts the values handed out.
    """

    def __init__(self, values_per_package: int, packages: int) -> None:
        self._values_per_package, self._packages = values_per_package, packages
        self.asked = 0

    def _cycle(self) -> int:
        self.asked += 1
        return min(self.asked // self._values_per_package, self._packages)

    def getTimestamp(self) -> float:
        return 0.008 * self._cycle()

    def _pose(self) -> list[float]:
        return [0.002 * self._cycle(), 0.0, 0.2, 0.0, np.pi, 0.0]

    getActualTCPPose = getTargetTCPPose = _pose

    def isConnected(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Callable[[], object]:
        vectors = ("getActualTCPSpeed", "getActualTCPForce", "getActualQ", "getActualQd")
        return lambda: [0.0] * 6 if name in vectors else 0


def listening_to(receiver: object) -> RtdeLink:
    link = RtdeLink(LinkConfig("127.77.0.3"))
    link._receive = receiver
    return link


@pytest.mark.parametrize("values_per_package", [2, 3, 4, 5])
def test_a_reading_is_of_one_cycle_however_many_packages_come_meanwhile(
    values_per_package: int,
) -> None:
    link = listening_to(ReceiverOfMovingArm(values_per_package, packages=12))

    for _ in range(12):
        reading = link.read()
        np.testing.assert_array_equal(reading.base_link_from_tcp, reading.base_link_from_target_tcp)
        assert abs(reading.base_link_from_tcp[0, 3]) == pytest.approx(
            reading.controller_time_s * 0.25
        )


def test_a_reading_ends_even_if_packages_never_do() -> None:
    receiver = ReceiverOfMovingArm(1, packages=10**9)

    listening_to(receiver).read()

    assert receiver.asked < 1000


def test_a_cycle_that_came_while_the_process_stood_still_is_not_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 100.0
    naps = 0

    def nap(duration_s: float) -> None:
        nonlocal now_s, naps
        naps += 1
        # In the third nap the whole process is held up, the library's thread with it.
        now_s += 0.5 if naps == 3 else duration_s

    monkeypatch.setattr("equi_control.rtde.rtde_link.time.monotonic", lambda: now_s)
    monkeypatch.setattr("equi_control.rtde.rtde_link.time.sleep", nap)
    receiver = SimpleNamespace(getTimestamp=lambda: 1.0 if naps < 6 else 1.008)

    assert listening_to(receiver).wait_for_cycle(after_s=1.0, timeout_s=0.008)


def test_a_controller_that_sends_nothing_is_not_waited_for_any_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 100.0

    def nap(duration_s: float) -> None:
        nonlocal now_s
        now_s += duration_s

    monkeypatch.setattr("equi_control.rtde.rtde_link.time.monotonic", lambda: now_s)
    monkeypatch.setattr("equi_control.rtde.rtde_link.time.sleep", nap)
    silent = SimpleNamespace(getTimestamp=lambda: 1.0)

    assert not listening_to(silent).wait_for_cycle(after_s=1.0, timeout_s=0.008)
    assert now_s == pytest.approx(100.008, abs=0.001)


def test_an_address_without_a_robot_is_an_error_with_advice() -> None:
    with pytest.raises(LinkError, match="remote control") as refused:
        RtdeLink(LinkConfig("127.77.0.1")).open()

    assert refused.value.problem is Problem.CONNECTION_LOST


def test_a_robot_that_is_stopped_says_why_it_cannot_be_opened() -> None:
    with EmulatorProcess() as stopped:
        stopped.api.request("emergency_stop")

        with pytest.raises(LinkError, match="release the button") as refused:
            RtdeLink(LinkConfig(stopped.address)).open()

    assert refused.value.problem is Problem.EMERGENCY_STOP


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorProcess]:
    with EmulatorProcess() as running:
        yield running


@pytest.fixture(scope="module")
def link(emulator: EmulatorProcess) -> Iterator[RtdeLink]:
    with RtdeLink(LinkConfig(emulator.address)) as opened:
        yield opened


def test_poses_are_in_base_link_with_the_tool_down(link: RtdeLink) -> None:
    # Home of the UR5 in base_link, from the DH table; 0.169 m of tool below the flange.
    reading = link.read()

    np.testing.assert_allclose(
        reading.base_link_from_tcp[:3, 3], (0.4869, 0.10915, 0.431859 - 0.169), atol=1e-4
    )
    assert tilt_of(reading.base_link_from_tcp) < 1e-6
    assert reading.connected
    assert reading.at_rest


def test_a_supervised_move_goes_where_it_was_told_in_base_link(link: RtdeLink) -> None:
    goal = top_down_pose((0.45, -0.05, 0.2), 0.4)

    link.move_to(goal, speed_m_s=0.25, acceleration_m_s2=1.0)

    reached = link.read().base_link_from_tcp
    np.testing.assert_allclose(reached, goal, atol=1e-3)
    assert yaw_of(reached) == pytest.approx(0.4, abs=1e-3)


def test_a_move_below_the_table_is_refused_before_anything_moves(link: RtdeLink) -> None:
    before = link.read().base_link_from_tcp

    with pytest.raises(LinkError, match="safety limits"):
        link.move_to(top_down_pose((0.45, 0.0, -0.3), 0.0))

    # The arm may still be settling by micrometres from the move before.
    np.testing.assert_allclose(link.read().base_link_from_tcp, before, atol=1e-4)


def test_without_the_watchdog_nothing_is_streamed(link: RtdeLink) -> None:
    with pytest.raises(LinkError, match="arm_watchdog"):
        link.servo(link.read().base_link_from_tcp, 0.008)


def test_the_payload_and_the_rate_are_set_and_read(
    link: RtdeLink, emulator: EmulatorProcess
) -> None:
    assert emulator.api.status()["payload_kg"] == pytest.approx(0.95)
    assert link.rate_hz == 125.0


def test_stopping_ends_a_program_that_a_protective_stop_has_paused() -> None:
    """On the old code it stayed, and play on the pendant resumed it towards the old pose."""
    with EmulatorProcess(profile="strict") as robot, RtdeLink(LinkConfig(robot.address)) as link:
        robot.api.request("protective_stop")
        wait_for_runtime_state(robot, "PAUSED")
        link.stop()
        wait_for_runtime_state(robot, "STOPPED")


def wait_for_runtime_state(robot: EmulatorProcess, wanted: str) -> None:
    deadline_s = time.monotonic() + 20.0
    while robot.api.status()["runtime_state"] != wanted:
        assert time.monotonic() < deadline_s, f"never {wanted}"
        time.sleep(0.02)
