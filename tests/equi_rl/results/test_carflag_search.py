# SPDX-License-Identifier: MIT
"""Specification of the searches for CarFlag settings: equal effort for both agents."""

from __future__ import annotations

import csv
import dataclasses
import math

import pytest

from equi_rl.carflag.run import TUNED_A2C
from equi_rl.cli.train import main as train
from equi_rl.results import carflag_search_report
from equi_rl.results.carflag_experiments import carflag_sweep
from equi_rl.results.carflag_search import GRID, LINE
from equi_rl.results.carflag_search_report import Outcome, main, own_best
from equi_rl.training.run_folder import RunFolder

SEARCHES = pytest.mark.parametrize("search", [LINE, GRID], ids=lambda search: search.domain)


@SEARCHES
def test_both_agents_get_the_same_settings_worlds_and_seeds(search):
    by_agent = {
        agent: {
            (name.partition("/")[0], *(word for word in arguments if word != agent))
            for name, arguments in search.sweep()
            if agent in arguments and name.startswith("setting")
        }
        for agent in ("equi-ra2c", "ra2c")
    }
    assert len(by_agent["ra2c"]) == len(search.sizes) * 16
    assert by_agent["equi-ra2c"] == by_agent["ra2c"]


@SEARCHES
def test_the_tuned_setting_is_among_the_draws_and_draws_are_the_same_every_time(search):
    assert search.settings()[0] == TUNED_A2C[search.domain]
    assert len(set(search.settings())) == 16
    assert search.settings() == search.settings()


@SEARCHES
def test_no_seed_of_a_published_curve_is_used(search):
    published = {seed for run in carflag_sweep() for seed in run.seeds}
    used = [*search.seeds, *search.common_seeds]
    assert published.isdisjoint(used)
    assert len(set(used)) == len(used)


def test_published_curves_show_each_agent_with_its_own_best_setting_and_others_with_the_tuned_one():
    for run in carflag_sweep():
        search = LINE if run.domain == "carflag-1d" else GRID
        number = search.own_best.get(run.agent, 0)
        assert run.a2c == search.settings()[number]
    assert {run.agent for run in carflag_sweep()} == {"equi-ra2c", "ra2c", "dpfrl"}


def test_where_no_setting_arrives_the_highest_success_is_the_best():
    never = math.inf
    outcomes = [
        {9: Outcome(500e3, never, 800_000, 1.0, 0.2)},
        {9: Outcome(400e3, never, 800_000, 1.0, 0.7)},
        {9: Outcome(never, never, 800_000, 0.9, 0.6)},
    ]
    assert own_best(outcomes) == {"equi-ra2c": 1, "ra2c": 1}


@pytest.mark.parametrize(
    ("equivariant", "plain", "said"),
    [
        (100e3, 150e3, "1.5"),
        (160e3, math.inf, "> 2.0"),
        (math.inf, 80e3, "< 0.2"),
        (math.inf, math.inf, "-"),
    ],
)
def test_an_agent_that_does_not_arrive_gives_a_bound(equivariant, plain, said):
    assert Outcome(equivariant, plain, limit=320_000).ratio_text == said


def test_the_table_counts_who_needs_fewer_steps(tmp_path, monkeypatch):
    search = dataclasses.replace(
        LINE,
        settings_count=2,
        common_seeds=(320,),
        own_best={"equi-ra2c": 0, "ra2c": 0},
    )
    monkeypatch.setitem(carflag_search_report.SEARCHES, "carflag-1d", search)
    # given finished runs in which RA2C arrives two evaluations later, with every setting
    for name, arguments in search.sweep():
        folder = tmp_path / "runs" / name
        short = ["--steps", "400", "--evaluate-every", "40", "--evaluation-episodes", "1"]
        tiny = ["--a2c.envs", "2", "--a2c.rollout-steps", "20"]
        assert train([*arguments, *short, *tiny, "--folder", str(folder)]) == 0
        run = RunFolder(folder)
        rows = run.read_progress()
        arrives = 120 if "equi-ra2c" in arguments else 200
        for row in rows:
            row["success"] = str(float(int(row["steps"]) >= arrives))
        with open(folder / "progress.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    # when the table is written
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path)]) == 0
    # then it says so: the mean of three evaluations is 1 two evaluations after the first
    text = (tmp_path / "carflag_settings.md").read_text()
    assert text.count("Equi-RA2C needs fewer steps with 2 of 2 settings and more with 0") == 2
    assert "(ratio 1.4)" in text  # 280 steps against 200
    # and what each agent needs with the common defaults: 0.6 is reached one evaluation earlier
    assert text.count("| 40 apart | **ratio** | 1.5 | 1.4 | 1.4 | |") == 1
    assert "| 40 apart | Equi-RA2C | 0k (1) |" in text
    # when a run is not at its end, nothing is written
    (tmp_path / "carflag_settings.md").unlink()
    progress = tmp_path / "runs" / name / "progress.csv"
    whole = progress.read_text()
    progress.write_text("\n".join(whole.splitlines()[:-1]) + "\n")
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path)]) == 2
    progress.write_text(whole)
    # when another setting is said to be the best, nothing is written either
    other = dataclasses.replace(search, own_best={"equi-ra2c": 0, "ra2c": 1})
    monkeypatch.setitem(carflag_search_report.SEARCHES, "carflag-1d", other)
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path)]) == 2
    assert not (tmp_path / "carflag_settings.md").exists()


def test_an_unfinished_grid_is_named(tmp_path, capsys):
    assert main(["--runs", str(tmp_path), "--out", str(tmp_path)]) == 2
    assert "not finished" in capsys.readouterr().err
    assert not (tmp_path / "carflag_settings.md").exists()
