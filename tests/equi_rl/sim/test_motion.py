# SPDX-License-Identifier: MIT
"""Timing of moves: rest to rest, within the limits, as fast as they allow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equi_rl.sim.motion import MotionLimits, trapezoid_fractions

LIMITS = MotionLimits()
TICK_S = 1 / 120


@given(distance=st.floats(0.0, 0.1), turn=st.floats(-0.5, 0.5))
def test_no_move_exceeds_a_limit(distance, turn):
    fractions = np.concatenate([[0.0], trapezoid_fractions(distance, turn, LIMITS, TICK_S)])
    assert fractions[-1] == 1.0
    if len(fractions) == 2:
        return
    speed = np.diff(fractions) / TICK_S
    assert np.all(speed >= -1e-12)
    assert speed.max() * distance <= LIMITS.speed_m_s * 1.001
    assert speed.max() * abs(turn) <= LIMITS.yaw_speed_rad_s * 1.001
    acceleration = np.abs(np.diff(speed)) / TICK_S
    assert acceleration.max() * distance <= LIMITS.acceleration_m_s2 * 1.01
    assert acceleration.max() * abs(turn) <= LIMITS.yaw_acceleration_rad_s2 * 1.01


def test_a_full_step_takes_the_time_of_a_trapezoid():
    # 5 cm at 0.4 m/s with 4 m/s^2: 0.125 s of travel and 0.1 s for the two ramps.
    assert len(trapezoid_fractions(0.05, 0.0, LIMITS, TICK_S)) == 27


def test_standing_still_takes_one_tick():
    assert trapezoid_fractions(0.0, 0.0, LIMITS, TICK_S).tolist() == [1.0]


def test_a_limit_that_is_not_positive_is_refused_by_name():
    with pytest.raises(ValueError, match="speed_m_s"):
        MotionLimits(speed_m_s=0.0)
