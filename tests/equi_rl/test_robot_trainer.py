"""Specification of a training run: killed and continued, and never mistaken for another."""

from __future__ import annotations

import csv

import pytest
import torch

from equi_rl.agents.learner import DivergedError, require_finite
from equi_rl.nets.checkpoint import load_checkpoint
from equi_rl.robot_config import AGENTS, Preset, RobotConfigError, robot_run
from equi_rl.robot_trainer import RobotTrainer
from equi_rl.run_folder import RunFolderError


def a_tiny_run(**changes):
    """A run of a few seconds: two demonstrations, four rounds of one episode."""
    return robot_run(
        "block_picking",
        Preset.SHIP,
        **{
            "demonstrations": 2,
            "warm_up_updates": 1,
            "rounds": 4,
            "episodes_per_round": 1,
            "updates_per_round": 1,
            "batch_episodes": 2,
            "evaluate_every": 2,
            "evaluation_episodes": 1,
            **changes,
        },
    )


class Killed(Exception):
    """Stands for the end of the process."""


def killed_after(rounds: int):
    def report(progress, figures):
        if progress.rounds >= rounds:
            raise Killed

    return report


@pytest.mark.slow
def test_a_run_that_was_killed_ends_like_one_that_was_not(tmp_path):
    straight = RobotTrainer(a_tiny_run(), tmp_path / "straight")
    straight.train()
    killed = RobotTrainer(a_tiny_run(), tmp_path / "killed")
    with pytest.raises(Killed):
        killed.train(report=killed_after(rounds=3))  # one round after the checkpoint of round 2
    continued = RobotTrainer(a_tiny_run(), tmp_path / "killed")
    continued.train(resume=True)

    assert continued.progress.environment_steps == straight.progress.environment_steps
    one, two = (
        load_checkpoint(tmp_path / name / "checkpoints" / "round_000004")
        for name in ("straight", "killed")
    )
    for name, tensor in one.tensors.items():
        assert torch.equal(tensor, two.tensors[name]), name
    with (tmp_path / "killed" / "progress.csv").open() as stream:
        assert [row["rounds"] for row in csv.DictReader(stream)] == ["2", "4"]
    best = load_checkpoint(tmp_path / "killed" / "checkpoints" / "best")
    assert best.contract.task == "block_picking"
    assert best.contract.provenance.preset == "ship"


def test_a_folder_is_not_used_twice_and_not_by_another_run(tmp_path):
    with pytest.raises(Killed):
        RobotTrainer(a_tiny_run(), tmp_path / "run").train(report=killed_after(rounds=0))
    with pytest.raises(RunFolderError, match="--resume"):
        RobotTrainer(a_tiny_run(), tmp_path / "run").train()
    with pytest.raises(RunFolderError, match="rounds"):
        RobotTrainer(a_tiny_run(rounds=5), tmp_path / "run").train(resume=True)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"task": "juggling"}, "task"),
        ({"agent": "magic"}, "agent"),
        ({"seed": -1}, "seed"),
        ({"rounds": 0}, "rounds"),
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


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["equi-rsac", "rad-crop-rsac"])
def test_soft_actor_critic_trains_after_a_warm_start_and_resumes(tmp_path, agent):
    run = robot_run(
        "block_picking",
        Preset.FAST,
        agent=agent,
        demonstrations=2,
        warm_up_updates=1,
        rounds=3,
        episodes_per_round=1,
        updates_per_round=1,
        batch_episodes=2,
        demonstrations_per_batch=1,
        evaluate_every=1,
        evaluation_episodes=1,
    )
    with pytest.raises(Killed):
        RobotTrainer(run, tmp_path / "run").train(report=killed_after(rounds=1))
    summary = RobotTrainer(run, tmp_path / "run").train(resume=True)
    assert summary["rounds"] == 3
    assert summary["updates"] == 4
    load_checkpoint(tmp_path / "run" / "checkpoints" / "round_000003").build_critic()


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("preset", list(Preset))
def test_every_agent_and_preset_is_a_valid_run(agent, preset):
    assert robot_run("block_pushing", preset, agent=agent).to_mapping()["agent"] == agent


def test_figures_and_weights_that_are_not_finite_stop_the_run():
    network = torch.nn.Linear(1, 1)
    require_finite({"loss": 1.0}, network)
    with pytest.raises(DivergedError, match="loss"):
        require_finite({"loss": float("nan")}, network)
    with torch.no_grad():
        network.weight.fill_(float("inf"))
    with pytest.raises(DivergedError, match="weight"):
        require_finite({"loss": 1.0}, network)


def test_evaluations_that_all_fail_stop_the_run_and_keep_its_checkpoint(tmp_path):
    # Given a policy that has learnt next to nothing, when two evaluations in a row fail
    run = a_tiny_run(evaluate_every=1, failing_evaluations=2)
    with pytest.raises(DivergedError, match=r"last 2 evaluations had no success"):
        RobotTrainer(run, tmp_path / "run").train()
    # then the run has stopped early, and its policy can be loaded.
    kept = load_checkpoint(tmp_path / "run" / "checkpoints" / "best")
    assert kept.contract.provenance.evaluation_successes == 0
    assert not (tmp_path / "run" / "summary.json").exists()
