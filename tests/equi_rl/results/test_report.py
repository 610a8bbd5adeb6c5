# SPDX-License-Identifier: MIT
"""Specification of equi-report: figures read off curves, tables, redrawing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equi_rl.cli.report import main
from equi_rl.cli.train import main as train
from equi_rl.results.carflag_curves import (
    Case,
    Cost,
    Curves,
    collect,
    read_costs,
    read_csv,
    write_costs,
    write_csv,
)
from equi_rl.results.carflag_report import lengths_differ_much, write_carflag_report
from equi_rl.results.tables import CurvesError

STEPS = np.arange(1, 11) * 1000


def curves(*rows, planned=10_000):
    return Curves(STEPS, np.array(rows, dtype=float), tuple(range(len(rows))), planned)


def rising_at(point):
    """Success 0 before a point (counted from 1), 1 from then on."""
    return [0.0] * (point - 1) + [1.0] * (11 - point)


def test_a_level_counts_as_reached_when_the_mean_of_three_evaluations_reaches_it():
    case = curves(rising_at(3), rising_at(11))
    assert case.steps_to(0.6).tolist() == [4000, math.inf]  # (0 + 1 + 1) / 3 at the fourth
    assert case.steps_to(0.95).tolist() == [5000, math.inf]


def test_one_lucky_evaluation_does_not_count():
    lucky = [0, 0, 1, 0, 0, 0, 0, 0, 0, 0]
    assert curves(lucky).steps_to(0.6).tolist() == [math.inf]


def test_the_final_success_is_the_mean_of_the_last_five():
    assert curves([0, 0, 0, 0, 0, 0.5, 0.6, 0.7, 0.8, 0.9]).final() == pytest.approx([0.7])


def test_a_run_that_did_not_reach_its_end_is_not_complete():
    assert curves(rising_at(3)).is_complete
    assert not curves(rising_at(3), planned=20_000).is_complete


def two_agents():
    return {
        Case("carflag-1d", 50, 0, "equi-ra2c"): curves(rising_at(2), rising_at(2)),
        Case("carflag-1d", 50, 0, "ra2c"): curves(rising_at(8), rising_at(8)),
        Case("carflag-1d", 40, 5, "equi-ra2c"): curves(rising_at(1), [0.5] * 10, planned=20_000),
    }


def test_the_table_tells_the_ratio_and_marks_unfinished_runs(tmp_path):
    write_carflag_report(two_agents(), tmp_path)
    text = (tmp_path / "carflag_results.md").read_text()
    assert "4 of the 6 runs" in text
    # Equi-RA2C reaches 0.95 at the 4th evaluation, RA2C at the 10th
    assert "| CarFlag-1D, 50 apart | **ratio** |  |  |  | 3.0 | 2.5 | 2.5 |" in text
    assert "0.01M *" in text
    assert "0.75 ± 0.25 | 0.99 ± 0.03 | 1.00 |" in text


def test_a_baseline_that_never_arrives_gives_a_bound(tmp_path):
    cases = two_agents()
    cases[Case("carflag-1d", 50, 0, "ra2c")] = curves(rising_at(11), rising_at(11))
    write_carflag_report(cases, tmp_path)
    assert "| > 3.3 | > 2.5 | > 2.5 |" in (tmp_path / "carflag_results.md").read_text()


def test_a_baseline_that_was_cut_short_gives_no_bound(tmp_path):
    cases = two_agents()
    never = curves(rising_at(11), rising_at(11), planned=20_000)
    cases[Case("carflag-1d", 50, 0, "ra2c")] = never
    write_carflag_report(cases, tmp_path)
    assert "| **ratio** |  |  |  | - | - | - |" in (tmp_path / "carflag_results.md").read_text()


def test_curves_survive_their_table_and_can_be_redrawn(tmp_path):
    write_csv(two_agents(), tmp_path / "curves.csv")
    loaded = read_csv(tmp_path / "curves.csv")
    for case, curve in two_agents().items():
        assert np.array_equal(loaded[case].success, curve.success)
        assert loaded[case].planned_steps == curve.planned_steps
    out = tmp_path / "redrawn"
    assert main(["--curves", str(tmp_path / "curves.csv"), "--out", str(out)]) == 0
    assert sorted(path.name for path in (out / "images").iterdir()) == [
        "carflag_main.png",
        "carflag_offsets_1d.png",
    ]


def test_real_runs_become_a_report(tmp_path):
    for agent in ("equi-ra2c", "ra2c"):
        arguments = ["carflag", "--domain", "carflag-1d", "--agent", agent, "--seeds", "0", "1"]
        arguments += ["--steps", "100", "--evaluate-every", "50", "--evaluation-episodes", "4"]
        arguments += ["--a2c.envs", "2", "--a2c.rollout-steps", "5"]
        assert train([*arguments, "--folder", str(tmp_path / "runs" / agent)]) == 0
    assert len(collect(tmp_path / "runs")) == 2
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "images" / "carflag_main.png").stat().st_size > 1000
    assert "The 4 finished runs took" in (tmp_path / "out" / "carflag_results.md").read_text()


def test_new_runs_take_their_place_among_those_of_an_earlier_report(tmp_path):
    earlier = two_agents()
    write_csv(earlier, tmp_path / "carflag_curves.csv")
    old = Cost("carflag-1d", 40, "ra2c", learners=4, steps=4_000_000, wall_s=120.0, cpu_s=100.0)
    write_costs([old], tmp_path / "carflag_costs.csv")
    arguments = ["carflag", "--domain", "carflag-1d", "--agent", "ra2c", "--seeds", "0", "1"]
    arguments += ["--steps", "100", "--evaluate-every", "50", "--evaluation-episodes", "4"]
    arguments += ["--a2c.envs", "2", "--a2c.rollout-steps", "5"]
    assert train([*arguments, "--folder", str(tmp_path / "runs")]) == 0

    sources = ["--runs", str(tmp_path / "runs"), "--curves", str(tmp_path / "carflag_curves.csv")]
    assert main([*sources, "--out", str(tmp_path / "out")]) == 0

    merged = read_csv(tmp_path / "out" / "carflag_curves.csv")
    assert merged.keys() == earlier.keys()
    assert merged[Case("carflag-1d", 50, 0, "ra2c")].planned_steps == 100
    kept = Case("carflag-1d", 50, 0, "equi-ra2c")
    assert np.array_equal(merged[kept].success, earlier[kept].success)
    costs = {cost.kind: cost for cost in read_costs(tmp_path / "out" / "carflag_costs.csv")}
    assert costs[old.kind] == old
    assert costs["carflag-1d", 50, "ra2c"].steps == 200
    assert costs["carflag-1d", 50, "ra2c"].parameters > 10_000
    assert "The 6 finished runs took" in (tmp_path / "out" / "carflag_results.md").read_text()


def test_the_table_of_costs_says_how_large_a_network_is_and_how_long_one_run_takes(tmp_path):
    cost = Cost("carflag-1d", 50, "ra2c", 4, 4_000_000, 900.0, cpu_s=120.0, parameters=17_347)
    write_carflag_report(two_agents(), tmp_path, [cost])
    table = (tmp_path / "carflag_results.md").read_text()
    assert "| RA2C | 4 | 17,347 | 1,000,000 | 0.5 | 33,333 | 4,444 |" in table


def test_curves_of_very_different_lengths_share_a_logarithmic_axis():
    short = Curves(STEPS / 20, np.ones((1, 10)), (0,), 500)
    assert lengths_differ_much([curves(rising_at(2)), short])
    assert not lengths_differ_much([curves(rising_at(2)), curves(rising_at(3))])


def test_a_report_needs_a_source(tmp_path):
    assert main(["--out", str(tmp_path)]) == 2


def test_a_foreign_table_of_costs_is_refused(tmp_path):
    (tmp_path / "costs.csv").write_text("a,b\n1,2\n")
    with pytest.raises(CurvesError, match="not a table of costs"):
        read_costs(tmp_path / "costs.csv")


def test_a_folder_without_runs_and_a_foreign_table_are_refused(tmp_path):
    with pytest.raises(CurvesError, match="no run"):
        collect(tmp_path)
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(CurvesError, match="not a table of curves"):
        read_csv(tmp_path / "other.csv")
