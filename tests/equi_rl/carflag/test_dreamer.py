# SPDX-License-Identifier: MIT
"""Dreamer runs: what they refuse, what sheeprl is told, and how its episodes become a curve."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import installer.baselines
import numpy as np
import pytest

from equi_rl.carflag.dreamer.run import DreamerRun
from equi_rl.carflag.dreamer.trainer import (
    ENVIRONMENT_NAME,
    DreamerError,
    baselines_python,
    points,
)
from equi_rl.carflag.dreamer.world import make_world
from equi_rl.carflag.run import RunConfigError
from equi_rl.cli import train
from equi_rl.results.carflag_curves import Case, collect
from equi_rl.training.run_folder import RunFolder


def test_without_make_baselines_one_sentence_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(DreamerError, match="run `make baselines` once"):
        baselines_python(tmp_path / ".venv")


def test_the_command_line_ends_with_that_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    words = ["dreamer", "--domain", "carflag-1d", "--folder", str(tmp_path / "run")]
    assert train.main(words) == 2
    assert "make baselines" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "run").exists()


def test_make_baselines_makes_the_environment_that_the_trainer_looks_for() -> None:
    assert installer.baselines.ENVIRONMENT_NAME == ENVIRONMENT_NAME


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"agent": "dreamer-v9"}, "choose dreamer-v2 or dreamer-v3"),
        ({"domain": "carflag-3d"}, "choose carflag-1d or carflag-2d"),
        ({"replay_ratio": 0.0}, "replay_ratio = 0.0"),
        ({"steps": 0}, "steps = 0"),
        ({"seed": -1}, "seed = -1"),
        ({"size": 7}, "size = 7"),
    ],
)
def test_a_run_that_cannot_be_is_refused_by_name(wrong: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        DreamerRun(**{"domain": "carflag-1d", **wrong})  # type: ignore[arg-type]


def test_an_agent_of_another_family_is_refused_by_name() -> None:
    with pytest.raises(RunConfigError, match="'equi-ra2c' is unknown"):
        DreamerRun("carflag-1d", "equi-ra2c")  # type: ignore[arg-type]


def test_the_arguments_describe_the_run_in_full() -> None:
    run = DreamerRun("carflag-2d", "dreamer-v2", seed=3, steps=1234)
    command = train.parse([*run.arguments(), "--folder", "x"])
    assert isinstance(command, train.DreamerCommand)
    assert command.run == run


def test_sheeprl_is_told_every_setting(tmp_path: Path) -> None:
    run = DreamerRun("carflag-1d", width=99, steps=4321, batch_size=7, sequence_steps=33, seed=5)
    told = run.overrides(tmp_path / "episodes", tmp_path / "out")
    for text in ("99", "4321", "=7", "33", "seed=5", str(tmp_path / "episodes")):
        assert any(text in override for override in told), text
    other = dataclasses.replace(run, agent="dreamer-v2").overrides(tmp_path, tmp_path)
    assert other[0] == "exp=dreamer_v2"


def test_a_world_shows_the_grid_cell_by_cell_and_writes_its_episodes_down(tmp_path: Path) -> None:
    world = make_world("carflag-2d", 9, 0, str(tmp_path), rank=2)
    seen, _ = world.reset(options={"cell": (0, 0), "goal": (0, 2)})
    assert seen.shape == (2 * 9 * 9,)
    assert np.flatnonzero(seen).tolist() == [0]
    world.step(0)
    world.step(0)
    world.reset(options={"cell": (8, 8), "goal": (0, 2)})
    for _ in range(50):
        world.step(0)
    assert (tmp_path / "2.csv").read_text() == "2,1\n52,0\n"


def test_points_of_the_curve_count_the_steps_of_all_worlds() -> None:
    logs = [[(40, True), (60, False), (110, True)], [(50, True), (100, True)]]
    # In steps of both worlds: 80 won, 100 won, 120 lost, 200 won, 220 won.
    assert points(logs, 100, 200) == [(100, 1.0, 2), (200, 0.5, 2)]


def test_the_report_reads_a_run_beside_those_of_other_agents(tmp_path: Path) -> None:
    run = DreamerRun("carflag-1d", seed=1, steps=10_000)
    folder = RunFolder(tmp_path / run.name)
    with folder.claim(run.to_json(), resume=False):
        folder.append_progress(
            [{"seed": 1, "steps": 5000 * i, "success": 0.25 * i, "episodes": 9} for i in (1, 2)]
        )
    curve = collect(tmp_path)[Case("carflag-1d", 50, 0, "dreamer-v3")]
    assert curve.success.tolist() == [[0.25, 0.5]]
    assert curve.is_complete
