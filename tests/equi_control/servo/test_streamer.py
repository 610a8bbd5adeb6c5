# SPDX-License-Identifier: MIT
"""The commanded pose after take-over: a tilted tool is turned upright, and that is motion."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from equi_control.rtde.config import LinkConfig
from equi_control.rtde.robot_reading import Reading
from equi_control.servo.config import ServoConfig
from equi_control.servo.streamer import Streamer, TakeOverError
from equi_core.cell_geometry import CellGeometry
from equi_core.geometry import tilt_of, top_down_pose
from equi_core.motion.ur5_kinematics import HOME_RAD, inverse_near

PERIOD_S = 0.008
POSITION_M = (0.5, 0.0, 0.15)
FASTEST_RAD_S = 0.1


def taken_over(tilt_rad: float) -> Streamer:
    """A take-over of a resting arm whose tool is tilted about x."""
    pose = top_down_pose(POSITION_M, 0.3)
    pose[:3, :3] = pose[:3, :3] @ Rotation.from_rotvec([tilt_rad, 0.0, 0.0]).as_matrix()
    reading = Reading(
        base_link_from_tcp=pose,
        base_link_from_target_tcp=pose,
        twist=np.zeros(6),
        wrench=np.zeros(6),
        joints_rad=inverse_near(pose @ np.linalg.inv(CellGeometry().flange_from_tcp), HOME_RAD),
        joint_speeds_rad_s=np.zeros(6),
        controller_time_s=1.0,
        age_s=0.0,
        connected=True,
        program_state=2,
        robot_mode=7,
        safety_mode=1,
        safety_bits=1,
    )
    return Streamer(reading, ServoConfig(LinkConfig("127.0.0.2")), PERIOD_S)


def test_a_tilted_tool_is_turned_upright_slowly_and_counts_as_moving_until_it_is() -> None:
    streamer = taken_over(tilt_rad=0.15)
    tilts = [float(tilt_of(streamer.pose))]

    while not streamer.finished:
        assert len(tilts) < 2000, "never upright"
        streamer.advance()
        tilts.append(float(tilt_of(streamer.pose)))

    assert tilts[0] == pytest.approx(0.15, abs=1e-6)
    assert tilts[-1] == pytest.approx(0.0, abs=1e-6)
    assert np.abs(np.diff(tilts)).max() / PERIOD_S < FASTEST_RAD_S
    np.testing.assert_allclose(streamer.pose[:3, 3], POSITION_M, atol=1e-9)


def test_a_tool_that_points_straight_down_is_at_rest_at_once() -> None:
    streamer = taken_over(tilt_rad=0.0)

    streamer.advance()

    assert streamer.finished


def test_a_target_is_not_reached_before_the_tool_is_upright() -> None:
    streamer = taken_over(tilt_rad=0.15)
    streamer.set_target([0.5, 0.0, 0.151, 0.3])

    while not streamer.trajectory.finished:
        streamer.advance()

    assert not streamer.finished


def advance(streamer: Streamer, cycles: int) -> list[float]:
    """Tilts of the commanded pose, the present one first."""
    tilts = [float(tilt_of(streamer.pose))]
    for _ in range(cycles):
        streamer.advance()
        tilts.append(float(tilt_of(streamer.pose)))
    return tilts


def test_decelerating_stops_the_uprighting_smoothly_and_then_the_arm_rests() -> None:
    streamer = taken_over(tilt_rad=0.15)
    advance(streamer, 100)
    turning = advance(streamer, 1)

    streamer.decelerate()
    assert not streamer.finished
    braking = advance(streamer, 50)
    resting = advance(streamer, 100)

    assert streamer.finished
    assert max(resting) == min(resting)
    assert 0.02 < resting[-1] < turning[0], "stopped on the way"
    rates = np.diff([*turning, *braking[1:]]) / PERIOD_S
    assert np.abs(rates).max() < FASTEST_RAD_S
    assert np.abs(np.diff(rates)).max() / PERIOD_S < 2.0, "no jerk of the tool"


def test_the_next_target_turns_the_tool_upright_after_all() -> None:
    streamer = taken_over(tilt_rad=0.15)
    advance(streamer, 100)
    streamer.decelerate()
    advance(streamer, 100)

    streamer.set_target([0.5, 0.0, 0.151, 0.3])
    assert not streamer.finished
    tilts = advance(streamer, 400)

    assert streamer.finished
    assert tilts[-1] == pytest.approx(0.0, abs=1e-6)
    assert np.abs(np.diff(tilts)).max() / PERIOD_S < FASTEST_RAD_S


def test_decelerating_at_rest_changes_nothing() -> None:
    streamer = taken_over(tilt_rad=0.0)
    advance(streamer, 5)
    before = streamer.pose.copy()

    streamer.decelerate()
    advance(streamer, 20)

    assert streamer.finished
    np.testing.assert_array_equal(streamer.pose, before)


def test_a_tool_that_is_tilted_too_far_is_not_taken_over() -> None:
    with pytest.raises(TakeOverError, match="straight down"):
        taken_over(tilt_rad=0.25)


@pytest.mark.parametrize(
    ("step_m", "fastest_m_s"),
    [
        ((0.05, 0.0, 0.0), 0.04),
        ((0.0, 0.0, -0.05), 0.04),
        ((0.0, 0.0, 0.05), 0.08),
    ],
)
def test_a_step_is_no_faster_than_contact_can_be_noticed(
    step_m: tuple[float, float, float], fastest_m_s: float
) -> None:
    """Low: near surfaces, unless it leads up. On the old code it led up at 0.25 m/s."""
    assert fastest_of(taken_over(0.0), step_m) == pytest.approx(fastest_m_s, rel=0.04)


@pytest.mark.parametrize("step_m", [(0.05, 0.0, 0.0), (0.05, -0.05, 0.05), (0.0, 0.0, -0.04)])
def test_a_step_high_up_may_meet_something_as_well(step_m: tuple[float, float, float]) -> None:
    """On the old code 0.2 m/s, which a stiff arm cannot stop from within millimetres."""
    high = taken_over(0.0)
    fastest_of(high, (0.0, 0.0, 0.05))
    assert fastest_of(high, step_m) == pytest.approx(0.08, rel=0.04)


def test_a_way_longer_than_a_step_high_up_is_fast() -> None:
    high = taken_over(0.0)
    fastest_of(high, (0.0, 0.0, 0.05))
    assert fastest_of(high, (-0.15, 0.1, 0.0)) == pytest.approx(0.25, rel=0.04)


def fastest_of(streamer: Streamer, step_m: tuple[float, float, float]) -> float:
    """Largest commanded speed [m/s] on the way of a step."""
    target = streamer.commanded + np.array([*step_m, 0.0])
    streamer.set_target(target)
    fastest_m_s, before = 0.0, streamer.commanded
    for _ in range(2000):
        streamer.advance()
        moved_m = float(np.linalg.norm(streamer.commanded[:3] - before[:3]))
        fastest_m_s, before = max(fastest_m_s, moved_m / PERIOD_S), streamer.commanded
        if streamer.finished:
            return fastest_m_s
    raise AssertionError("never arrived")


def test_a_set_point_that_the_last_guard_refuses_becomes_a_stop_within_the_caps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The old code repeated the last set-point at once: 23.7 m/s2 against 1.5."""
    streamer = taken_over(0.0)
    fastest_of(streamer, (0.0, 0.0, 0.05))
    streamer.set_target([0.38, 0.1, 0.2, 0.3])
    poses = [streamer.commanded]
    for _ in range(40):
        streamer.advance()
        poses.append(streamer.commanded)
    assert np.linalg.norm(poses[-1][:3] - poses[-2][:3]) / PERIOD_S > 0.2, "it is fast"

    step = streamer.trajectory.step

    def jumping() -> object:
        state = step()
        monkeypatch.setattr(streamer.trajectory, "step", step)
        return dataclasses.replace(state, position=state.position + 0.05)

    monkeypatch.setattr(streamer.trajectory, "step", jumping)
    for _ in range(150):
        streamer.advance()
        poses.append(streamer.commanded)

    assert streamer.guard_trips == 1
    assert np.array_equal(poses[-1], poses[-2]), "it rests"
    velocity = np.diff(np.array(poses)[:, :3], axis=0) / PERIOD_S
    acceleration = np.diff(velocity, axis=0) / PERIOD_S
    jerk = np.diff(acceleration, axis=0) / PERIOD_S
    assert np.linalg.norm(velocity, axis=1).max() <= 0.25
    assert np.linalg.norm(acceleration, axis=1).max() <= 1.5
    assert np.linalg.norm(jerk, axis=1).max() <= 30.0
