# SPDX-License-Identifier: MIT
"""Specification of `equi-train slac`: short runs, resumed ones, and refusals by name."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest
from slac_runs import a_batch, moving_square, tiny_model, tiny_slac
from training_runs import Killed, killed_after

from equi_rl.cli.evaluate import main as evaluate
from equi_rl.cli.train import main
from equi_rl.data.replay_buffer import EPISODE_FORMAT
from equi_rl.nets.checkpoint import CheckpointError
from equi_rl.results.robot_curves import collect_robot_runs
from equi_rl.slac.config import LatentModelConfig, SlacConfigError, SlacRun
from equi_rl.slac.learner import SlacLearner
from equi_rl.slac.metrics import COLUMNS, METRICS
from equi_rl.slac.stored_run import is_slac_run, load_learner, policy_digest
from equi_rl.slac.trainer import SlacTrainer
from equi_rl.training.presets import robot_run
from equi_rl.training.run_folder import RunFolder, RunFolderError


def test_the_data_are_those_of_the_published_recipe():
    run, paper = SlacRun("block_picking"), robot_run("block_picking", "paper")
    for name in (
        *("demonstrations", "random_episodes", "first_choice", "rotate", "batch_episodes"),
        *("replay_capacity", "environment_steps", "updates_per_step", "env_options"),
    ):
        assert getattr(run, name) == getattr(paper, name), name
    for name in ("discount", "tau", "initial_temperature", "target_entropy"):
        assert getattr(run, name) == getattr(paper.sac, name), name
    assert run.latent_updates == 2000
    assert run.model.image_size == 64


def test_a_run_survives_its_own_description():
    run = tiny_slac(seed=3)
    assert SlacRun.from_mapping(json.loads(json.dumps(run.to_mapping()))) == run
    with pytest.raises(SlacConfigError, match="agent is 'rsac'"):
        SlacRun.from_mapping({"agent": "rsac"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "carflag-1d"}, "task is 'carflag-1d'; it must be one of block_picking"),
        ({"seed": 400}, "seed is 400; it must be between 0 and 399"),
        ({"discount": 1.5}, "discount is 1.5; it must be between 0 and 1"),
        ({"tau": 0.0}, "tau is 0.0; it must be above 0"),
        ({"batch_episodes": 0}, "batch_episodes is 0; it must be at least 1"),
        ({"latent_updates": -1}, "latent_updates is -1; it must be at least 0"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0; it must be positive"),
        ({"demonstrations": 0, "random_episodes": 0}, "demonstrations is 0; it must be positive"),
    ],
)
def test_a_run_that_cannot_be_is_refused_by_name(changes, message):
    with pytest.raises(SlacConfigError, match=re.escape(message)):
        tiny_slac(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"image_size": 60}, "model.image_size is 60; it must be a multiple of 16"),
        ({"channels": ()}, "model.channels is (); it must be one width or more"),
        ({"channels": (4, 0)}, "model.channels is (4, 0); it must be widths of at least 1"),
        ({"z1_size": 0}, "model.z1_size is 0; it must be at least 1"),
        ({"image_std": 0.0}, "model.image_std is 0.0; it must be positive"),
    ],
)
def test_a_latent_model_that_cannot_be_is_refused_by_name(changes, message):
    with pytest.raises(SlacConfigError, match=re.escape(message)):
        LatentModelConfig(**changes)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("robot", "--task", "block_picking", "--agent", "slac"),
            ("agent is 'slac'", "`equi-train slac`"),
        ),
        (("slac", "--domain", "carflag-2d"), ("domain is 'carflag-2d'", "equi-train carflag")),
        (("slac", "--task", "carflag-1d"), ("task is 'carflag-1d'", "block_picking", "CarFlag")),
        (
            ("carflag", "--domain", "carflag-1d", "--agent", "slac"),
            ("agent is 'slac'", "equi-train slac --task"),
        ),
        (
            ("dreamer", "--domain", "carflag-1d", "--agent", "slac"),
            ("agent is 'slac'", "equi-train slac --task"),
        ),
    ],
)
def test_an_agent_is_refused_by_name_where_it_does_not_exist(tmp_path, capsys, arguments, words):
    assert main([*arguments, "--folder", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert all(word in said for word in words), said
    assert not (tmp_path / "run").exists()


def test_a_flag_of_the_latent_model_is_refused_by_name(tmp_path, capsys):
    words = ["slac", "--task", "block_picking", "--model.image-size", "60"]
    with pytest.raises(SystemExit):
        main([*words, "--folder", str(tmp_path / "run")])
    said = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert "model.image_size is 60; it must be a multiple of 16" in said


def test_a_folder_of_another_agent_is_no_run_of_slac(tmp_path):
    assert not is_slac_run(tmp_path)
    folder = RunFolder(tmp_path / "other")
    other = robot_run("block_picking", "paper").to_mapping()
    with folder.claim(other, resume=False, data_format=EPISODE_FORMAT):
        pass
    assert not is_slac_run(tmp_path / "other")
    with pytest.raises(RunFolderError, match="belongs to another run: actor_critic_updates"):
        SlacTrainer(tiny_slac(), tmp_path / "other").train(resume=True)


def test_a_run_without_a_checkpoint_cannot_be_evaluated(tmp_path, capsys):
    with RunFolder(tmp_path).claim(tiny_slac().to_mapping(), resume=False):
        pass
    with pytest.raises(CheckpointError, match="no checkpoint yet"):
        load_learner(tmp_path)
    assert evaluate([str(tmp_path), "--episodes", "1"]) == 2
    assert "no checkpoint yet" in capsys.readouterr().err


def test_everything_that_is_learnt_has_a_column():
    learner = SlacLearner(tiny_slac(latent_updates=0))
    logged = learner.update(a_batch([moving_square(4, 0)]))
    assert set(logged) <= set(METRICS) <= set(COLUMNS)


def test_every_metric_of_the_latent_model_is_explained(repository_root):
    page = (repository_root / "training" / "docs" / "slac.md").read_text()
    explained = re.findall(r"^\| `(\w+)` \| \S", page, flags=re.MULTILINE)
    shared = (repository_root / "training" / "docs" / "metrics.md").read_text()
    elsewhere = re.findall(r"^\| `(\w+)` \| \S", shared, flags=re.MULTILINE)
    assert set(METRICS) - set(elsewhere) <= set(explained)


def test_a_checkpoint_is_loaded_as_the_policy_that_was_saved(tmp_path):
    trainer = SlacTrainer(tiny_slac(), tmp_path)
    with trainer.folder.claim(trainer.run.to_mapping(), resume=False):
        trainer.learner.update(a_batch([moving_square(4, 0)]))
        trainer.save()
    assert is_slac_run(tmp_path)
    loaded = load_learner(tmp_path)
    assert policy_digest(loaded) == policy_digest(trainer.learner)
    assert loaded.updates == 1
    seen = np.zeros((2, 84, 84), dtype=np.float32)
    one, two = (learner.policy() for learner in (trainer.learner, loaded))
    np.testing.assert_array_equal(
        one.act(seen, np.zeros(5), one.start(0))[0], two.act(seen, np.zeros(5), two.start(0))[0]
    )


@pytest.mark.slow
def test_a_killed_run_ends_like_one_that_was_not_and_is_evaluated_and_reported(tmp_path, capsys):
    run = tiny_slac(model=tiny_model(image_size=64))
    SlacTrainer(run, tmp_path / "straight").train()
    with pytest.raises(Killed):
        SlacTrainer(run, tmp_path / "killed").train(report=killed_after(rounds=1))
    summary = SlacTrainer(run, tmp_path / "killed").train(resume=True)
    one, two = (RunFolder(tmp_path / name).load_checkpoint() for name in ("straight", "killed"))
    assert one is not None
    assert two is not None
    assert one[0].keys() == two[0].keys()
    for name, array in one[0].items():
        np.testing.assert_array_equal(array, two[0][name], err_msg=name)
    assert summary["environment_steps"] >= 260
    assert summary["updates"] > 2

    assert evaluate([str(tmp_path / "killed"), "--episodes", "2", "--workers", "1"]) == 0
    assert "0/2" in capsys.readouterr().out
    (first, second) = collect_robot_runs(tmp_path)
    assert (first.task, first.preset, first.agent) == ("block_picking", "paper", "slac")
    assert "batch episodes 2" in first.overrides
    assert "model image size" not in first.overrides
    assert first.evaluations[-1].environment_steps == second.evaluations[-1].environment_steps
    extended = dataclasses.replace(run, environment_steps=320)
    assert SlacTrainer(extended, tmp_path / "killed").train(resume=True)["rounds"] > 0
