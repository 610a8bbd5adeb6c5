# SPDX-License-Identifier: MIT
"""Specification of the replay buffer as a critic of states sees it."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from equi_rl.agents.state_replay import StateReplay
from equi_rl.data.episode import Episode
from equi_rl.data.episode_batch import BatchError, EpisodeLayout
from equi_rl.data.replay_buffer import EpisodeReplayBuffer

LENGTHS = (2, 4, 1)


def an_episode(number: int, steps: int) -> Episode:
    """State k of episode n is (n, k); every step goes 1 in x, in a frame a quarter turn ahead."""
    actions = np.zeros((steps, 5), np.float32)
    actions[:, 1] = 1.0
    times = np.arange(steps + 1)
    return Episode(
        depth=np.zeros((steps + 1, 3, 3), np.uint16),
        holding=np.zeros(steps + 1, bool),
        requested_action=actions,
        executed_action=0.5 * actions,
        reward=np.full(steps, number, np.float32),
        terminated=True,
        expert_action=np.full((steps, 5), np.nan, np.float32),
        privileged_state=np.stack([np.full(steps + 1, number), times], 1).astype(np.float32),
        privileged_frame_rad=np.full(steps + 1, math.pi / 2, np.float32),
    )


@pytest.fixture
def episodes() -> list[Episode]:
    return [an_episode(number, steps) for number, steps in enumerate(LENGTHS)]


@pytest.fixture
def replay(episodes) -> StateReplay:
    buffer = EpisodeReplayBuffer()
    for episode in episodes:
        buffer.add(episode)
    return StateReplay(buffer)


def test_states_actions_and_rewards_are_packed_and_seen_in_the_frame_of_the_state(replay, episodes):
    batch = replay.batch(episodes)
    layout = batch.layout
    expected = torch.stack([layout.step_episode, layout.step_time], 1).float()
    assert torch.equal(batch.states, expected)
    assert torch.equal(batch.rewards, layout.step_episode.float())
    wanted = torch.tensor([0.0, 0.0, -1.0, 0.0, 0.0]).expand(sum(LENGTHS), 5)
    torch.testing.assert_close(batch.actions, wanted)


def test_what_the_policy_would_do_is_the_request_until_something_else_is_remembered(
    replay, episodes
):
    fresh = replay.batch(episodes)
    assert torch.equal(fresh.policy_actions, fresh.actions)
    two = [episodes[1], episodes[0]]
    layout = EpisodeLayout.of_lengths([4, 2])
    said = torch.stack([100.0 * layout.step_episode + layout.step_time] * 5, 1)
    replay.remember(two, layout, said)
    batch = replay.batch(episodes)
    number = batch.layout.step_episode
    expected = 100.0 * (1 - number) + batch.layout.step_time  # episode 1 was the first of the two
    known = number < 2
    assert torch.equal(batch.policy_actions[known][:, 0], expected[known])
    assert torch.equal(batch.policy_actions[~known], batch.actions[~known])
    assert torch.equal(batch.actions, fresh.actions)


def test_a_checkpoint_holds_what_is_remembered_of_every_episode(replay, episodes):
    layout = EpisodeLayout.of_lengths([4])
    replay.remember([episodes[1]], layout, torch.full((4, 5), 7.0))
    other = EpisodeReplayBuffer()
    for episode in episodes:
        other.add(dataclasses.replace(episode))
    restored = StateReplay(other)
    restored.restore(replay.tensor())
    found = restored.batch(list(other))
    assert torch.equal(found.policy_actions, replay.batch(episodes).policy_actions)
    assert StateReplay(EpisodeReplayBuffer()).tensor().shape == (0, 5)


def test_the_same_seed_of_torch_draws_the_same_batch(replay):
    drawn = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        drawn.append(replay.sample(20, 0, 0, 0).states)
    assert torch.equal(drawn[0], drawn[1])
    assert drawn[0].shape != drawn[2].shape or not torch.equal(drawn[0], drawn[2])


def test_episodes_without_the_simulators_state_are_refused(replay, episodes):
    blind = dataclasses.replace(episodes[0], privileged_state=None, privileged_frame_rad=None)
    with pytest.raises(BatchError, match=r"privileged_state is None; .* collect them again"):
        replay.batch([blind])
