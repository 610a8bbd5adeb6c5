# SPDX-License-Identifier: MIT
"""Specification of the action: what the numbers of a policy vector mean."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equi_core.action import ActionError, decode, encode
from equi_core.contract import ActionSpec

SPEC = ActionSpec()
unit = st.floats(-1.0, 1.0)
vectors = st.tuples(unit, unit, unit, unit, unit)


def test_the_policy_vector_means_closedness_steps_and_turn():
    delta = decode([-1, 1, -1, 0.5, 1], SPEC)
    assert delta.closedness == 0.0
    assert delta.step_m == pytest.approx((0.05, -0.05, 0.025))
    assert delta.yaw_rad == pytest.approx(math.pi / 8)
    assert decode([1, 0, 0, 0, 0], SPEC).closedness == 1.0


@given(vectors)
def test_encode_is_the_inverse_of_decode(vector):
    np.testing.assert_allclose(encode(decode(vector, SPEC), SPEC), vector, atol=1e-12)


@pytest.mark.parametrize("index_and_name", list(enumerate("wxyzr")))
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_component_that_is_not_finite_is_refused_by_name(index_and_name, value):
    index, name = index_and_name
    vector = [0.0] * 5
    vector[index] = value
    with pytest.raises(ActionError, match=f"'{name}'"):
        decode(vector, SPEC)


@pytest.mark.parametrize("shape", [(), (4,), (6,), (1, 5)])
def test_a_vector_of_another_shape_is_refused(shape):
    with pytest.raises(ActionError, match="shape"):
        decode(np.zeros(shape), SPEC)
