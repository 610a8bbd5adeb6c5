# SPDX-License-Identifier: MIT
"""A training run that was killed, extended or taken over goes on as if nothing had happened."""

from __future__ import annotations

import csv

import pytest
import torch
from training_runs import Killed, ReadyCollector, a_tiny_run, an_episode, killed, killed_after

from equi_core.statistics import SuccessRate
from equi_rl.nets.checkpoint import load_checkpoint
from equi_rl.training import checkpoints
from equi_rl.training.checkpoints import RunCheckpoints
from equi_rl.training.config import Preset
from equi_rl.training.presets import robot_run
from equi_rl.training.run_folder import RunFolderError
from equi_rl.training.trainer import RobotTrainer


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
        assert [row["rounds"] for row in csv.DictReader(stream)] == ["0", "2", "4"]
    best = load_checkpoint(tmp_path / "killed" / "checkpoints" / "best")
    assert best.contract.task == "block_picking"
    assert best.contract.provenance.preset == "ship"


@pytest.mark.slow
def test_a_run_learns_with_one_thread_whatever_the_caller_has_set(tmp_path):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        threads: set[int] = set()
        RobotTrainer(a_tiny_run(rounds=1), tmp_path).train(
            report=lambda *_: threads.add(torch.get_num_threads())
        )
    finally:
        torch.set_num_threads(before)
    assert threads == {1}


@pytest.mark.slow
def test_a_finished_run_goes_on_with_more_rounds(tmp_path):
    assert RobotTrainer(a_tiny_run(rounds=2), tmp_path).train()["rounds"] == 2
    extended = RobotTrainer(a_tiny_run(rounds=3), tmp_path)
    started_at: list[int] = []
    summary = extended.train(resume=True, report=lambda now, _: started_at.append(now.rounds))
    assert (summary["rounds"], summary["updates"]) == (3, 4)
    assert started_at[0] == 3, "nothing of the first two rounds is repeated"
    assert [row["rounds"] for row in extended.folder.read_progress()] == ["0", "2", "3"]


