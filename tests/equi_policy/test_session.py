# SPDX-License-Identifier: MIT
"""Law: state is explicit. It advances once per step, on the right observation only."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equi_core.action import MetricDelta, encode
from equi_core.contract import PolicyContract
from equi_policy.session import (
    Act,
    ExecutedStep,
    PolicySession,
    ReceivedObservation,
    Refusal,
    Refused,
    SessionLimits,
)

SECOND = 1_000_000_000
CONTRACT = PolicyContract(task="block_picking", weights_sha256="ab" * 32, max_steps=5)


@dataclass(frozen=True)
class CountingState:
    """A recurrent state that records everything the policy was given."""

    images: tuple[float, ...] = ()
    executed: tuple[tuple[float, ...], ...] = ()

    def with_executed(self, action) -> CountingState:
        told = tuple(round(float(v), 6) for v in action)
        return dataclasses.replace(self, executed=(*self.executed, told))


@dataclass(frozen=True)
class Result:
    action: np.ndarray
    state: CountingState
    std: np.ndarray
    state_norm: float


class CountingPolicy:
    """Acts on nothing but counts everything; answers `action`."""

    contract = CONTRACT

    def __init__(self, action=(-1.0, 0.5, 0.0, 0.0, 0.0)) -> None:
        self.action = np.array(action, dtype=np.float32)

    def initial_state(self) -> CountingState:
        return CountingState()

    def step(self, observation, state) -> Result:
        value = float(observation.ravel()[0])
        return Result(
            self.action,
            dataclasses.replace(state, images=(*state.images, value)),
            np.ones(5, dtype=np.float32),
            1.0,
        )


def observed(step, at_s=10.0, sequence=None, episode="one", sha=CONTRACT.sha256, value=None):
    image = np.full((2, 84, 84), float(step if value is None else value), dtype=np.float32)
    return ReceivedObservation(
        episode, step, step if sequence is None else sequence, round(at_s * SECOND), sha, image
    )


def done(step, at_s=10.0, episode="one", moved=True, delta=None) -> ExecutedStep:
    delta = delta or MetricDelta(0.0, (0.01, 0.0, 0.0), 0.0)
    return ExecutedStep(episode, step, delta, moved, round(at_s * SECOND))


def session(**limits) -> PolicySession:
    running = PolicySession(CountingPolicy(), SessionLimits(**limits))
    running.begin("one")
    return running


def now(at_s=10.1) -> int:
    return round(at_s * SECOND)


def reason(answer) -> Refusal:
    assert isinstance(answer, Refused), answer
    return answer.reason


def test_one_observation_one_action():
    running = session()
    answer = running.offer(observed(0), now())
    assert isinstance(answer, Act)
    assert answer.step_index == 0
    assert answer.delta.step_m == pytest.approx((0.025, 0.0, 0.0))


def test_without_an_episode_nothing_happens():
    running = PolicySession(CountingPolicy())
    assert reason(running.offer(observed(0), now())) is Refusal.NO_EPISODE


@pytest.mark.parametrize(
    ("observation", "at_s", "expected"),
    [
        (observed(0, episode="two"), 10.1, Refusal.FOREIGN_EPISODE),
        (observed(0, sha="cd" * 32), 10.1, Refusal.FOREIGN_CONTRACT),
        (observed(0), 12.0, Refusal.STALE),
        (observed(0), 9.0, Refusal.FUTURE),
        (observed(1), 10.1, Refusal.SKIPPED),
    ],
)
def test_a_wrong_observation_is_refused_and_the_state_stays(observation, at_s, expected):
    running = session()
    before = running.state
    assert reason(running.offer(observation, now(at_s))) is expected
    assert running.state is before
    assert isinstance(running.offer(observed(0), now()), Act), "and the right one is still taken"


def test_a_repeated_observation_never_advances_the_state():
    running = session()
    running.offer(observed(0), now())
    before = running.state
    assert reason(running.offer(observed(0, sequence=7), now())) is Refusal.REPEATED
    assert running.state is before


def test_the_next_step_waits_for_the_executed_command():
    running = session()
    running.offer(observed(0), now())
    assert reason(running.offer(observed(1), now())) is Refusal.AWAITING_EXECUTION
    assert running.executed(done(0, at_s=10.2))
    assert isinstance(running.offer(observed(1, at_s=10.3), now(10.4)), Act)


def test_an_image_from_before_the_end_of_the_step_is_refused():
    running = session()
    running.offer(observed(0), now())
    running.executed(done(0, at_s=10.5))
    assert reason(running.offer(observed(1, at_s=10.4), now(10.6))) is Refusal.BEFORE_EXECUTION


def test_the_executed_action_is_fed_back_not_the_requested_one():
    running = session()
    running.offer(observed(0), now())
    clipped = MetricDelta(0.0, (0.004, 0.0, -0.002), 0.1)
    running.executed(done(0, delta=clipped))
    told = running.state.executed[-1]
    np.testing.assert_allclose(told, encode(clipped, CONTRACT.action), atol=1e-6)


def test_a_rejected_step_never_happened_and_is_decided_anew():
    running = session()
    running.offer(observed(0), now())
    running.executed(done(0))
    before = running.state
    running.offer(observed(1, at_s=10.1), now(10.2))
    assert running.executed(done(1, at_s=10.2, moved=False))
    assert running.state is before
    assert running.rejected_in_a_row == 1
    again = running.offer(observed(1, at_s=10.3, sequence=9), now(10.4))
    assert isinstance(again, Act)
    assert again.step_index == 1
    running.executed(done(1, at_s=10.5))
    assert running.state.images == (0.0, 1.0), "the rejected step left no trace"
    assert running.rejected_in_a_row == 0


@pytest.mark.parametrize("report", [done(1), done(0, episode="two")])
def test_a_report_of_another_step_or_episode_changes_nothing(report):
    running = session()
    running.offer(observed(0), now())
    before = running.state
    assert not running.executed(report)
    assert running.state is before
    assert running.awaiting_execution


def test_a_reset_is_an_event_with_an_id():
    running = session()
    running.offer(observed(0), now())
    running.begin("one")
    assert running.awaiting_execution, "the same id again is not a reset"
    running.begin("two")
    assert running.state == CountingState()
    assert not running.awaiting_execution
    assert reason(running.offer(observed(0), now())) is Refusal.FOREIGN_EPISODE


def test_after_the_last_step_of_the_contract_nothing_is_decided():
    running = session()
    for step in range(5):
        assert isinstance(running.offer(observed(step, at_s=10 + step), now(10.05 + step)), Act)
        running.executed(done(step, at_s=10.5 + step))
    assert reason(running.offer(observed(5, at_s=15.6), now(15.7))) is Refusal.FINISHED
    assert running.steps == 5


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_policy_that_answers_nonsense_is_caught(value):
    running = PolicySession(CountingPolicy((value, 0, 0, 0, 0)))
    running.begin("one")
    before = running.state
    assert reason(running.offer(observed(0), now())) is Refusal.BAD_ACTION
    assert running.state is before


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.booleans()), max_size=40))
@settings(max_examples=200, deadline=None)
def test_whatever_arrives_the_state_holds_each_step_once_and_in_order(events):
    """Fuzz: observations and reports of any step and order, from two episodes."""
    running = session(max_observation_age_s=100.0)
    clock, sequence = 10.0, 0
    for kind, step, ours in events:
        clock, sequence = clock + 0.1, sequence + 1
        episode = "one" if ours else "two"
        if kind < 2:
            running.offer(observed(step, clock, sequence, episode), now(clock + 0.05))
        else:
            running.executed(done(step, clock, episode, moved=kind < 4))
    images = running.state.images
    assert images == tuple(float(k) for k in range(len(images)))
    assert len(running.state.executed) in (len(images), len(images) - 1)
