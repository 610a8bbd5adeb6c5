"""The link: frames stop here, and the verdict on a reading does not believe the library."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from equi_cell_sim.ur_controller.launching import EmulatorProcess
from equi_control.robot_reading import Problem, Reading, problem_of
from equi_control.rtde_link import LinkConfig, LinkError, RtdeLink
from equi_core.geometry import tilt_of, top_down_pose, yaw_of

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
def test_a_reading_gets_one_verdict_most_urgent_first(
    change: dict[str, object], problem: Problem
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
def test_bad_settings_are_refused_by_name(change: dict[str, object], name: str) -> None:
    with pytest.raises(LinkError, match=name):
        LinkConfig(**change)


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
