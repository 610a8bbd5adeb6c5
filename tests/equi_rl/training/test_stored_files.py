# SPDX-License-Identifier: MIT
"""Files that earlier versions stored, under the names of their time, still load.

`tests/equi_rl/stored` was written by version 0.1.0 of the training package.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from equi_rl.carflag.run import CarFlagRun
from equi_rl.carflag.trainer import CarFlagTrainer
from equi_rl.cli.report import main as report
from equi_rl.data.demonstrations import DemoSet
from equi_rl.data.replay_buffer import stored_episodes
from equi_rl.results.robot_curves import read_robot_runs
from equi_rl.training.presets import PRESETS, robot_run
from equi_rl.training.renames import SETTINGS, current_settings, flatten, replay_folder
from equi_rl.training.run_folder import RunFolder, RunFolderError
from equi_rl.training.trainer import RobotTrainer

STORED = Path(__file__).parents[1] / "stored"


@pytest.fixture
def robot_folder(tmp_path: Path) -> Path:
    """A copy of the stored robot run, which a test may write to."""
    return Path(shutil.copytree(STORED / "robot_run", tmp_path / "run"))


def the_stored_robot_run(**changes):
    """Its settings as they are written today."""
    small: dict[str, object] = {
        "demonstrations": 1,
        "rounds": 1,
        "episodes_per_round": 1,
        "updates_per_round": 1,
    }
    small |= {"batch_episodes": 1, "evaluation_episodes": 1, "imitation": {"updates": 1}}
    return robot_run("block_picking", "ship", **{**small, **changes})


def test_an_old_robot_run_has_the_settings_of_today(robot_folder):
    assert '"hand_over_within"' in (robot_folder / "config.json").read_text()
    stored = RunFolder(robot_folder).read_config()["config"]
    today = flatten(the_stored_robot_run().to_mapping())
    assert flatten(stored).items() <= today.items()


def test_an_old_robot_run_can_be_read_but_not_resumed(robot_folder):
    # Its episodes do not say what was requested, so a critic could not go on learning from them.
    assert [row["rounds"] for row in RunFolder(robot_folder).read_progress()] == ["0", "1"]
    trainer = RobotTrainer(the_stored_robot_run(), robot_folder)
    with pytest.raises(
        RunFolderError, match=r"cannot be resumed: its data format is 1.*continues 2.*start the run"
    ):
        trainer.train(resume=True)


def test_the_episodes_of_an_old_robot_run_are_found_in_its_folder_memory(robot_folder, tmp_path):
    assert replay_folder(robot_folder) == robot_folder / "memory"
    (episode,) = stored_episodes(replay_folder(robot_folder), n_added=1)
    assert episode.is_demonstration
    assert episode.succeeded
    assert replay_folder(tmp_path / "new") == tmp_path / "new" / "replay"


def test_an_old_carflag_run_goes_on_from_its_checkpoint(tmp_path):
    folder = Path(shutil.copytree(STORED / "carflag_run", tmp_path / "run"))
    run = CarFlagRun.from_json(RunFolder(folder).read_config()["config"])
    assert run.a2c.gae_lambda == 0.9
    trainer = CarFlagTrainer(run, folder)
    summary = trainer.train(resume=True)
    # Nothing was left to do: weights are those of the checkpoint.
    checkpoint = RunFolder(STORED / "carflag_run").load_checkpoint()
    assert checkpoint is not None
    np.testing.assert_array_equal(trainer.learners.parameters.numpy(), checkpoint[0]["parameters"])
    assert summary["steps"] == 400


def test_an_old_table_of_curves_is_read_in_the_words_of_today():
    overrides = {run.overrides for run in read_robot_runs(STORED / "robot_curves.csv")}
    assert overrides == {
        "critic warmup updates 0",
        "demonstration weight 0, critic warmup updates 0",
        "discount 0.9, td lambda 0",
        "policy ema 1",
        "imitation updates 0, imitation log std free, critic warmup updates 0",
    }


def test_a_report_from_an_old_table_is_written_with_the_column_names_of_today(tmp_path):
    assert report(["--curves", str(STORED / "robot_curves.csv"), "--out", str(tmp_path)]) == 0
    header = (tmp_path / "robot_curves.csv").read_text().splitlines()[0]
    assert header.split(",")[:5] == ["task", "preset", "agent", "overrides", "seed"]


def test_old_demonstrations_load():
    recorded = DemoSet.load(STORED / "demonstrations.npz")
    (demo,) = recorded.demos
    assert recorded.contract.task == "block_picking"
    assert demo.success
    assert demo.observation(0).shape == (2, 84, 84)


def test_every_new_name_is_a_setting_of_today():
    known = flatten(robot_run("block_picking", "reward").to_mapping())
    known |= flatten(CarFlagRun("carflag-1d").to_json())
    assert set(SETTINGS.values()) <= set(known)
    assert not set(SETTINGS) & set(known)


@pytest.mark.parametrize("preset", list(PRESETS))
def test_settings_of_today_are_read_as_they_are(preset):
    settings = robot_run("block_pulling", preset).to_mapping()
    assert current_settings(settings) == settings
