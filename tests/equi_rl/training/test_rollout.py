# SPDX-License-Identifier: MIT
"""Specification of played episodes: who acts, and what is recorded beside it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from equi_rl.agents.acting_policy import ActingPolicy
from equi_rl.envs import HiddenPropertyEnv, make_env
from equi_rl.experts import ExpertConfig, FirstChoice, make_expert
from equi_rl.nets.agent import build_agent
from equi_rl.nets.config import Combination, reference_config
from equi_rl.training.collector import Play, do_work
from equi_rl.training.config import Preset, RobotConfigError
from equi_rl.training.presets import robot_run
from equi_rl.training.rollout import Exploration, play_expert, play_policy, play_random

EXPERT = ExpertConfig(first_choice=FirstChoice.NEAREST)
SEED = 7


@pytest.fixture(scope="module")
def env() -> Iterator[HiddenPropertyEnv]:
    env = make_env("block_picking")
    yield env
    env.close()


@pytest.fixture(scope="module")
def untrained() -> ActingPolicy:
    """A policy that hardly moves and never picks anything."""
    actor, _ = build_agent(Combination.PLAIN, reference_config("C4"))
    return ActingPolicy.of(actor)


def test_an_expert_that_only_labels_changes_nothing_of_the_episode(env, untrained):
    expert = make_expert("block_picking", env.contract, EXPERT)
    alone, _ = play_policy(env, untrained, SEED)
    label_with_expert, outcome = play_policy(env, untrained, SEED, expert=expert)

    assert np.array_equal(alone.executed_action, label_with_expert.executed_action)
    assert np.isnan(alone.expert_action).all()
    assert np.isfinite(label_with_expert.expert_action).all()
    assert not outcome.success


def test_an_expert_that_takes_over_finishes_what_the_policy_could_not(env, untrained):
    expert = make_expert("block_picking", env.contract, EXPERT)
    alone, _ = play_policy(env, untrained, SEED)
    helped, outcome = play_policy(env, untrained, SEED, expert=expert, expert_takeover_at=3)

    assert np.array_equal(helped.executed_action[:3], alone.executed_action[:3])
    # Executed as advised, where nothing was clipped.
    assert np.allclose(helped.executed_action[3], helped.expert_action[3], atol=1e-5)
    assert outcome.success
    assert len(helped) < len(alone)


def test_an_expert_that_takes_over_at_once_gives_a_demonstration(env, untrained):
    expert = make_expert("block_picking", env.contract, EXPERT)
    shown, _ = play_expert(env, expert, SEED)
    helped, _ = play_policy(env, untrained, SEED, expert=expert, expert_takeover_at=0)
    assert np.allclose(helped.executed_action, shown.executed_action, atol=1e-6)
    assert not helped.is_demonstration


def test_the_step_of_the_change_is_a_matter_of_the_seed(env, untrained):
    expert = make_expert("block_picking", env.contract, EXPERT)
    work = Play(
        untrained, (11, 12), stochastic=False, label_with_expert=True, expert_takeover_within=10
    )
    first, again = do_work(env, expert, work), do_work(env, expert, work)
    lengths = [outcome.steps for _, outcome in first]
    assert lengths == [outcome.steps for _, outcome in again]
    assert all(outcome.success for _, outcome in first)


class _Reaching:
    """Asks for the largest steps up and to the side; remembers what it was told it had done."""

    def start(self, seed):
        self.told = []
        return 0

    def act(self, observation, previous_action, state, rng=None):
        self.told.append(previous_action.copy())
        return np.array([0, 1, 1, 1, 0], dtype=np.float32), state


def test_a_clipped_step_is_recorded_as_requested_and_as_executed(env):
    policy = _Reaching()
    episode, _ = play_policy(env, policy, SEED)
    assert (episode.requested_action == [0, 1, 1, 1, 0]).all()
    # The workspace ends somewhere: there the gripper stays, and the policy is told so.
    assert np.allclose(episode.executed_action[-1, 1:4], 0, atol=1e-6)
    assert episode.is_clipped[-1]
    np.testing.assert_array_equal(policy.told[1:], episode.executed_action[:-1])


def test_random_episodes_and_demonstrations_record_both_actions(env):
    expert = make_expert("block_picking", env.contract, EXPERT)
    shown, _ = play_expert(env, expert, SEED)
    np.testing.assert_allclose(shown.requested_action, shown.executed_action, atol=1e-5)
    assert not shown.is_clipped.any()
    tried, _ = play_random(env, SEED)
    clipped = np.abs(tried.requested_action - tried.executed_action).max(axis=1) > 1e-3
    assert 0.02 < clipped.mean() < 0.8
    np.testing.assert_array_equal(tried.is_clipped, clipped)


def test_exploration_adds_noise_to_the_mean_and_each_episode_draws_how_much(env, untrained):
    expert = make_expert("block_picking", env.contract, EXPERT)
    means, _ = play_policy(env, untrained, SEED)
    work = Play(
        untrained, (7, 8, 9, 10), stochastic=True, label_with_expert=False, exploration_std=0.3
    )
    first, again = do_work(env, expert, work), do_work(env, expert, work)
    spreads = [float(episode.requested_action.std(axis=0).mean()) for episode, _ in first]
    assert max(spreads) - min(spreads) > 0.05
    assert max(spreads) < 0.35
    assert max(spreads) > float(means.requested_action.std(axis=0).mean())
    for (one, _), (two, _) in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.requested_action, two.requested_action)


def test_exploration_varies_in_strength_and_kind_and_sometimes_there_is_none():
    rng = np.random.default_rng(0)
    drawn = [Exploration.drawn(0.2, rng) for _ in range(2000)]
    noisy = [one for one in drawn if one.std > 0]
    assert len(noisy) / len(drawn) == pytest.approx(0.85, abs=0.03)
    assert np.mean([one.std for one in noisy]) == pytest.approx(0.1, abs=0.005)
    assert max(one.std for one in noisy) <= 0.2
    assert np.mean([one.correlation == 0.5 for one in noisy]) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_correlated_noise_keeps_its_variance(correlation):
    rng = np.random.default_rng(0)
    exploration = Exploration(0.1, correlation)
    noise = [rng.standard_normal(5).astype(np.float32)]
    for _ in range(5000):
        noise.append(exploration.following(noise[-1], rng))
    steps = np.stack(noise)
    assert steps.var() == pytest.approx(1.0, abs=0.05)
    assert np.mean(steps[1:] * steps[:-1]) == pytest.approx(correlation, abs=0.05)


def test_a_takeover_needs_an_expert(env, untrained):
    with pytest.raises(ValueError, match="must be None without an expert"):
        play_policy(env, untrained, SEED, expert_takeover_at=3)


def test_comparisons_see_no_more_of_the_expert_than_its_demonstrations():
    with pytest.raises(RobotConfigError, match="expert_takeover_within is 5"):
        robot_run("block_picking", Preset.REWARD, expert_takeover_within=5)


def test_a_better_policy_is_left_alone_for_longer():
    run = robot_run(
        "block_picking",
        Preset.SHIP,
        rounds=20,
        expert_takeover_within=30,
        expert_takeover_grows_to=50,
    )
    assert [run.expert_takeover_in(done) for done in (0, 10, 19, 20)] == [30, 40, 49, 50]
    same = robot_run(
        "block_picking", Preset.SHIP, expert_takeover_within=30, expert_takeover_grows_to=0
    )
    assert {same.expert_takeover_in(done) for done in range(same.rounds)} == {30}


@pytest.mark.parametrize(("within", "grows_to"), [(30, 20), (0, 20), (30, -1)])
def test_taking_over_never_comes_earlier_again(within, grows_to):
    with pytest.raises(RobotConfigError, match=f"expert_takeover_grows_to is {grows_to}"):
        robot_run(
            "block_picking",
            Preset.SHIP,
            expert_takeover_within=within,
            expert_takeover_grows_to=grows_to,
        )
