# SPDX-License-Identifier: MIT
"""Specification of a run's schedule: its end, its updates, and what its evaluations may cost."""

from __future__ import annotations

import numpy as np
import pytest

from equi_rl.training.config import Preset, RobotConfigError
from equi_rl.training.presets import robot_run
from equi_rl.training.progress import Progress, evaluations_due, share_done, updates_for


def test_a_run_ends_with_its_rounds_or_its_environment_steps_whichever_comes_first():
    run = robot_run(
        "block_picking", "paper", rounds=10, environment_steps=1000, evaluation_share=None
    )
    assert share_done(run, Progress(rounds=5, environment_steps=100)) == 0.5
    assert share_done(run, Progress(rounds=5, environment_steps=900)) == 0.9
    assert share_done(run, Progress(rounds=10, environment_steps=10)) == 1.0
    assert share_done(run, Progress(rounds=0, environment_steps=1003)) == 1.0


@pytest.mark.parametrize("ratio", [0.2, 1.0, 2.5])
def test_fractions_of_updates_are_carried_on(ratio):
    total, made = 0, 0
    for steps in np.random.default_rng(0).integers(1, 50, size=200):
        made += updates_for(ratio, total, int(steps))
        total += int(steps)
    assert made == pytest.approx(ratio * total, abs=1)


@pytest.mark.parametrize("task", ["block_picking", "block_pushing"])
@pytest.mark.parametrize("preset", [Preset.PAPER, Preset.REWARD])
def test_evaluations_take_at_most_a_tenth_of_the_steps_of_a_run(preset, task):
    run = robot_run(task, preset)
    assert run.evaluation_share == 0.1
    longest = 50 * run.evaluation_episodes  # every episode runs out of time
    evaluated_at = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        progress = Progress(environment_steps=2000)
        progress.evaluation_steps += longest if run.imitation.updates else 0
        steps = []
        while share_done(run, progress) < 1.0:
            progress.rounds += 1
            episodes = rng.integers(5, 51, size=run.episodes_per_round)
            progress.environment_steps += int(episodes.sum())
            due = evaluations_due(run, progress)
            if due > progress.evaluations:
                progress.evaluations = due
                progress.evaluation_steps += longest
                steps.append(progress.environment_steps)
        assert steps[-1] == progress.environment_steps, "the last one is at the end"
        assert progress.evaluation_steps <= 0.1 * progress.environment_steps
        assert progress.evaluation_steps + longest > 0.1 * run.environment_steps, "no room is left"
        evaluated_at.append(steps)
    # Seeds are evaluated at the same steps, up to the length of a round, at equal distances.
    for one, two in zip(*evaluated_at, strict=True):
        assert abs(one - two) <= 50 * run.episodes_per_round
    assert np.ptp(np.diff([0, *evaluated_at[0]])) <= 2 * 50 * run.episodes_per_round


def test_without_a_share_evaluations_come_every_so_many_rounds_and_at_the_end():
    run = robot_run("block_picking", "ship", rounds=5, evaluate_every=2)
    due = [evaluations_due(run, Progress(rounds=rounds)) for rounds in range(6)]
    assert due == [0, 0, 1, 1, 2, 3]
    run = robot_run("block_picking", "ship", rounds=4, evaluate_every=2)
    assert [evaluations_due(run, Progress(rounds=rounds)) for rounds in range(5)] == [0, 0, 1, 1, 2]


def test_a_run_without_an_end_and_evaluations_that_cannot_fit_are_refused():
    with pytest.raises(RobotConfigError, match="rounds is 0; it must be positive"):
        robot_run("block_picking", "ship", rounds=0)
    with pytest.raises(RobotConfigError, match=r"evaluation_episodes is 100.*fit into"):
        robot_run("block_picking", "paper", evaluation_episodes=100)
    with pytest.raises(RobotConfigError, match=r"evaluation_share is 0.1; it must be None without"):
        robot_run("block_picking", "ship", evaluation_share=0.1)
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