@pytest.mark.slow
def test_a_run_can_start_from_what_an_earlier_one_has_learnt_and_seen(tmp_path):
    first = RobotTrainer(a_tiny_run(), tmp_path / "first")
    first.train()
    kept = sorted((tmp_path / "first" / "replay").iterdir())
    more = a_tiny_run(imitation={"updates": 0}, rounds=2, continues=str(tmp_path / "first"))
    second = RobotTrainer(more, tmp_path / "second")
    second.train()

    start = load_checkpoint(tmp_path / "second" / "checkpoints" / "round_000000")
    learnt = load_checkpoint(tmp_path / "first" / "checkpoints" / "round_000004")
    names = [name for name in learnt.tensors if name.startswith("actor.")]
    assert names
    for name in names:
        assert torch.equal(start.tensors[name], learnt.tensors[name]), name
    assert len(second.replay_buffer) == len(first.replay_buffer) + 2
    assert second.progress.updates == first.progress.updates + 2
    assert second.progress.environment_steps > first.progress.environment_steps
    assert second.progress.seconds > first.progress.seconds
    assert sorted((tmp_path / "first" / "replay").iterdir()) == kept
    with (tmp_path / "second" / "progress.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["rounds"] for row in rows] == ["-5", "-3", "-1", "0", "2"]
    updates = [int(row["updates"]) for row in rows]
    assert updates == sorted(updates)

    foreign = robot_run(
        "block_pulling", Preset.SHIP, imitation={"updates": 0}, continues=str(tmp_path / "first")
    )
    with pytest.raises(RunFolderError, match="a run on block_picking"):
        RobotTrainer(foreign, tmp_path / "foreign").train()
    nothing = a_tiny_run(imitation={"updates": 0}, continues=str(tmp_path / "nowhere"))
    with pytest.raises(RunFolderError, match="no checkpoint"):
        RobotTrainer(nothing, tmp_path / "nothing").train()


def tags(trainer: RobotTrainer) -> list[float]:
    return [float(episode.reward[0]) for episode in trainer.replay_buffer]


def evaluate(trainer: RobotTrainer, successes: int) -> None:
    trainer.evaluate(ReadyCollector(successes))
    trainer.selection.finish(trainer.progress)


def test_a_full_replay_buffer_is_restored_as_it_was_at_the_checkpoint(tmp_path):
    # Given a run whose replay buffer is full, killed some episodes after its checkpoint
    run = a_tiny_run(replay_capacity=9)
    trainer = RobotTrainer(run, tmp_path)
    for tag in (1, 2, 3, 4):
        trainer.replay_buffer.add(an_episode(tag))
    trainer.save(SuccessRate(0, 1))
    at_checkpoint = tags(trainer)
    for tag in (5, 6):
        trainer.replay_buffer.add(an_episode(tag))
    # When it goes on
    continued = RobotTrainer(run, tmp_path)
    continued.restore()
    # then nothing is missing; what the checkpoint did not need any more is gone from the disk.
    assert tags(continued) == at_checkpoint == [2, 3, 4]
    assert len(list((tmp_path / "replay").iterdir())) == 3


def test_a_kill_right_after_the_checkpoint_loses_neither_its_row_nor_the_best(
    tmp_path, monkeypatch
):
    run = a_tiny_run(evaluation_episodes=5)
    trainer = RobotTrainer(run, tmp_path)
    evaluate(trainer, successes=1)
    trainer.progress.rounds = 2
    monkeypatch.setattr(checkpoints, "_point", killed)
    with pytest.raises(Killed):
        evaluate(trainer, successes=3)
    monkeypatch.undo()
    continued = RobotTrainer(run, tmp_path)
    continued.restore()
    best = tmp_path / "checkpoints" / "best"
    assert best.resolve().name == "round_000002"
    # A worse evaluation does not replace it; one that is as good, after more episodes, does.
    continued.progress.rounds = 4
    evaluate(continued, successes=2)
    assert best.resolve().name == "round_000002"
    continued.progress.rounds = 6
    evaluate(continued, successes=3)
    assert best.resolve().name == "round_000006"
    rows = continued.folder.read_progress()
    assert [(row["rounds"], row["successes"]) for row in rows] == [
        ("0", "1"),
        ("2", "3"),
        ("4", "2"),
        ("6", "3"),
    ]


def test_a_kill_right_before_the_first_checkpoint_leaves_no_row(tmp_path, monkeypatch):
    trainer = RobotTrainer(a_tiny_run(), tmp_path)
    monkeypatch.setattr(checkpoints, "save_checkpoint", killed)
    with pytest.raises(Killed):
        evaluate(trainer, successes=1)
    continued = RobotTrainer(a_tiny_run(), tmp_path)
    continued.restore()
    assert continued.folder.read_progress() == []


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["equi-rsac", "rad-crop-rsac"])
def test_soft_actor_critic_trains_after_pretraining_and_resumes(tmp_path, agent):
    run = robot_run(
        "block_picking",
        Preset.PAPER,
        agent=agent,
        demonstrations=2,
        random_episodes=0,
        pre_updates_per_step=0.0,
        evaluation_share=None,
        imitation={"updates": 1},
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


@pytest.mark.slow
def test_a_killed_run_of_the_published_recipe_ends_like_one_that_was_not(tmp_path):
    run = robot_run(
        "block_picking",
        "paper",
        demonstrations=1,
        random_episodes=1,
        pre_updates_per_step=0.1,
        updates_per_step=0.05,
        environment_steps=200,
        batch_episodes=2,
        evaluate_every=1,
        evaluation_episodes=1,
        evaluation_share=1.0,
    )
    RobotTrainer(run, tmp_path / "straight").train()
    with pytest.raises(Killed):
        RobotTrainer(run, tmp_path / "killed").train(report=killed_after(rounds=2))
    RobotTrainer(run, tmp_path / "killed").train(resume=True)
    one, two = (RunCheckpoints(tmp_path / name).newest() for name in ("straight", "killed"))
    assert one is not None
    assert two is not None
    assert one.extra["progress"]["owed_updates"] == 0
    assert one.extra["progress"]["updates"] == two.extra["progress"]["updates"] > 5
    for name, tensor in one.tensors.items():
        assert torch.equal(tensor, two.tensors[name]), name


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["equi-rsac", "equi-cnn-rsac"])
def test_a_killed_run_of_the_preset_reward_ends_like_one_that_was_not(tmp_path, agent):
    run = robot_run(
        "block_picking",
        Preset.REWARD,
        agent=agent,
        demonstrations=2,
        imitation={"updates": 2},
        asymmetric={"actor_frozen_updates": 2, "heads": 2, "width": 16},
        episodes_per_round=1,
        environment_steps=230,
        updates_per_step=0.1,
        batch_episodes=3,
        demonstrations_per_batch=1,
        recent_per_batch=1,
        evaluate_every=1,
        evaluation_episodes=1,
        evaluation_share=1.0,
    )
    straight = RobotTrainer(run, tmp_path / "straight")
    straight.train()
    with pytest.raises(Killed):
        RobotTrainer(run, tmp_path / "killed").train(report=killed_after(rounds=3))
    RobotTrainer(run, tmp_path / "killed").train(resume=True)
    one, two = (RunCheckpoints(tmp_path / name).newest() for name in ("straight", "killed"))
    assert one is not None
    assert two is not None
    assert one.extra["learner"]["asymmetric_updates"] > 6
    assert one.extra["learner"] == two.extra["learner"]
    for name, tensor in one.tensors.items():
        assert torch.equal(tensor, two.tensors[name]), name
    # All of the actor learns after imitation, its encoder included; the critic is not exported.
    imitation = load_checkpoint(tmp_path / "straight" / "checkpoints" / "round_000000")
    assert one.critic is None
    for name in ("actor.history.encoder", "actor.history.lstm", "actor.mean"):
        parts = [part for part in one.tensors if part.startswith(name)]
        assert any(not torch.equal(imitation.tensors[part], one.tensors[part]) for part in parts)
    rows = straight.folder.read_progress()
    assert float(rows[-1]["improvement_kl"]) > 0
    assert rows[0]["improvement_kl"] == "nan"
