# SPDX-License-Identifier: MIT
"""Runs that are refused, or stopped, with a reason; a folder is never mistaken for another."""

from __future__ import annotations

import pytest
import torch
from training_runs import Killed, a_tiny_run, killed_after

from equi_rl.agents.learner import DivergedError, require_finite
from equi_rl.nets.checkpoint import load_checkpoint
from equi_rl.training.config import RobotConfigError
from equi_rl.training.presets import robot_run
from equi_rl.training.run_folder import RunFolderError
from equi_rl.training.trainer import RobotTrainer


def test_only_weights_and_episodes_can_be_taken_over():
    with pytest.raises(RobotConfigError, match=r"imitation\.updates 0"):
        a_tiny_run(continues="runs/first")


def test_a_folder_is_not_used_twice_and_not_by_another_run(tmp_path):
    with pytest.raises(Killed):
        RobotTrainer(a_tiny_run(), tmp_path / "run").train(report=killed_after(rounds=0))
    with pytest.raises(RunFolderError, match="--resume"):
        RobotTrainer(a_tiny_run(), tmp_path / "run").train()
    with pytest.raises(RunFolderError, match="rounds"):
        RobotTrainer(a_tiny_run(rounds=3), tmp_path / "run").train(resume=True)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"task": "juggling"}, "task"),
        ({"agent": "magic"}, "agent"),
        ({"seed": -1}, "seed"),
        ({"rounds": 0}, "rounds"),
        ({"evaluation_episodes": 0}, "evaluation_episodes"),
        ({"demonstrations": 0}, "demonstrations"),
        ({"demonstrations_per_batch": 99}, "demonstrations_per_batch"),
        ({"preset": "slow"}, "preset"),
    ],
)
def test_an_impossible_run_is_refused_by_name(changes, word):
    values = {"task": "block_picking", "preset": "ship", **changes}
    with pytest.raises(RobotConfigError, match=word):
        robot_run(**values)


def test_a_random_expert_cannot_label_for_the_shipping_preset():
    from equi_rl.experts import FirstChoice

    with pytest.raises(RobotConfigError, match="nearest"):
        a_tiny_run(first_choice=FirstChoice.RANDOM)


def test_metrics_and_weights_that_are_not_finite_stop_the_run():
    parameters = {"weight": torch.zeros(1), "bias": torch.zeros(1)}
    require_finite({"loss": 1.0}, parameters)
    with pytest.raises(DivergedError, match="loss"):
        require_finite({"loss": float("nan")}, parameters)
    parameters["weight"].fill_(float("inf"))
    with pytest.raises(DivergedError, match="weight"):
        require_finite({"loss": 1.0}, parameters)


def test_evaluations_that_all_fail_stop_the_run_and_keep_its_checkpoint(tmp_path):
    # Given a policy that has learnt next to nothing, when two evaluations in a row fail
    run = a_tiny_run(evaluate_every=1, failing_evaluations=2)
    with pytest.raises(DivergedError, match=r"last 2 evaluations had no success"):
        RobotTrainer(run, tmp_path / "run").train()
    # then the run has stopped early, and its policy can be loaded.
    kept = load_checkpoint(tmp_path / "run" / "checkpoints" / "best")
    assert kept.contract.provenance.evaluation_successes == 0
    assert not (tmp_path / "run" / "summary.json").exists()
