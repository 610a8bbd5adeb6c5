# SPDX-License-Identifier: MIT
"""Specification of a training run: killed and continued, and never mistaken for another."""

from __future__ import annotations

import csv
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from equi_core.statistics import SuccessRate
from equi_rl.agents.learner import DivergedError, require_finite
from equi_rl.data.episode import Episode
from equi_rl.envs.privileged_state import StateFrame
from equi_rl.nets.checkpoint import load_checkpoint
from equi_rl.training import checkpoints
from equi_rl.training.checkpoints import RunCheckpoints
from equi_rl.training.collector import Collector
from equi_rl.training.config import AGENTS, Preset, RobotConfigError
from equi_rl.training.presets import robot_run
from equi_rl.training.rollout import EpisodeOutcome
from equi_rl.training.run_folder import RunFolderError
from equi_rl.training.trainer import RobotTrainer


def a_tiny_run(**changes):
    """A run of a few seconds: two demonstrations, four rounds of one episode."""
    return robot_run(
        "block_picking",
        Preset.SHIP,
        **{
            "demonstrations": 2,
            "imitation": {"updates": 1},
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
    def report(progress, metrics):
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


def test_only_weights_and_episodes_can_be_taken_over():
    with pytest.raises(RobotConfigError, match=r"imitation\.updates 0"):
        a_tiny_run(continues="runs/first")


def an_episode(tag: float) -> Episode:
    """Three steps that can be recognised by their reward."""
    return Episode(
        depth=np.zeros((4, 4, 4), dtype=np.uint16),
        holding=np.zeros(4, dtype=bool),
        requested_action=np.zeros((3, 5), dtype=np.float32),
        executed_action=np.zeros((3, 5), dtype=np.float32),
        reward=np.full(3, tag, dtype=np.float32),
        terminated=True,
        expert_action=np.zeros((3, 5), dtype=np.float32),
    )


def tags(trainer: RobotTrainer) -> list[float]:
    return [float(episode.reward[0]) for episode in trainer.replay_buffer]


@dataclass
class Ready:
    """Stands for a batch that was played already."""

    work: Any
    is_over: bool = True


class ReadyCollector(Collector):
    """Has played everything already; the first `successes` episodes succeeded."""

    def __init__(self, successes: int) -> None:
        self.successes = successes

    def start(self, work, *, later=False):
        return Ready(work)

    def finish(self, batch):
        return [
            (an_episode(0.0), EpisodeOutcome(seed, 3, index < self.successes, "", None))
            for index, seed in enumerate(batch.work.seeds)
        ]

    def play(self, work):
        return self.finish(self.start(work))


def evaluate(trainer: RobotTrainer, successes: int) -> None:
    trainer.evaluate(ReadyCollector(successes))
    trainer.selection.finish(trainer.progress)


def killed(*_):
    raise Killed


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
    # A later evaluation that is only as good does not replace it.
    continued.progress.rounds = 4
    evaluate(continued, successes=3)
    assert best.resolve().name == "round_000002"
    rows = continued.folder.read_progress()
    assert [(row["rounds"], row["successes"]) for row in rows] == [
        ("0", "1"),
        ("2", "3"),
        ("4", "3"),
    ]


def test_a_kill_right_before_the_first_checkpoint_leaves_no_row(tmp_path, monkeypatch):
    trainer = RobotTrainer(a_tiny_run(), tmp_path)
    monkeypatch.setattr(checkpoints, "save_checkpoint", killed)
    with pytest.raises(Killed):
        evaluate(trainer, successes=1)
    continued = RobotTrainer(a_tiny_run(), tmp_path)
    continued.restore()
    assert continued.folder.read_progress() == []


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


class DiaryCollector(ReadyCollector):
    """Writes down what it is asked for; its episodes have three steps."""

    def __init__(self, diary: list[str]) -> None:
        super().__init__(successes=99)
        self.diary = diary
        self.pending: list[list[tuple[Episode, EpisodeOutcome]]] = []

    def request(self, work):
        self.diary.append(f"request {len(work.seeds)}")
        self.pending.append(super().play(work))

    def fetch(self):
        self.diary.append("fetch")
        return self.pending.pop(0)

    def play(self, work):
        self.diary.append(f"{type(work).__name__} {len(work.seeds)}")
        return super().play(work)

    def start(self, work, *, later=False):
        if later:
            self.diary.append(f"evaluate {len(work.seeds)} meanwhile")
        return super().start(work)


class NoWriter:
    def add_scalar(self, *_):
        pass


def diary_of(run, folder, monkeypatch) -> list[str]:
    """What a run does, in order; equal entries in a row are counted."""
    diary: list[str] = []
    trainer = RobotTrainer(run, folder)

    def update(**_) -> dict[str, float]:
        diary.append("update")
        return {}

    monkeypatch.setattr(trainer, "_update", update)
    trainer._train(DiaryCollector(diary), NoWriter(), 0.0, None)
    return [
        f"{len(list(group))} x {what}" if what == "update" else what
        for what, group in itertools.groupby(diary)
    ]


def test_the_published_recipe_updates_after_each_filling_and_then_plays_ahead(
    tmp_path, monkeypatch
):
    run = robot_run(
        "block_picking",
        "paper",
        demonstrations=2,
        random_episodes=1,
        environment_steps=18,
        evaluate_every=2,
        evaluation_episodes=1,
        evaluation_share=None,
    )
    assert diary_of(run, tmp_path, monkeypatch) == [
        *("Demonstrate 2", "6 x update", "PlayRandom 1", "3 x update"),
        *("request 1", "fetch"),  # nothing is owed yet
        # Updates for the episode before; the evaluation is played when nothing else is.
        *("request 1", "3 x update", "fetch", "evaluate 1 meanwhile"),
        *("request 1", "3 x update", "fetch", "3 x update"),  # and the last ones
        "evaluate 1 meanwhile",
    ]


def test_a_checkpoint_without_evaluation_is_kept_until_the_next_one(tmp_path, monkeypatch):
    run = robot_run(
        "block_picking",
        "paper",
        demonstrations=2,
        random_episodes=1,
        environment_steps=1000,
        evaluate_every=2,
        evaluation_episodes=1,
    )
    trainer = RobotTrainer(run, tmp_path)
    monkeypatch.setattr(trainer, "_update", lambda **_: {})
    kept: set[str] = set()

    def report(progress, metrics):
        now = {path.name for path in (tmp_path / "checkpoints").glob("round_*")}
        assert len([name for name in now if name.endswith("_resume")]) <= 1
        kept.update(now)

    trainer._train(DiaryCollector([]), NoWriter(), 0.0, report)
    assert {"round_000000_resume", "round_000002_resume"} <= kept
    evaluated = sorted(path.name for path in (tmp_path / "checkpoints").glob("round_*"))
    assert not any(name.endswith("_resume") for name in evaluated)
    steps = trainer.progress.environment_steps
    assert trainer.progress.evaluation_steps <= 0.1 * steps
    # Killed after a checkpoint without evaluation, a run goes on from there.
    trainer.progress.rounds += 2
    trainer.save()
    continued = RobotTrainer(run, tmp_path)
    continued.restore()
    assert continued.progress == trainer.progress


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


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("preset", list(Preset))
def test_every_agent_and_preset_is_a_valid_run(agent, preset):
    assert robot_run("block_pushing", preset, agent=agent).to_mapping()["agent"] == agent


@pytest.mark.parametrize(
    ("agent", "frame"),
    [
        ("equi-rsac", StateFrame.SCENE),
        ("equi-cnn-rsac", StateFrame.SCENE),
        ("equi-critic-rsac", StateFrame.SCENE),
        ("equi-actor-rsac", StateFrame.BASE),
        ("rsac", StateFrame.BASE),
    ],
)
def test_a_critic_of_states_has_the_symmetry_that_the_agent_is_named_after(agent, frame):
    assert robot_run("block_pushing", Preset.REWARD, agent=agent).critic_state_frame is frame


def test_metrics_and_weights_that_are_not_finite_stop_the_run():
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
