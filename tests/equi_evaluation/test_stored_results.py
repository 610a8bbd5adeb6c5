# SPDX-License-Identifier: MIT
"""An evaluation folder of an earlier version still loads, resumes and reports."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from full_disk import files_limited_to

from equi_evaluation.report import write_report
from equi_evaluation.results import ResultStore, load_results, load_settings

STORED = Path(__file__).parent / "stored"


def test_stored_results_load_with_all_their_fields():
    first, second = load_results(STORED)

    assert (first.seed, first.success, first.first_try, first.steps) == (0, True, "immovable", 9)
    assert first.latencies_ms == {"policy: forward pass": {"p50": 2.0, "p99": 4.0}}
    assert (second.outcome, second.reason) == ("STEP_LIMIT", "50 steps without success")
    assert second.label_source == "operator"


def test_a_stored_evaluation_resumes_and_reports(tmp_path):
    shutil.copytree(STORED, tmp_path, dirs_exist_ok=True)

    assert len(ResultStore(tmp_path, load_settings(tmp_path)).results) == 2
    assert "1 / 2" in write_report(tmp_path).read_text()


def test_an_evaluation_begun_before_weights_were_stored_resumes_and_one_of_other_weights_does_not(
    tmp_path,
):
    from equi_evaluation.results import ResultsError

    shutil.copytree(STORED, tmp_path / "old")
    earlier = load_settings(tmp_path / "old")
    assert "weights" not in earlier
    assert len(ResultStore(tmp_path / "old", {**earlier, "weights": "ab"}).results) == 2
    ResultStore(tmp_path / "new", {**earlier, "weights": "ab"})
    with pytest.raises(ResultsError, match="an evaluation with weights = 'ab', not 'cd'"):
        ResultStore(tmp_path / "new", {**earlier, "weights": "cd"})


def test_a_full_disk_leaves_the_results_as_they_were(tmp_path):
    from equi_evaluation.results import EpisodeResult, ResultsError, ResultStore

    def result(name: str, reason: str) -> EpisodeResult:
        return EpisodeResult(name, 1, "SUCCEEDED", reason, True, "operator", "none", 3, 1.0)

    store = ResultStore(tmp_path, {"task": "t"})
    store.add(result("first", "short"))
    with (
        files_limited_to((tmp_path / "results.jsonl").stat().st_size + 40),
        pytest.raises(ResultsError, match="second"),
    ):
        store.add(result("second", "x" * 1000))
    assert [item.episode_id for item in load_results(tmp_path)] == ["first"]
    store.add(result("third", "there is room again"))
    assert [item.episode_id for item in load_results(tmp_path)] == ["first", "third"]
