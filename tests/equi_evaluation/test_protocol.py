# SPDX-License-Identifier: MIT
"""Specification of the protocol: seeds in order, halves by what was tried first, resumable."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equi_evaluation.protocol import FirstTry, Protocol, ProtocolError
from equi_evaluation.results import EpisodeResult, ResultsError, ResultStore, load_results


def result(number: int, first="movable", success=True, invalid=False) -> EpisodeResult:
    return EpisodeResult(
        episode_id=f"e{number}",
        seed=number,
        outcome="SUCCEEDED" if success else "STEP_LIMIT",
        reason="",
        success=success,
        label_source="ground_truth",
        first_try=first,
        steps=7,
        duration_s=9.0,
        invalid=invalid,
    )


def test_scenes_come_in_the_order_of_their_seeds():
    protocol = Protocol(3, seed=40, balanced=False)
    results = []
    seeds = []
    while (seed := protocol.next_seed(results)) is not None:
        seeds.append(seed)
        results.append(result(seed))
    assert seeds == [40, 41, 42]


def test_a_full_half_lets_further_episodes_of_its_kind_pass_uncounted():
    protocol = Protocol(4)
    results = [result(k, "movable") for k in range(5)]
    assert len(protocol.counted(results)) == 2
    assert protocol.next_seed(results) == 5
    results += [result(5, "immovable"), result(6, "immovable")]
    assert len(protocol.counted(results)) == 4
    assert protocol.next_seed(results) is None


def test_an_episode_that_reached_nothing_counts_as_a_failure_of_the_emptier_half():
    protocol = Protocol(2)
    results = [result(0, "movable"), result(1, "none", success=False)]
    assert [item.episode_id for item in protocol.counted(results)] == ["e0", "e1"]


def test_an_invalid_episode_never_counts():
    assert Protocol(2, balanced=False).counted([result(0, invalid=True)]) == []


def test_it_gives_up_when_one_kind_never_comes():
    protocol = Protocol(2, most_attempts_per_episode=4)
    assert protocol.next_seed([result(k, "movable") for k in range(8)]) is None


@given(st.lists(st.sampled_from(["movable", "immovable", "none"]), max_size=60))
def test_no_half_ever_counts_more_than_its_share(kinds):
    protocol = Protocol(10)
    counted = protocol.counted([result(k, kind) for k, kind in enumerate(kinds)])
    assert len(counted) <= 10
    for kind in (FirstTry.MOVABLE, FirstTry.IMMOVABLE):
        assert sum(item.first_try == kind.value for item in counted) <= 5


@pytest.mark.parametrize("settings", [{"episodes": 0}, {"episodes": 5, "seed": -1}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(ProtocolError):
        Protocol(**settings)


def test_results_survive_the_process(tmp_path):
    store = ResultStore(tmp_path, {"task": "t"})
    store.add(result(0))
    store.add(result(1, success=False))
    again = ResultStore(tmp_path, {"task": "t"})
    assert again.results == [result(0), result(1, success=False)]


def test_a_line_torn_by_a_crash_is_dropped_and_the_run_goes_on(tmp_path):
    store = ResultStore(tmp_path, {"task": "t"})
    store.add(result(0))
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"episode_id": "e1", "se')
    again = ResultStore(tmp_path, {"task": "t"})
    assert again.results == [result(0)]
    again.add(result(1))
    assert load_results(tmp_path) == [result(0), result(1)]


def test_a_damaged_line_in_the_middle_is_named(tmp_path):
    (tmp_path / "results.jsonl").write_text("nonsense\n" + json.dumps({}) + "\n")
    with pytest.raises(ResultsError, match="line 1"):
        load_results(tmp_path)


def test_other_settings_are_refused_by_name(tmp_path):
    ResultStore(tmp_path, {"task": "t", "seed": 0})
    with pytest.raises(ResultsError, match="seed"):
        ResultStore(tmp_path, {"task": "t", "seed": 1})
