# SPDX-License-Identifier: MIT
"""Specification of how episodes end: one reason, the gravest first."""

from __future__ import annotations

import pytest

from equi_policy.episode import EpisodeLimits, EpisodeOutcome, EpisodeStatus, evaluate_end
from equi_policy.latency import LatencyTracker

LIMITS = EpisodeLimits(max_steps=50, observation_timeout_s=10.0, execution_timeout_s=20.0)


def status(**changes) -> EpisodeStatus:
    return EpisodeStatus(**{"steps": 3, "awaiting_execution": False, "quiet_s": 0.5, **changes})


def test_an_ordinary_moment_ends_nothing():
    assert evaluate_end(status(), LIMITS) is None
    assert evaluate_end(status(awaiting_execution=True, quiet_s=15.0), LIMITS) is None


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"task_done": True}, EpisodeOutcome.SUCCEEDED),
        ({"task_failed": "a block left"}, EpisodeOutcome.OBJECT_LOST),
        ({"fault": "protective stop"}, EpisodeOutcome.FAULTED),
        ({"cancel_requested": True}, EpisodeOutcome.STOPPED),
        ({"broken": "nan"}, EpisodeOutcome.STOPPED),
        ({"steps": 50}, EpisodeOutcome.STEP_LIMIT),
        ({"quiet_s": 11.0, "perception": "cloud_stale"}, EpisodeOutcome.OBSERVATION_LOST),
        ({"awaiting_execution": True, "quiet_s": 21.0}, EpisodeOutcome.FAULTED),
    ],
)
def test_each_end_has_its_name(changes, outcome):
    end = evaluate_end(status(**changes), LIMITS)
    assert end is not None
    assert end.outcome is outcome
    assert end.reason


def test_a_fault_outranks_success_and_success_outranks_the_step_limit():
    assert evaluate_end(status(fault="f", task_done=True), LIMITS).outcome is EpisodeOutcome.FAULTED
    assert (
        evaluate_end(status(steps=50, task_done=True), LIMITS).outcome is EpisodeOutcome.SUCCEEDED
    )


def test_the_last_step_is_waited_for():
    assert evaluate_end(status(steps=50, awaiting_execution=True), LIMITS) is None


def test_while_the_referee_is_asked_only_a_fault_or_a_request_ends_the_episode():
    assert evaluate_end(status(awaiting_referee=True, steps=50, task_done=True), LIMITS) is None
    assert evaluate_end(status(awaiting_referee=True, quiet_s=60.0), LIMITS) is None
    assert (
        evaluate_end(status(awaiting_referee=True, fault="f"), LIMITS).outcome
        is EpisodeOutcome.FAULTED
    )
    stopped = evaluate_end(status(awaiting_referee=True, cancel_requested=True), LIMITS)
    assert stopped.outcome is EpisodeOutcome.STOPPED


def test_a_lost_observation_says_what_perception_said():
    end = evaluate_end(status(quiet_s=11.0, perception="cloud_stale: cam_left"), LIMITS)
    assert "cam_left" in end.reason


def test_latencies_are_quantiles_of_the_newest_samples():
    latency = LatencyTracker(size=100)
    for value in range(1000):
        latency.add("inference", value)
    inference = latency.summary()["inference"]
    assert (inference.count, inference.worst_ms) == (100, 999.0)
    assert inference.p50_ms == pytest.approx(949.5)
    assert set(latency.summary()) == {"inference"}
    with pytest.raises(KeyError, match="unknown"):
        latency.add("magic", 1.0)
