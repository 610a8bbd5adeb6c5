"""Specification of imitation and acting: labels are learned, and acting is the network itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from equi_rl.acting import ActingPolicy
from equi_rl.agents.imitation import ImitationSettings, ImitationUpdate, imitation_loss
from equi_rl.batch import Augmentation, collate
from equi_rl.nets.config import NetworkConfig
from equi_rl.nets.networks import Actor, initial_state
from equi_rl.replay import Episode, EpisodeRecorder

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


def remember_the_first_picture(rng: np.random.Generator, steps: int) -> Episode:
    """An episode whose labels can only be known by memory: the first picture tells the height."""
    observations = np.full((steps + 1, 2, 20, 20), 0.2, dtype=np.float32)
    observations[:, 1] = 0.0
    up = bool(rng.integers(2))
    observations[0, 1] = float(up)
    label = np.array([0.0, 0.0, 0.0, 0.8 if up else -0.8, 0.0], dtype=np.float32)
    recorder = EpisodeRecorder(observations[0])
    for step in range(steps):
        recorder.add(np.zeros(5), 0.0, observations[step + 1], label)
    return recorder.finish(terminated=True)


def test_a_policy_learns_to_act_on_what_only_its_memory_knows(actor):
    rng = np.random.default_rng(0)
    update = ImitationUpdate(actor, ImitationSettings(learning_rate=5e-3), planned_updates=100)
    for _ in range(100):
        episodes = [remember_the_first_picture(rng, 5) for _ in range(16)]
        losses = update.step(collate(episodes, 20, rng, Augmentation()))
    assert losses["imitation_loss"] < 0.01  # guessing 0 would cost 0.8^2 / 5 = 0.128


def test_unlabelled_steps_do_not_count(actor):
    rng = np.random.default_rng(0)
    episode = remember_the_first_picture(rng, 4)
    labels = episode.expert_action.copy()
    labels[2] = np.nan
    partly = Episode(
        episode.depth,
        episode.holding,
        episode.action,
        episode.reward,
        episode.terminated,
        labels,
    )
    loss = imitation_loss(
        actor, actor.dense(), collate([partly], 20, rng, Augmentation(rotate=False)), 0.98
    )
    assert torch.isfinite(loss)
    labels[:] = np.nan
    with pytest.raises(ValueError, match="no step"):
        imitation_loss(
            actor, actor.dense(), collate([partly], 20, rng, Augmentation(rotate=False)), 0.98
        )


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
    state = policy.start()
    for step in range(7):
        action, state = policy.act(observations[step], previous[step], state)
        np.testing.assert_allclose(action, torch.tanh(mean[step, 0]), atol=1e-5)


def test_a_snapshot_does_not_follow_the_actor(actor):
    rng = np.random.default_rng(0)
    observation = rng.uniform(0, 0.3, size=(2, 20, 20)).astype(np.float32)
    policy = ActingPolicy.of(actor)
    before, _ = policy.act(observation, np.zeros(5), policy.start())
    with torch.no_grad():
        for parameter in actor.parameters():
            parameter.add_(1.0)
    after, _ = policy.act(observation, np.zeros(5), policy.start())
    np.testing.assert_array_equal(before, after)


def test_random_actions_scatter_around_the_mean_and_stay_in_range(actor):
    rng = np.random.default_rng(0)
    policy = ActingPolicy.of(actor)
    observation = rng.uniform(0, 0.3, size=(2, 20, 20)).astype(np.float32)
    drawn = np.array(
        [policy.act(observation, np.zeros(5), policy.start(), rng)[0] for _ in range(50)]
    )
    assert drawn.std(axis=0).min() > 0.05
    assert np.abs(drawn).max() <= 1.0
