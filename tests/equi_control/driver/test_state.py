# SPDX-License-Identifier: MIT
"""The driver's state machine on its own: what may follow what, and that faults latch."""

from __future__ import annotations

import itertools

import pytest

from equi_control.driver.state import (
    DriverState,
    Event,
    FaultCode,
    TransitionError,
    fault_of_code,
    fault_of_problem,
    next_state,
)
from equi_control.rtde.robot_reading import Problem


@pytest.mark.parametrize("state", DriverState)
def test_a_failure_leads_to_fault_from_every_state(state: DriverState) -> None:
    assert next_state(state, Event.FAILED) is DriverState.FAULT


def test_only_a_reset_leaves_a_fault_and_it_never_leads_straight_to_motion() -> None:
    reachable = {}
    for event in Event:
        try:
            reachable[event] = next_state(DriverState.FAULT, event)
        except TransitionError:
            continue

    assert reachable == {Event.FAILED: DriverState.FAULT, Event.RESET: DriverState.IDLE}


def test_motion_is_reachable_only_through_a_take_over() -> None:
    into_active = {
        state
        for state, event in itertools.product(DriverState, Event)
        if event is not Event.FAILED and _leads_to(state, event, DriverState.ACTIVE)
    }
    into_hold = {
        (state, event)
        for state, event in itertools.product(DriverState, Event)
        if _leads_to(state, event, DriverState.HOLD)
    }

    assert into_active == {DriverState.HOLD, DriverState.ACTIVE}
    assert into_hold == {
        (DriverState.IDLE, Event.TAKEN_OVER),
        (DriverState.ACTIVE, Event.MOTION_ENDED),
        (DriverState.PAUSED, Event.RESUMED),
    }


def test_an_impossible_event_names_itself_and_the_state() -> None:
    with pytest.raises(TransitionError, match="MOTION_STARTED cannot happen in state IDLE"):
        next_state(DriverState.IDLE, Event.MOTION_STARTED)


@pytest.mark.parametrize("problem", [item for item in Problem if item is not Problem.NONE])
def test_every_problem_of_the_robot_has_a_fault_with_advice(problem: Problem) -> None:
    fault = fault_of_problem(problem.value, "")

    assert fault.code is not FaultCode.INTERNAL
    assert fault.operator_action


@pytest.mark.parametrize("code", [item for item in FaultCode if item is not FaultCode.NONE])
def test_every_fault_code_says_what_to_do(code: FaultCode) -> None:
    assert "reset_fault" in fault_of_code(code, "why").operator_action


def _leads_to(state: DriverState, event: Event, wanted: DriverState) -> bool:
    try:
        return next_state(state, event) is wanted
    except TransitionError:
        return False
