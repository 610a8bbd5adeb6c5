# SPDX-License-Identifier: MIT
"""Specification of freshness: what is fused belongs together; what is missing is named."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equi_perception.freshness import (
    Cause,
    FreshnessLimits,
    FreshnessMonitor,
    StampedCloud,
    StampedRobot,
)

SECOND = 1_000_000_000
CAMERAS = ("cam_left", "cam_right")
LIMITS = FreshnessLimits(
    max_cloud_age_s=0.4, max_skew_s=0.1, max_robot_age_s=0.2, rest_margin_s=0.0
)


def ns(seconds: float) -> int:
    return round(seconds * SECOND)


def cloud(at_s: float) -> StampedCloud:
    return StampedCloud(ns(at_s), ns(at_s), None)


def robot(at_s: float, moving=False, steps=0, episode="e") -> StampedRobot:
    return StampedRobot(ns(at_s), moving, episode, steps, None)


def monitor_at_rest(left_s=10.0, right_s=10.05, robot_s=10.1) -> FreshnessMonitor:
    monitor = FreshnessMonitor(CAMERAS, LIMITS)
    monitor.add_robot(robot(9.0))
    monitor.add_robot(robot(robot_s))
    monitor.add_cloud("cam_left", cloud(left_s))
    monitor.add_cloud("cam_right", cloud(right_s))
    return monitor


def causes(monitor: FreshnessMonitor, now_s: float) -> list[Cause]:
    return [issue.cause for issue in monitor.evaluate(ns(now_s)).issues]


def test_fresh_clouds_of_a_resting_arm_are_ready():
    status = monitor_at_rest().evaluate(ns(10.15))
    assert status.ready
    assert status.cloud_ages_s == pytest.approx((0.15, 0.10))


def test_without_anything_everything_is_named_missing():
    status = FreshnessMonitor(CAMERAS, LIMITS).evaluate(0)
    assert [issue.cause for issue in status.issues] == [
        Cause.CLOUD_MISSING,
        Cause.CLOUD_MISSING,
        Cause.ROBOT_MISSING,
    ]
    assert all(math.isnan(age) for age in status.cloud_ages_s)


def test_a_frozen_camera_is_named_and_the_other_is_not():
    monitor = monitor_at_rest()
    monitor.add_cloud("cam_right", cloud(11.0))
    monitor.add_robot(robot(11.0))
    status = monitor.evaluate(ns(11.05))
    stale = [issue for issue in status.issues if issue.cause is Cause.CLOUD_STALE]
    assert len(stale) == 1
    assert "cam_left" in str(stale[0])


def test_it_resumes_by_itself_when_both_are_fresh_again():
    monitor = monitor_at_rest()
    assert causes(monitor, 12.0)
    for name in CAMERAS:
        monitor.add_cloud(name, cloud(12.0))
    monitor.add_robot(robot(12.0))
    assert monitor.evaluate(ns(12.05)).ready


def test_clouds_of_different_times_are_not_fused():
    assert causes(monitor_at_rest(left_s=10.0, right_s=10.11), 10.15) == [Cause.CLOUD_SKEW]


def test_a_cloud_from_the_future_is_refused():
    assert Cause.CLOUD_FUTURE in causes(monitor_at_rest(left_s=10.3, right_s=10.3), 10.15)


def test_while_the_arm_moves_there_is_no_observation():
    monitor = monitor_at_rest()
    monitor.add_robot(robot(10.12, moving=True))
    assert causes(monitor, 10.15) == [Cause.ROBOT_MOVING]


def test_clouds_taken_before_the_arm_came_to_rest_are_not_used():
    monitor = monitor_at_rest()
    monitor.add_robot(robot(10.12, moving=True))
    monitor.add_robot(robot(10.20, steps=1))
    assert set(causes(monitor, 10.25)) == {Cause.CLOUD_BEFORE_REST}
    for name in CAMERAS:
        monitor.add_cloud(name, cloud(10.21))
    assert monitor.evaluate(ns(10.25)).ready


def test_a_step_between_two_states_is_noticed_by_its_count():
    monitor = monitor_at_rest()
    monitor.add_robot(robot(10.12, steps=1))  # moved and rested again unseen
    assert set(causes(monitor, 10.15)) == {Cause.CLOUD_BEFORE_REST}


def test_a_new_episode_needs_new_clouds():
    monitor = monitor_at_rest()
    monitor.add_robot(robot(10.12, episode="next"))
    assert set(causes(monitor, 10.15)) == {Cause.CLOUD_BEFORE_REST}


def test_a_silent_driver_is_named():
    monitor = monitor_at_rest()
    for name in CAMERAS:
        monitor.add_cloud(name, cloud(10.4))
    assert causes(monitor, 10.45) == [Cause.ROBOT_STALE]


def test_repeated_and_late_clouds_change_nothing():
    monitor = monitor_at_rest()
    assert not monitor.add_cloud("cam_left", cloud(10.0))
    assert not monitor.add_cloud("cam_left", StampedCloud(ns(9.0), ns(10.1), None))
    assert monitor.evaluate(ns(10.15)).clouds["cam_left"].stamp_ns == ns(10.0)


def test_an_unknown_camera_is_refused():
    with pytest.raises(KeyError, match="cam_top"):
        monitor_at_rest().add_cloud("cam_top", cloud(1.0))


@given(st.floats(0, 2), st.floats(0, 2), st.floats(0, 2), st.booleans(), st.floats(0.5, 2.5))
def test_ready_means_young_close_together_and_at_rest(left, right, state, moving, now):
    monitor = FreshnessMonitor(CAMERAS, LIMITS)
    monitor.add_cloud("cam_left", cloud(left))
    monitor.add_cloud("cam_right", cloud(right))
    monitor.add_robot(robot(state, moving=moving))
    tiny = 2e-9
    fine = (
        now - min(left, right) <= LIMITS.max_cloud_age_s - tiny
        and max(left, right) - now <= LIMITS.max_future_s - tiny
        and abs(left - right) <= LIMITS.max_skew_s - tiny
        and now - state <= LIMITS.max_robot_age_s - tiny
        and min(left, right) >= state + tiny
        and not moving
    )
    if monitor.evaluate(ns(now)).ready:
        assert now - min(left, right) <= LIMITS.max_cloud_age_s + tiny
        assert abs(left - right) <= LIMITS.max_skew_s + tiny
        assert not moving
    else:
        assert not fine


def test_a_cloud_from_the_far_future_is_dropped_and_the_next_good_one_is_used():
    monitor = monitor_at_rest()
    far = StampedCloud(ns(1e6), ns(10.1), None)
    assert not monitor.add_cloud("cam_left", far)
    assert causes(monitor, 10.15) == [Cause.CLOUD_FUTURE]
    assert monitor.add_cloud("cam_left", cloud(10.12))
    assert causes(monitor, 10.15) == []


def test_a_robot_state_from_the_far_future_is_dropped_and_the_next_good_one_is_used():
    monitor = monitor_at_rest()
    assert not monitor.add_robot(robot(1e6, moving=True), ns(10.1))
    assert causes(monitor, 10.15) == [Cause.ROBOT_FUTURE]
    assert monitor.add_robot(robot(10.12), ns(10.12))
    assert causes(monitor, 10.15) == []


def test_after_the_clock_was_set_back_an_hour_perception_recovers_by_itself():
    monitor = monitor_at_rest(left_s=7200.0, right_s=7200.0, robot_s=7200.0)
    assert causes(monitor, 7200.1) == []
    for name in CAMERAS:
        assert monitor.add_cloud(name, cloud(3600.2))
    assert monitor.add_robot(robot(3600.1), ns(3600.1))
    assert monitor.add_robot(robot(3600.2), ns(3600.2))
    assert causes(monitor, 3600.25) == []


def test_after_the_clock_was_set_forward_old_clouds_are_stale_and_new_ones_are_used():
    monitor = monitor_at_rest()
    assert Cause.CLOUD_STALE in causes(monitor, 3610.0)
    for name in CAMERAS:
        assert monitor.add_cloud(name, cloud(3610.1))
    assert monitor.add_robot(robot(3610.1), ns(3610.1))
    assert causes(monitor, 3610.15) == []
