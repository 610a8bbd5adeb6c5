# SPDX-License-Identifier: MIT
"""Specification of the report on robot runs: what is averaged, and what is never mixed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from equi_rl.cli.report import main
from equi_rl.results import robot_report
from equi_rl.results.robot_curves import collect_robot_runs, read_robot_runs, robot_curves
from equi_rl.results.robot_report import CONTROLS, write_robot_report
from equi_rl.training.presets import robot_run

HEADER = "rounds,updates,environment_steps,seconds,successes,episodes,mean_length"


def write_run(folder, rows, **settings):
    """A run folder as the trainer leaves it; rows are (steps, successes of 10)."""
    folder.mkdir(parents=True)
    run = robot_run("block_picking", settings.pop("preset", "reward"), **settings)
    (folder / "config.json").write_text(json.dumps({"config": run.to_mapping()}))
    lines = [f"{i},{i * 5},{steps},60.0,{won},10,8.0" for i, (steps, won) in enumerate(rows, 1)]
    (folder / "progress.csv").write_text("\n".join([HEADER, *lines]) + "\n")


def test_seeds_are_averaged_over_the_evaluations_that_all_of_them_have(tmp_path):
    write_run(tmp_path / "a", [(100, 2), (200, 6), (300, 9)], agent="rsac", seed=0)
    write_run(tmp_path / "b", [(120, 4), (240, 8)], agent="rsac", seed=1)
    ((panel, curves),) = robot_curves(collect_robot_runs(tmp_path)).items()
    assert panel == ("block_picking", "reward")
    (curve,) = curves
    np.testing.assert_allclose(curve.steps, [110, 220])
    np.testing.assert_allclose(curve.success, [[0.2, 0.6], [0.4, 0.8]])
    assert (curve.last.successes, curve.last.episodes) == (14, 20)


def test_agents_are_compared_where_the_shortest_curve_ends(tmp_path):
    write_run(tmp_path / "runs" / "a", [(100, 2), (200, 6)], agent="rsac")
    write_run(tmp_path / "runs" / "b", [(100, 4), (300, 8)], agent="equi-rsac")
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "docs")]) == 0
    table = (tmp_path / "docs" / "robot_results.md").read_text()
    # Half of the way from 0.4 to 0.8, not the 0.8 that it ends with.
    equal = {
        line.split("|")[3].strip(): line.split("|")[9].strip()
        for line in table.splitlines()
        if line.startswith("| block_picking")
    }
    assert equal == {"RSAC": "0.60 (200)", "Equi-RSAC": "0.60 (200)"}


def test_presets_and_ablations_are_kept_apart(tmp_path):
    write_run(tmp_path / "a", [(100, 2)])
    write_run(tmp_path / "b", [(100, 3)], preset="ship")
    write_run(tmp_path / "c", [(100, 4)], demonstrations=20)
    panels = robot_curves(collect_robot_runs(tmp_path))
    assert set(panels) == {("block_picking", "reward"), ("block_picking", "ship")}
    labels = [curve.label for curve in panels["block_picking", "reward"]]
    assert labels == ["Equi-RSAC", "Equi-RSAC, demonstrations 20"]


def test_the_command_writes_table_and_figure(tmp_path):
    write_run(tmp_path / "runs" / "a", [(100, 2), (200, 10)])
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "docs")]) == 0
    table = (tmp_path / "docs" / "robot_results.md").read_text()
    assert "Equi-RSAC | 1 | 200 | 10 | 0.200 (2/10, 95 % 0.057 to 0.510) | 1.000 (10/10" in table
    assert (tmp_path / "docs" / "images" / "robot_reward.png").stat().st_size > 5_000


def test_a_folder_without_runs_is_refused(tmp_path, caplog):
    assert main(["--runs", str(tmp_path), "--out", str(tmp_path / "docs")]) == 2
    assert "holds no run" in caplog.text


@pytest.mark.parametrize("row", ["2,10,20", ""])
def test_a_half_written_row_is_left_out(tmp_path, row):
    write_run(tmp_path / "a", [(100, 2)])
    with (tmp_path / "a" / "progress.csv").open("a") as stream:
        stream.write(row)
    ((_, (curve,)),) = robot_curves(collect_robot_runs(tmp_path)).items()
    assert len(curve.steps) == 1


def test_a_later_report_adds_runs_to_an_earlier_ones_table(tmp_path):
    docs = tmp_path / "docs"
    write_run(tmp_path / "first" / "a", [(100, 2)], agent="rsac", seed=0)
    write_run(tmp_path / "first" / "b", [(100, 3)], agent="rsac", seed=1, demonstrations=20)
    write_run(tmp_path / "second" / "a", [(100, 5)], agent="rsac", seed=0)
    write_run(tmp_path / "second" / "c", [(100, 7)], agent="rsac", seed=2)
    earlier = docs / "robot_curves.csv"
    assert main(["--runs", str(tmp_path / "first"), "--out", str(docs)]) == 0
    both = ["--runs", str(tmp_path / "second"), "--curves", str(earlier), "--out", str(docs)]
    assert main(both) == 0
    won = {
        (run.seed, run.overrides): run.evaluations[0].successes for run in read_robot_runs(earlier)
    }
    assert won == {(0, ""): 5, (1, "demonstrations 20"): 3, (2, ""): 7}
    before = {path: path.read_bytes() for path in docs.rglob("*.md")}
    assert main(["--curves", str(earlier), "--out", str(docs)]) == 0
    assert before == {path: path.read_bytes() for path in docs.rglob("*.md")}


def test_a_table_of_something_else_is_refused_and_named(tmp_path, caplog):
    (tmp_path / "robot_curves.csv").write_text("colour,size\nred,3\n")
    curves = str(tmp_path / "robot_curves.csv")
    assert main(["--curves", curves, "--out", str(tmp_path / "docs")]) == 2
    assert "robot_curves.csv is not a table of curves" in caplog.text
    assert not (tmp_path / "docs").exists()


def test_a_setting_is_named_with_what_it_belongs_to(tmp_path):
    write_run(tmp_path / "a", [(100, 2)], imitation={"learning_rate": 1e-3})
    (run,) = collect_robot_runs(tmp_path)
    assert run.overrides == "imitation learning rate 0.001"


def test_a_variant_is_shown_beside_the_same_seeds_of_its_agent(tmp_path):
    write_run(tmp_path / "a", [(100, 2)], seed=0)
    write_run(tmp_path / "b", [(100, 8)], seed=1)
    ((_, (curve,)),) = robot_curves(collect_robot_runs(tmp_path)).items()
    np.testing.assert_allclose(curve.of_seeds((1,)).success, [[0.8]])
    assert curve.of_seeds((1,)).seeds == (1,)
    assert curve.of_seeds((7,)) is curve


def test_controls_are_drawn_with_the_agents_and_not_as_variants(tmp_path):
    rows = [(100, 2), (200, 6)]
    write_run(tmp_path / "runs" / "a", rows, preset="brief")
    write_run(tmp_path / "runs" / "b", rows, preset="brief", asymmetric={"reward_scale": 0.0})
    write_run(tmp_path / "runs" / "c", rows, preset="brief", asymmetric={"teacher": "successes"})
    curves = robot_curves(collect_robot_runs(tmp_path / "runs"))["block_picking", "brief"]
    assert {curve.overrides for curve in curves} == {"", *CONTROLS}
    names = {
        path.name for path in write_robot_report(collect_robot_runs(tmp_path / "runs"), tmp_path)
    }
    assert "robot_brief.png" in names
    assert "robot_brief_variants.png" not in names
    # without their agent there is nothing that they control
    alone = [run for run in collect_robot_runs(tmp_path / "runs") if run.overrides]
    assert "robot_brief_variants.png" in {p.name for p in write_robot_report(alone, tmp_path)}


def test_the_last_evaluation_of_all_seeds_is_drawn_with_its_interval(tmp_path, monkeypatch):
    write_run(tmp_path / "a", [(100, 2), (200, 6)], seed=0)
    write_run(tmp_path / "b", [(100, 4), (200, 8)], seed=1)
    drawn = []
    monkeypatch.setattr(robot_report, "save_figure", lambda figure, *_: drawn.append(figure))
    write_robot_report(collect_robot_runs(tmp_path), tmp_path / "docs")
    (figure,) = drawn
    bars = [line for line in figure.axes[0].collections if isinstance(line, LineCollection)]
    ((low, high),) = [bar.get_segments()[0][:, 1] for bar in bars]
    # Wilson's formula for 14 of 20, z = 1.96, by hand.
    assert (low, high) == pytest.approx((0.481, 0.855), abs=1e-3)
