# SPDX-License-Identifier: MIT
"""Specification of success rates with Wilson intervals."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from equi_core.statistics import SuccessRate


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_wilsons(counts):
    successes, episodes = counts
    expected = binomtest(successes, episodes).proportion_ci(method="wilson")
    low, high = SuccessRate(successes, episodes).interval
    assert low == pytest.approx(expected.low, abs=1e-9)
    assert high == pytest.approx(expected.high, abs=1e-9)


def test_without_an_episode_nothing_is_known():
    nothing = SuccessRate(0, 0)
    assert math.isnan(nothing.rate)
    assert nothing.interval == (0.0, 1.0)


def test_it_prints_its_count_and_interval():
    assert str(SuccessRate(43, 50)) == "0.860 (43/50, 95 % 0.738 to 0.930)"


@pytest.mark.parametrize("counts", [(-1, 3), (4, 3)])
def test_impossible_counts_are_refused(counts):
    with pytest.raises(ValueError, match="successes"):
        SuccessRate(*counts)
