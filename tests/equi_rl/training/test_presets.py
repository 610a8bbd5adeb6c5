# SPDX-License-Identifier: MIT
"""What each preset does, in which order, and that every agent can be trained with it."""

from __future__ import annotations

import itertools

import pytest
from training_runs import ReadyCollector

from equi_rl.data.episode import Episode
from equi_rl.envs.privileged_state import StateFrame
from equi_rl.training.config import AGENTS, Preset
from equi_rl.training.presets import robot_run
from equi_rl.training.rollout import EpisodeOutcome
from equi_rl.training.trainer import RobotTrainer


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
        environment_steps=500,
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


def test_deployed_policies_learn_from_reward_as_compared_ones_do_in_a_harder_world():
    deployed, compared = robot_run("block_pushing", "deploy"), robot_run("block_pushing", "reward")
    assert deployed.asymmetric == compared.asymmetric
    assert deployed.environment_steps == compared.environment_steps
    assert deployed.randomise
    assert deployed.stiff_arm
    assert deployed.learns_from_values
    assert not robot_run("block_pushing", "ship").learns_from_values
    plain = robot_run("block_pushing", "deploy", agent="rsac")
    assert plain.critic_state_frame is StateFrame.BASE


def test_a_brief_run_gives_its_critic_as_many_steps_alone_on_fewer_environment_steps():
    brief, whole = (robot_run("block_pushing", name).asymmetric for name in ("brief", "reward"))
    steps = [s.actor_frozen_updates * s.frozen_critic_steps for s in (brief, whole)]
    assert steps == [1200, 1200]
    assert brief.actor_frozen_updates == 100
    assert brief.demonstration_weight > 0.0 == whole.demonstration_weight  # a young critic misleads


@pytest.mark.parametrize("preset", [Preset.REWARD, Preset.BRIEF, Preset.DEPLOY])
def test_each_kind_of_image_encoder_imitates_at_its_own_learning_rate(preset):
    rates = {
        agent: robot_run("block_picking", preset, agent).imitation.learning_rate for agent in AGENTS
    }
    equivariant = {"equi-rsac", "equi-cnn-rsac", "equi-actor-rsac"}
    assert {agent for agent, rate in rates.items() if rate == 6e-3} == equivariant
    assert {rate for agent, rate in rates.items() if agent not in equivariant} == {2e-3}
