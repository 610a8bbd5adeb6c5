"""Delays from two recordings of one motion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equi_calibration.errors import LatencyError
from equi_calibration.latency import estimate_delay


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
