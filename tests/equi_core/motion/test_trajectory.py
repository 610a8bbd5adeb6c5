# SPDX-License-Identifier: MIT
"""Jerk-limited motion: straight from rest, re-planned while moving, at rest in the end."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from equi_core.contract import Workspace
from equi_core.motion.safety_limits import SafetyLimits
from equi_core.motion.trajectory import TrajectoryError, TrajectoryGenerator

LIMITS = SafetyLimits()
PERIOD_S = 0.008
START = (0.5, 0.0, 0.1, 0.0)
box_pose = st.tuples(
    st.floats(0.3, 0.7), st.floats(-0.2, 0.2), st.floats(0.01, 0.25), st.floats(-3.0, 3.0)
)


def run_to_rest(generator: TrajectoryGenerator) -> np.ndarray:
    poses = [generator.state.position]
    for _ in range(3000):
        if generator.finished:
            return np.array(poses)
        poses.append(generator.step().position)
    raise AssertionError("the motion never ends")


@settings(max_examples=60, deadline=None)
@example(start=(0.5, 6.1e-05, 0.25, 0.0), target=(0.6875, 0.0, 0.25, 1.0))
@given(start=box_pose, target=box_pose)
def test_from_rest_the_tcp_goes_straight_to_the_target_and_rests_there(
    start: tuple[float, ...], target: tuple[float, ...]
) -> None:
    generator = TrajectoryGenerator(LIMITS, PERIOD_S, start)

    generator.retarget(target)
    poses = run_to_rest(generator)

    np.testing.assert_allclose(poses[-1], target, atol=1e-9)
    way = np.array(target[:3]) - start[:3]
    along = poses[:, :3] - start[:3]
    length = np.linalg.norm(way)
    if length > 1e-6:
        off_line = along - np.outer(along @ way / length**2, way)
        # The example above leaves its line by 3.3 micrometres; why has not been found. A UR5
        # repeats its poses to 100 micrometres.
        assert np.abs(off_line).max() < 1e-5


def test_a_full_step_uses_most_of_the_allowed_speed_and_fits_the_control_period() -> None:
    generator = TrajectoryGenerator(LIMITS, PERIOD_S, START)

    generator.retarget((0.55, 0.0, 0.1, 0.0))
    poses = run_to_rest(generator)

    # Bang-bang acceleration alone would need 2 sqrt(d / a) = 0.365 s; jerk limits add to that.
    assert 0.365 < (len(poses) - 1) * PERIOD_S < 0.5


def test_a_new_target_in_mid_motion_starts_at_the_commanded_state_without_a_jump() -> None:
    generator = TrajectoryGenerator(LIMITS, PERIOD_S, START)
    generator.retarget((0.55, 0.0, 0.1, 0.0))
    for _ in range(25):
        before = generator.step()
    assert np.linalg.norm(before.velocity) > 0.1

    generator.retarget((0.5, 0.05, 0.15, 0.3))
    after = generator.step()

    expected = before.position + before.velocity * PERIOD_S
    jump_m = np.linalg.norm(after.position[:3] - expected[:3])
    assert jump_m <= 0.5 * LIMITS.max_acceleration_m_s2 * PERIOD_S**2 + 1e-9
    np.testing.assert_allclose(run_to_rest(generator)[-1], (0.5, 0.05, 0.15, 0.3), atol=1e-9)


def test_stop_brakes_at_once_and_forgets_the_target() -> None:
    generator = TrajectoryGenerator(LIMITS, PERIOD_S, START)
    generator.retarget((0.7, 0.0, 0.1, 0.0))
    for _ in range(60):
        moving = generator.step()
    speed = np.linalg.norm(moving.velocity[:3])

    generator.stop()
    poses = run_to_rest(generator)

    # Braking distance at the acceleration cap, plus the time the jerk limit needs to reach it.
    ramp_s = LIMITS.max_acceleration_m_s2 / LIMITS.max_jerk_m_s3
    allowed_m = speed**2 / (2 * LIMITS.max_acceleration_m_s2) + speed * ramp_s
    assert np.linalg.norm(poses[-1][:3] - moving.position[:3]) <= allowed_m * 1.1
    np.testing.assert_allclose(generator.target, poses[-1])


def test_an_arm_that_starts_outside_the_box_comes_in_and_never_goes_further_out() -> None:
    outside = (0.5, 0.215, 0.1, 0.0)
    generator = TrajectoryGenerator(LIMITS, PERIOD_S, outside)

    generator.retarget((0.5, 0.3, 0.1, 0.0))
    poses = run_to_rest(generator)

    assert poses[:, 1].max() <= 0.215
    assert poses[-1][1] == pytest.approx(0.2)


def test_restart_takes_the_measured_pose_and_no_memory_of_the_old_target() -> None:
    generator = TrajectoryGenerator(LIMITS, PERIOD_S, START)
    generator.retarget((0.6, 0.1, 0.2, 0.5))
    for _ in range(20):
        generator.step()

    generator.restart((0.4, -0.1, 0.05, -0.2))

    assert generator.finished
    for _ in range(10):
        np.testing.assert_array_equal(generator.step().position, (0.4, -0.1, 0.05, -0.2))


def test_caps_are_those_of_the_limits_given_not_of_the_defaults() -> None:
    slow = SafetyLimits(workspace=Workspace(), max_speed_m_s=0.05, max_acceleration_m_s2=0.2)
    generator = TrajectoryGenerator(slow, PERIOD_S, START)

    generator.retarget((0.6, 0.1, 0.2, 0.0))
    speeds = np.linalg.norm(np.diff(run_to_rest(generator)[:, :3], axis=0), axis=1) / PERIOD_S

    assert 0.045 < speeds.max() <= 0.05


@pytest.mark.parametrize("bad", [(0.5, 0.0, 0.1), (0.5, 0.0, math.nan, 0.0)])
def test_a_target_that_is_no_pose_is_refused_and_the_motion_goes_on(bad: tuple) -> None:
    generator = TrajectoryGenerator(LIMITS, PERIOD_S, START)
    generator.retarget((0.55, 0.0, 0.1, 0.0))

    with pytest.raises(TrajectoryError, match="four finite numbers"):
        generator.retarget(bad)

    np.testing.assert_allclose(run_to_rest(generator)[-1], (0.55, 0.0, 0.1, 0.0), atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(target=box_pose, cycles=st.integers(1, 60))
def test_a_motion_that_was_held_up_goes_on_from_rest_to_the_same_target(
    target: tuple[float, ...], cycles: int
) -> None:
    generator = TrajectoryGenerator(LIMITS, PERIOD_S, START)
    generator.retarget(target)
    for _ in range(cycles):
        generator.step()
    held_at = generator.state.position

    generator.resume_from_rest()
    poses = run_to_rest(generator)

    np.testing.assert_array_equal(poses[0], held_at)
    np.testing.assert_allclose(poses[-1], target, atol=1e-9)
    # The arm stood at the first pose for a while.
    velocity = np.diff(np.concatenate([poses[:1], poses]), axis=0)[:, :3] / PERIOD_S
    acceleration = np.diff(velocity, axis=0) / PERIOD_S
    assert np.linalg.norm(velocity, axis=1).max() <= LIMITS.max_speed_m_s
    assert np.linalg.norm(acceleration, axis=1).max(initial=0.0) <= LIMITS.max_acceleration_m_s2


def test_nothing_happens_to_an_arm_at_its_target_that_is_told_to_go_on() -> None:
    generator = TrajectoryGenerator(LIMITS, PERIOD_S, START)

    generator.resume_from_rest()

    assert generator.finished
    np.testing.assert_array_equal(generator.step().position, START)
