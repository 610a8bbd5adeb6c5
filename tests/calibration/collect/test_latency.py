# SPDX-License-Identifier: MIT
"""Delays from two recordings of one motion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equi_calibration.collect.latency import estimate_delay, mean_start, start_delays
from equi_calibration.errors import LatencyError


def motion(times_s):
    """A small motion: two unequal bumps, so that no shift fits by accident."""
    return 0.02 * np.exp(-(((times_s - 3.0) / 0.4) ** 2)) - 0.012 * np.exp(
        -(((times_s - 4.6) / 0.3) ** 2)
    )


@settings(max_examples=20, deadline=None)
@given(st.floats(0.0, 0.4), st.integers(0, 1000))
def test_the_delay_of_a_noisy_slow_camera_is_found_to_a_few_milliseconds(delay_s, seed):
    rng = np.random.default_rng(seed)
    arm_s = np.arange(0.0, 8.0, 0.008)
    seen_s = np.sort(rng.uniform(1.0, 7.0, 120))
    pixels = 240.0 - 900.0 * motion(seen_s - delay_s) + rng.normal(0, 0.1, len(seen_s))
    found = estimate_delay(arm_s, motion(arm_s), seen_s, pixels)
    assert found.delay_s == pytest.approx(delay_s, abs=max(4 * found.sigma_s, 0.002))
    assert found.sigma_s < 0.005
    assert found.correlation > 0.99


def test_an_arm_that_does_not_move_is_refused():
    times = np.linspace(0, 8, 100)
    with pytest.raises(LatencyError, match="does not move"):
        estimate_delay(times, np.zeros(100), times, motion(times))


def test_recordings_of_different_motions_are_refused():
    times = np.linspace(0, 8, 400)
    noise = np.random.default_rng(0).normal(size=400)
    with pytest.raises(LatencyError, match=r"correlation|edge of the search"):
        estimate_delay(times, motion(times), times, noise)


def test_recordings_that_do_not_overlap_are_refused():
    times = np.linspace(0, 8, 400)
    with pytest.raises(LatencyError, match="samples overlap"):
        estimate_delay(times, motion(times), times + 100.0, motion(times))


def accelerating(times_s, starts_s, acceleration=0.4, reach_m=0.02):
    """Heights of an arm that goes up and down by `reach_m`, at rest in between."""
    heights = np.zeros_like(times_s)
    for index, start in enumerate(starts_s):
        gone = np.clip(0.5 * acceleration * np.clip(times_s - start, 0, None) ** 2, 0, reach_m)
        heights += gone if index % 2 == 0 else -gone
    return heights


@settings(max_examples=20, deadline=None)
@given(st.floats(0.0, 0.2), st.integers(0, 1000))
def test_the_time_an_arm_needs_to_start_is_found_without_the_time_it_needs_to_be_seen(
    delay_s, seed
):
    rng = np.random.default_rng(seed)
    times = np.arange(0.0, 8.0, 0.008) + rng.uniform(0, 1e-3, 1000)
    commands = [2.0, 3.5, 5.0, 6.5]
    heights = accelerating(times, [command + delay_s for command in commands])
    found = mean_start(start_delays(times, heights + rng.normal(0, 2e-5, len(times)), commands))
    assert found.delay_s == pytest.approx(delay_s, abs=0.003)


def test_a_command_during_the_motion_of_the_one_before_does_not_count():
    times = np.arange(0.0, 6.0, 0.008)
    heights = accelerating(times, [1.05, 3.05, 5.05])
    delays = start_delays(times, heights, [1.0, 3.0, 3.1, 5.0])
    assert delays == pytest.approx([0.05, 0.05], abs=0.003)


def test_an_arm_that_never_starts_is_refused():
    times = np.arange(0.0, 6.0, 0.008)
    heights = accelerating(times, [5.9])
    with pytest.raises(LatencyError, match="seen to start from rest 0 times"):
        mean_start(start_delays(times, heights, [2.0, 4.0]))
