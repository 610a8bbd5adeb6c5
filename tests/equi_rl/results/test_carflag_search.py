# SPDX-License-Identifier: MIT
"""Specification of the search for settings on the line: equal effort for both agents."""

from __future__ import annotations

import csv
import math

import pytest

from equi_rl.carflag.a2c import A2CConfig
from equi_rl.cli.train import main as train
from equi_rl.results import carflag_search
from equi_rl.results.carflag_experiments import carflag_sweep
from equi_rl.results.carflag_search import Outcome, line_settings, main, settings_sweep
from equi_rl.training.run_folder import RunFolder


def test_both_agents_get_the_same_settings_worlds_and_seeds():
    by_agent = {
        agent: {
            (name.partition("/")[0], *(word for word in arguments if word != agent))
            for name, arguments in settings_sweep()
            if agent in arguments and name.startswith("setting")
        }
        for agent in ("equi-ra2c", "ra2c")
    }
    assert len(by_agent["ra2c"]) == 2 * carflag_search.SETTINGS  # two lines
    assert by_agent["equi-ra2c"] == by_agent["ra2c"]


def test_the_tuned_setting_is_among_the_draws_and_draws_are_the_same_every_time():
    assert line_settings()[0] == A2CConfig()
    assert len(set(line_settings())) == carflag_search.SETTINGS
    assert line_settings() == line_settings()


def test_no_seed_of_a_published_curve_is_used():
    published = {seed for run in carflag_sweep() for seed in run.seeds}
    names = ("SEEDS", "FINAL_SEEDS", "COMMON_SEEDS")
    used = [seed for name in names for seed in getattr(carflag_search, name)]
    assert published.isdisjoint(used)
    assert len(set(used)) == len(used)


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
    assert Outcome(equivariant, plain).ratio_text == said  # runs end after 320k


def test_the_table_counts_who_needs_fewer_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(carflag_search, "SETTINGS", 2)
    monkeypatch.setattr(carflag_search, "FINAL_SEEDS", (300, 301))
    monkeypatch.setattr(carflag_search, "COMMON_SEEDS", (320,))
    monkeypatch.setattr(carflag_search, "OWN_BEST", {"equi-ra2c": 0, "ra2c": 0})
    # given finished runs in which RA2C arrives two evaluations later, with every setting
    for name, arguments in settings_sweep():
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
    # and what each agent needs at its own best: 0.6 is reached one evaluation earlier
    assert text.count("| 40 apart | **ratio** | 1.5 | 1.4 | 1.4 | |") == 2
    assert "| 40 apart | Equi-RA2C | 0k (2) |" in text
    # when a run is not at its end, nothing is written
    (tmp_path / "carflag_settings.md").unlink()
    progress = tmp_path / "runs" / name / "progress.csv"
    whole = progress.read_text()
    progress.write_text("\n".join(whole.splitlines()[:-1]) + "\n")
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path)]) == 2
    progress.write_text(whole)
    # when another setting is said to be the best, nothing is written either
    monkeypatch.setattr(carflag_search, "OWN_BEST", {"equi-ra2c": 0, "ra2c": 1})
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path)]) == 2
    assert not (tmp_path / "carflag_settings.md").exists()


def test_an_unfinished_grid_is_named(tmp_path, capsys):
    assert main(["--runs", str(tmp_path), "--out", str(tmp_path)]) == 2
    assert "not finished" in capsys.readouterr().err
    assert not (tmp_path / "carflag_settings.md").exists()
