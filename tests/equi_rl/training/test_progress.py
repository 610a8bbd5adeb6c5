# SPDX-License-Identifier: MIT
"""Specification of a run's schedule: its end, its updates, and what its evaluations may cost."""

from __future__ import annotations

import numpy as np
import pytest

from equi_rl.training.config import Preset, RobotConfigError
from equi_rl.training.presets import robot_run
from equi_rl.training.progress import Progress, can_afford_evaluation, share_done, updates_for


def test_a_run_ends_with_its_rounds_or_its_environment_steps_whichever_comes_first():
    run = robot_run("block_picking", "fast", rounds=10, environment_steps=1000)
    assert share_done(run, Progress(rounds=5, environment_steps=100)) == 0.5
    assert share_done(run, Progress(rounds=5, environment_steps=900)) == 0.9
    assert share_done(run, Progress(rounds=10, environment_steps=10)) == 1.0
    assert share_done(run, Progress(rounds=0, environment_steps=1003)) == 1.0


@pytest.mark.parametrize("ratio", [0.2, 1.0, 2.5])
def test_fractions_of_updates_are_carried_on(ratio):
    run = robot_run("block_picking", "paper", updates_per_step=ratio)
    total, made = 0, 0
    for steps in np.random.default_rng(0).integers(1, 50, size=200):
        made += updates_for(run, total, int(steps))
        total += int(steps)
    assert made == pytest.approx(ratio * total, abs=1)


@pytest.mark.parametrize("task", ["block_picking", "block_pushing"])
@pytest.mark.parametrize("lengths", [(50, 50), (6, 25)])
@pytest.mark.parametrize(
    "preset", [preset for preset in Preset if robot_run("block_picking", preset).evaluation_share]
)
def test_evaluations_take_at_most_a_tenth_of_the_steps_of_a_run(preset, task, lengths):
    run = robot_run(task, preset)
    assert run.evaluation_share == 0.1
    rng = np.random.default_rng(0)
    progress = Progress(environment_steps=2000)

    def evaluate():
        progress.evaluation_steps += int(
            rng.integers(lengths[0], lengths[1] + 1, size=run.evaluation_episodes).sum()
        )

    evaluations = 1
    evaluate()  # after pretraining
    while share_done(run, progress) < 1.0:
        progress.rounds += 1
        episodes = rng.integers(5, 51, size=run.episodes_per_round)
        progress.environment_steps += int(episodes.sum())
        if progress.rounds % run.evaluate_every == 0 and can_afford_evaluation(run, progress):
            evaluate()
            evaluations += 1
    evaluate()  # at the end
    assert progress.evaluation_steps <= 0.1 * progress.environment_steps
    assert evaluations >= 3


def test_a_run_without_an_end_and_evaluations_that_cannot_fit_are_refused():
    with pytest.raises(RobotConfigError, match="rounds is 0; it must be positive"):
        robot_run("block_picking", "fast", rounds=0)
    with pytest.raises(RobotConfigError, match=r"evaluation_episodes is 100.*fit into"):
        robot_run("block_picking", "paper", evaluation_episodes=100)
    with pytest.raises(RobotConfigError, match=r"pre_updates_per_step is 1.0; it must be 0 with"):
        robot_run("block_picking", "paper", imitation={"updates": 5})


def test_the_preset_paper_is_the_published_recipe():
    run = robot_run("block_picking", "paper")
    assert (run.demonstrations, run.random_episodes, run.batch_episodes) == (80, 20, 32)
    assert (run.episodes_per_round, run.updates_per_round, run.updates_per_step) == (1, 0, 1.0)
    assert run.pre_updates_per_step == 1.0
    assert (run.environment_steps, run.rounds, run.replay_capacity) == (41_000, 0, 100_000)
    assert robot_run("block_pushing", "paper").environment_steps == 81_000
    assert run.failing_evaluations == 0
    assert run.imitation.updates == 0
    sac = run.sac
    assert sac.actor_learning_rate == sac.critic_learning_rate == 3e-4
    assert (sac.temperature_learning_rate, sac.initial_temperature) == (1e-3, 0.1)
    assert (sac.target_entropy, sac.discount, sac.tau, sac.td_lambda) == (-5.0, 0.9, 0.005, 0.0)
    assert sac.demonstration_weight == 0.0
