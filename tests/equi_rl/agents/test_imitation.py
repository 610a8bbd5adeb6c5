# SPDX-License-Identifier: MIT
"""Specification of imitation and acting: labels are learned, and acting is the network itself."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from equi_rl.agents.acting_policy import ActingPolicy
from equi_rl.agents.imitation import (
    SPREAD_WEIGHT,
    ImitationSettings,
    ImitationUpdate,
    imitation_loss,
)
from equi_rl.agents.learner import ImitationLearner
from equi_rl.data.collate import Augmentation, collate
from equi_rl.data.episode import Episode, EpisodeRecorder
from equi_rl.nets.config import NetworkConfig
from equi_rl.nets.networks import Actor, initial_state

# A small network of the same make: 20 pixels instead of 84.
SMALL = NetworkConfig(
    observation_size=20,
    encoder_channels=(32, 64),
    encoder_kernels=(8, 4),
    encoder_strides=(4, 1),
    action_channels=8,
    recurrent_channels=64,
    head_channels=(64,),
    critic_action_channels=16,
)


@pytest.fixture
def actor() -> Actor:
    torch.manual_seed(0)
    return Actor(SMALL)


def remember_the_first_image(rng: np.random.Generator, steps: int) -> Episode:
    """An episode whose labels can only be known by memory: the first image tells the height."""
    observations = np.full((steps + 1, 2, 20, 20), 0.2, dtype=np.float32)
    observations[:, 1] = 0.0
    up = bool(rng.integers(2))
    observations[0, 1] = float(up)
    label = np.array([0.0, 0.0, 0.0, 0.8 if up else -0.8, 0.0], dtype=np.float32)
    recorder = EpisodeRecorder(observations[0])
    for step in range(steps):
        recorder.add(np.zeros(5), np.zeros(5), 0.0, observations[step + 1], label)
    return recorder.finish(terminated=True)


def test_a_policy_learns_to_act_on_what_only_its_memory_knows(actor):
    rng = np.random.default_rng(0)
    update = ImitationUpdate(actor, ImitationSettings(learning_rate=5e-3), planned_updates=100)
    for _ in range(100):
        episodes = [remember_the_first_image(rng, 5) for _ in range(16)]
        losses = update.step(collate(episodes, 20, rng, Augmentation()))
    assert losses["imitation_loss"] < 0.01  # guessing 0 would cost 0.8^2 / 5 = 0.128


def test_what_plays_is_the_running_mean_of_what_is_trained(actor):
    rng = np.random.default_rng(0)
    learner = ImitationLearner(actor, ImitationSettings(policy_ema=0.4), planned_updates=10)
    trained = []
    for _ in range(4):
        episodes = [remember_the_first_image(rng, 3) for _ in range(2)]
        learner.update(collate(episodes, 20, rng, Augmentation()))
        trained.append([parameter.detach().clone() for parameter in actor.parameters()])
    # Rates 1, 1/2, then 0.4 twice: the second mean of two, and so on.
    shares = (0.5 * 0.36, 0.5 * 0.36, 0.4 * 0.6, 0.4)
    for mine, *history in zip(learner.actor.parameters(), *trained, strict=True):
        mean = sum(share * value for share, value in zip(shares, history, strict=True))
        torch.testing.assert_close(mine.detach(), mean)
    assert any((a != b).any() for a, b in zip(trained[0], trained[3], strict=True))


def test_without_a_rate_what_plays_is_what_is_trained(actor):
    rng = np.random.default_rng(0)
    learner = ImitationLearner(actor, ImitationSettings(), planned_updates=10)
    for _ in range(2):
        learner.update(collate([remember_the_first_image(rng, 3)], 20, rng, Augmentation()))
    for mine, goal in zip(learner.actor.parameters(), actor.parameters(), strict=True):
        torch.testing.assert_close(mine, goal)


@pytest.mark.parametrize("rate", [0.0, 1.5])
def test_a_policy_that_never_follows_is_refused(rate):
    with pytest.raises(ValueError, match=f"policy_ema is {rate}"):
        ImitationSettings(policy_ema=rate)


def test_unlabelled_steps_do_not_count(actor):
    rng = np.random.default_rng(0)
    episode = remember_the_first_image(rng, 4)
    labels = episode.expert_action.copy()
    labels[2] = np.nan
    partly = Episode(
        episode.depth,
        episode.holding,
        episode.requested_action,
        episode.executed_action,
        episode.reward,
        episode.terminated,
        labels,
    )
    batch = collate([partly], 20, rng, Augmentation(rotate=False))
    assert torch.isfinite(imitation_loss(actor, actor.dense(), batch, ImitationSettings()))
    labels[:] = np.nan
    batch = collate([partly], 20, rng, Augmentation(rotate=False))
    with pytest.raises(ValueError, match="no step"):
        imitation_loss(actor, actor.dense(), batch, ImitationSettings())


def test_the_spread_of_the_policy_is_led_to_where_it_is_wanted(actor):
    rng = np.random.default_rng(0)
    batch = collate([remember_the_first_image(rng, 4)], 20, rng, Augmentation(rotate=False))

    def loss(log_std):
        settings = ImitationSettings(log_std=log_std)
        return float(imitation_loss(actor, actor.dense(), batch, settings).detach())

    without = loss(None)
    # A fresh network's log-std is about 0: being wanted elsewhere costs the square of the distance.
    assert loss(-2.0) - without == pytest.approx(SPREAD_WEIGHT * 4.0, rel=0.5)
    assert loss(-4.0) - without == pytest.approx(SPREAD_WEIGHT * 16.0, rel=0.5)


def test_acting_step_by_step_is_the_network_over_the_whole_history(actor):
    rng = np.random.default_rng(1)
    observations = rng.uniform(0, 0.3, size=(7, 2, 20, 20)).astype(np.float32)
    observations[:, 1] = (rng.random((7, 1, 1)) > 0.5).astype(np.float32)
    previous = rng.uniform(-1, 1, size=(7, 5)).astype(np.float32)
    with torch.no_grad():
        mean, _, _ = actor(
            torch.from_numpy(observations)[:, None],
            torch.from_numpy(previous)[:, None],
            initial_state(SMALL, 1),
        )
    policy = ActingPolicy.of(actor)
    state = policy.start(seed=0)
    for step in range(7):
        action, state = policy.act(observations[step], previous[step], state)
        np.testing.assert_allclose(action, torch.tanh(mean[step, 0]), atol=1e-5)


def test_a_random_start_depends_on_the_episode_alone_and_not_on_what_was_played_before():
    torch.manual_seed(0)
    policy = ActingPolicy.of(Actor(dataclasses.replace(SMALL, initial_state="random")))
    first = policy.start(seed=7)
    torch.randn(3)  # whatever else draws random numbers meanwhile
    for before, again in zip(first, policy.start(seed=7), strict=True):
        assert torch.equal(before, again)
    assert not torch.equal(first.hidden, policy.start(seed=8).hidden)


def test_a_snapshot_does_not_follow_the_actor(actor):
    rng = np.random.default_rng(0)
    observation = rng.uniform(0, 0.3, size=(2, 20, 20)).astype(np.float32)
    policy = ActingPolicy.of(actor)
    before, _ = policy.act(observation, np.zeros(5), policy.start(seed=0))
    with torch.no_grad():
        for parameter in actor.parameters():
            parameter.add_(1.0)
    after, _ = policy.act(observation, np.zeros(5), policy.start(seed=0))
    np.testing.assert_array_equal(before, after)


def test_random_actions_scatter_around_the_mean_and_stay_in_range(actor):
    rng = np.random.default_rng(0)
    policy = ActingPolicy.of(actor)
    observation = rng.uniform(0, 0.3, size=(2, 20, 20)).astype(np.float32)
    drawn = np.array(
        [policy.act(observation, np.zeros(5), policy.start(seed=0), rng)[0] for _ in range(50)]
    )
    assert drawn.std(axis=0).min() > 0.05
    assert np.abs(drawn).max() <= 1.0
