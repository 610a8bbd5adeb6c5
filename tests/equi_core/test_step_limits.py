# SPDX-License-Identifier: MIT
"""Specification of the clipper: what is executed of a requested step, and why it differs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equi_core.action import decode, encode
from equi_core.contract import ActionSpec, Workspace
from equi_core.step_limits import LimitedStep, LimitsError, Reason, StepLimits, limit_step

SPEC, BOX = ActionSpec(), Workspace()
LIMITS = StepLimits.of_contract(SPEC, BOX)
wild = st.floats(-1e6, 1e6)
wild_vectors = st.tuples(wild, wild, wild, wild, wild)
anywhere = st.tuples(st.floats(-1, 2), st.floats(-1, 1), st.floats(-0.5, 1))
inside = st.tuples(
    st.floats(BOX.x_min_m, BOX.x_max_m),
    st.floats(BOX.y_min_m, BOX.y_max_m),
    st.floats(BOX.z_min_m, BOX.z_max_m),
)
yaws = st.floats(-4.0, 4.0)


def limited(vector, position=(0.5, 0.0, 0.1), yaw=0.0, start_yaw=0.0) -> LimitedStep:
    return limit_step(decode(vector, SPEC), position, yaw, start_yaw, LIMITS)


@given(wild_vectors, inside)
def test_from_inside_the_box_the_target_stays_inside_the_box(vector, position):
    target_m = np.add(position, limited(vector, position).executed.step_m)
    assert np.all(target_m >= np.array(BOX.lower_m) - 1e-12)
    assert np.all(target_m <= np.array(BOX.upper_m) + 1e-12)


@given(wild_vectors, anywhere, yaws, yaws)
def test_the_executed_step_is_always_a_valid_policy_vector(vector, position, yaw, start_yaw):
    step = limited(vector, position, yaw, start_yaw)
    assert np.all(np.abs(encode(step.executed, SPEC)) <= 1.0 + 1e-12)
    assert 0.0 <= step.executed.closedness <= 1.0


@given(wild_vectors, inside, yaws, st.floats(-math.pi, math.pi))
def test_a_reason_is_given_exactly_when_the_step_changes(vector, position, yaw, from_start):
    step = limited(vector, position, yaw, yaw - from_start)
    changed = np.abs(encode(step.executed, SPEC) - np.array(vector)) > 1e-6
    assert not changed.any() or step.reasons
    if not step.reasons:
        np.testing.assert_allclose(encode(step.executed, SPEC), vector, atol=1e-6)


@given(st.floats(-1.0, 1.0), yaws, st.floats(-math.pi, math.pi))
def test_the_gripper_rotates_at_most_half_a_turn_from_the_start(r, start_yaw, from_start):
    step = limited([0, 0, 0, 0, r], yaw=start_yaw + from_start, start_yaw=start_yaw)
    assert abs(from_start + step.executed.yaw_rad) <= math.pi + 1e-9


def test_each_clip_is_named_with_its_axis_value_and_what_is_allowed():
    step = limited([3, 5, -5, 5, -5], (0.69, -0.19, 0.24), yaw=0.1, start_yaw=3.0)
    assert [(issue.reason, issue.message) for issue in step.issues] == [
        (Reason.CLOSEDNESS_CLIPPED, "closedness is 2; it must be 0 to 1"),
        (Reason.STEP_CLIPPED, "x step [m] is 0.25; it must be within +-0.05 m"),
        (Reason.STEP_CLIPPED, "y step [m] is -0.25; it must be within +-0.05 m"),
        (Reason.STEP_CLIPPED, "z step [m] is 0.25; it must be within +-0.05 m"),
        (Reason.YAW_STEP_CLIPPED, "yaw step [rad] is -1.963; it must be within +-0.3927 rad"),
        (Reason.WORKSPACE_CLIPPED, "target x [m] is 0.74; it must be 0.300 to 0.700 m"),
        (Reason.WORKSPACE_CLIPPED, "target y [m] is -0.24; it must be -0.200 to 0.200 m"),
        (Reason.WORKSPACE_CLIPPED, "target z [m] is 0.29; it must be 0.010 to 0.250 m"),
        (
            Reason.YAW_FROM_START_CLIPPED,
            "target yaw from the start of the episode [rad] is -3.293; "
            "it must be within +-3.1416 rad",
        ),
    ]


def test_the_commanded_yaw_keeps_to_its_range():
    limits = StepLimits(yaw_range_rad=1.0)
    step = limit_step(decode([0, 0, 0, 0, 1], SPEC), (0.5, 0, 0.1), 0.9, 0.9, limits)
    assert step.executed.yaw_rad == pytest.approx(0.1)
    assert step.reasons == (Reason.YAW_RANGE_CLIPPED,)


def test_a_gripper_outside_the_box_is_led_back_by_at_most_one_step():
    step = limited([0, 0, 0, 0, 0], (0.9, 0.0, 0.1))
    assert step.executed.step_m == pytest.approx((-0.05, 0.0, 0.0))
    assert step.reasons == (Reason.WORKSPACE_CLIPPED,)


def test_a_limit_that_is_not_positive_is_refused_by_name():
    with pytest.raises(LimitsError, match="max_step_m"):
        StepLimits(max_step_m=float("nan"))
