"""Specification of the action: scales, clipping, and the honest report of what is executed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equi_core.action import ActionError, ClipReason, clip_to_limits, decode, encode
from equi_core.contract import ActionSpec, Workspace

SPEC, BOX = ActionSpec(), Workspace()
unit = st.floats(-1.0, 1.0)
vectors = st.tuples(unit, unit, unit, unit, unit)
wild = st.floats(-1e6, 1e6)
wild_vectors = st.tuples(wild, wild, wild, wild, wild)
anywhere = st.tuples(st.floats(-1, 2), st.floats(-1, 1), st.floats(-0.5, 1))
inside = st.tuples(
    st.floats(BOX.x_min_m, BOX.x_max_m),
    st.floats(BOX.y_min_m, BOX.y_max_m),
    st.floats(BOX.z_min_m, BOX.z_max_m),
)


def test_the_policy_vector_means_closedness_steps_and_turn():
    delta = decode([-1, 1, -1, 0.5, 1], SPEC)
    assert delta.closedness == 0.0
    assert delta.step_m == pytest.approx((0.05, -0.05, 0.025))
    assert delta.yaw_rad == pytest.approx(math.pi / 8)
    assert decode([1, 0, 0, 0, 0], SPEC).closedness == 1.0


@given(vectors)
def test_encode_is_the_inverse_of_decode(vector):
    np.testing.assert_allclose(encode(decode(vector, SPEC), SPEC), vector, atol=1e-12)


@given(wild_vectors, inside)
def test_from_inside_the_box_the_target_stays_inside_the_box(vector, position):
    executed = clip_to_limits(vector, position, SPEC, BOX)
    assert np.all(np.array(executed.target_position_m) >= np.array(BOX.lower_m) - 1e-12)
    assert np.all(np.array(executed.target_position_m) <= np.array(BOX.upper_m) + 1e-12)


@given(wild_vectors, anywhere)
def test_the_executed_action_is_always_a_valid_policy_vector(vector, position):
    executed = clip_to_limits(vector, position, SPEC, BOX)
    assert np.all(np.abs(executed.policy_action) <= 1.0 + 1e-12)
    assert 0.0 <= executed.delta.closedness <= 1.0


@given(wild_vectors, anywhere)
def test_the_executed_action_leads_to_the_reported_target(vector, position):
    executed = clip_to_limits(vector, position, SPEC, BOX)
    again = decode(executed.policy_action, SPEC)
    np.testing.assert_allclose(
        np.add(position, again.step_m), executed.target_position_m, atol=1e-9
    )


@given(wild_vectors, inside)
def test_a_reason_is_given_exactly_when_the_action_changes(vector, position):
    executed = clip_to_limits(vector, position, SPEC, BOX)
    changed = np.abs(executed.policy_action - np.array(vector)) > 1e-6
    if changed.any():
        assert executed.reasons
    if not executed.reasons:
        np.testing.assert_allclose(executed.policy_action, vector, atol=1e-6)


def test_each_clip_is_named():
    far_out = clip_to_limits([3, 5, -5, 5, -5], (0.69, -0.19, 0.24), SPEC, BOX)
    assert set(far_out.reasons) == set(ClipReason)


def test_a_gripper_outside_the_box_is_led_back_by_at_most_one_step():
    executed = clip_to_limits([0, 0, 0, 0, 0], (0.9, 0.0, 0.1), SPEC, BOX)
    assert executed.target_position_m == pytest.approx((0.85, 0.0, 0.1))
    assert executed.reasons == (ClipReason.WORKSPACE_X,)


@pytest.mark.parametrize("index_and_name", list(enumerate("wxyzr")))
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_component_that_is_not_finite_is_refused_by_name(index_and_name, value):
    index, name = index_and_name
    vector = [0.0] * 5
    vector[index] = value
    with pytest.raises(ActionError, match=f"'{name}'"):
        clip_to_limits(vector, (0.5, 0, 0.1), SPEC, BOX)


@pytest.mark.parametrize("shape", [(), (4,), (6,), (1, 5)])
def test_a_vector_of_another_shape_is_refused(shape):
    with pytest.raises(ActionError, match="shape"):
        decode(np.zeros(shape), SPEC)
