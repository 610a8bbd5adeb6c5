# SPDX-License-Identifier: MIT
"""The fast path computes the same networks as the plain escnn modules, value and gradient."""

from __future__ import annotations

import pytest
import torch
from small_networks import tiny_config
from torch.nn import functional

from equi_rl.data.episode_batch import BatchError, EpisodeLayout
from equi_rl.nets import dense
from equi_rl.nets.agent import agent_configs
from equi_rl.nets.config import ArchitectureError, Combination, plain_twin, reference_config
from equi_rl.nets.equivariance import random_histories, run_actor, run_critic
from equi_rl.nets.layers import Dense
from equi_rl.nets.networks import (
    Actor,
    Critic,
    initial_state,
    normalise_observation,
)

VARIANTS = [
    *(agent_configs(item, tiny_config())[0] for item in Combination),
    tiny_config("D4"),
    tiny_config("C8", squash="radial"),
    pytest.param(tiny_config("D8"), marks=pytest.mark.slow),
    tiny_config(skip_connection=False, action_channels=0),
    tiny_config(log_std_xy="tied", initial_state="random"),
    tiny_config(critic_heads=3, critic_layer_norm=True),
    plain_twin(tiny_config(critic_layer_norm=True)),
]


def start_of(config, episodes):
    return initial_state(config, episodes, torch.Generator().manual_seed(1))


@pytest.mark.parametrize("config", VARIANTS)
def test_actor_and_critic_agree_with_their_modules(config):
    torch.manual_seed(0)
    actor, critic = Actor(config), Critic(config)
    histories = random_histories(config, steps=6, episodes=3, seed=1)
    state = start_of(config, 3)
    previous = histories.previous if config.action_channels else None
    with torch.no_grad():
        mean, log_std, _ = actor(histories.observations, previous, state)
        values, _ = critic(histories.observations, previous, histories.actions, state)
    fast_mean, fast_log_std = run_actor(actor, histories)
    torch.testing.assert_close(fast_mean, mean, atol=3e-6, rtol=1e-5)
    torch.testing.assert_close(fast_log_std, log_std, atol=3e-6, rtol=1e-5)
    torch.testing.assert_close(run_critic(critic, histories), values, atol=3e-6, rtol=1e-5)


def test_the_full_size_network_agrees_with_its_modules():
    torch.manual_seed(0)
    actor = Actor(reference_config("C4"))
    histories = random_histories(actor.config, steps=3, episodes=2, seed=1)
    with torch.no_grad():
        mean, log_std, _ = actor(
            histories.observations, histories.previous, start_of(actor.config, 2)
        )
    fast_mean, fast_log_std = run_actor(actor, histories)
    torch.testing.assert_close(fast_mean, mean, atol=5e-6, rtol=1e-5)
    torch.testing.assert_close(fast_log_std, log_std, atol=5e-6, rtol=1e-5)


def test_gradients_agree_with_the_modules():
    torch.manual_seed(0)
    config = tiny_config("D4")
    actor = Actor(config)
    histories = random_histories(config, steps=5, episodes=2, seed=2)
    weight = torch.randn(5, 2, 5)
    mean, log_std, _ = actor(histories.observations, histories.previous, initial_state(config, 2))
    parameters = list(actor.parameters())
    wanted = torch.autograd.grad((weight * (mean + log_std)).sum(), parameters)

    weights = actor.dense()
    frames = dense.prepare_observation(config, histories.observations.flatten(0, 1))
    features = dense.encode(config, weights.history.encoder, frames)
    history, _ = dense.run_history(
        config, weights.history, features, histories.previous.flatten(0, 1), torch.full((5,), 2)
    )
    mean, log_std = dense.actor_outputs(config, weights, history)
    found = torch.autograd.grad((weight.flatten(0, 1) * (mean + log_std)).sum(), parameters)
    for one, two in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, two, atol=2e-5, rtol=1e-4)


def test_packed_episodes_of_different_length_equal_each_episode_alone():
    torch.manual_seed(0)
    config = tiny_config()
    weights = Actor(config).dense()
    lengths = [2, 5, 3, 5]
    layout = EpisodeLayout.of_lengths(lengths)
    size = config.observation_size
    depth = torch.rand(4, 6, size, size) * 0.3
    holding = (torch.rand(4, 6) > 0.5).float()
    actions = torch.rand(4, 5, 5)
    at_frame = (layout.frame_episode, layout.frame_time)
    previous = layout.previous_actions(actions[layout.step_episode, layout.step_time])
    frames = dense.prepare_depth(config, depth[at_frame], holding[at_frame])
    features = dense.encode(config, weights.history.encoder, frames)
    packed, _ = dense.run_history(config, weights.history, features, previous, layout.frame_counts)
    for episode, length in enumerate(lengths):
        alone_frames = dense.prepare_depth(
            config, depth[episode, : length + 1], holding[episode, : length + 1]
        )
        before = torch.cat([torch.zeros(1, 5), actions[episode, :length]])
        alone, _ = dense.run_history(
            config,
            weights.history,
            dense.encode(config, weights.history.encoder, alone_frames),
            before,
            torch.ones(length + 1, dtype=torch.int64),
        )
        mine = layout.frame_episode == episode
        torch.testing.assert_close(packed[mine], alone, atol=1e-6, rtol=1e-5)


def test_the_layout_links_each_transition_to_its_two_frames():
    layout = EpisodeLayout.of_lengths([1, 3, 2])
    assert (layout.n_frames, layout.n_steps) == (9, 6)
    assert layout.order.tolist() == [1, 2, 0]
    for step in range(layout.n_steps):
        before, after = layout.frame_of_step[step], layout.next_frame_of_step[step]
        episode, time = layout.step_episode[step], layout.step_time[step]
        assert layout.frame_episode[before] == layout.frame_episode[after] == episode
        assert layout.frame_time[before] == time
        assert layout.frame_time[after] == time + 1


@pytest.mark.parametrize("lengths", [[], [3, 0], [-1]])
def test_an_empty_episode_is_refused(lengths):
    with pytest.raises(BatchError, match="lengths"):
        EpisodeLayout.of_lengths(lengths)


def test_only_the_listed_rows_are_encoded():
    config = tiny_config()
    weights = Actor(config).dense().history.encoder
    frames = dense.prepare_depth(config, torch.rand(150, 16, 16), torch.zeros(150))
    rows = torch.randperm(150)[:100]
    some = dense.encode(config, weights, frames, rows)
    torch.testing.assert_close(some, dense.encode(config, weights, frames)[rows])


def test_frames_of_another_size_are_refused():
    with pytest.raises(ArchitectureError, match=r"expected depth \(N, 16, 16\)"):
        dense.prepare_depth(tiny_config(), torch.zeros(2, 20, 20), torch.zeros(2))


def test_the_hand_written_backward_pass_equals_autograd_at_full_size():
    torch.manual_seed(0)
    config = reference_config("C4")
    depth, holding = torch.rand(3, 84, 84) * 0.3, torch.tensor([0.0, 1.0, 1.0])
    source, layers = 2, []
    for width, kernel in zip(config.encoder_channels, config.encoder_kernels, strict=True):
        weight = torch.randn(width, source, kernel, kernel) * (2.0 / (source * kernel**2)) ** 0.5
        layers.append(Dense(weight.requires_grad_(), (0.1 * torch.randn(width)).requires_grad_()))
        source = width
    parameters = [tensor for layer in layers for tensor in layer]
    observation = torch.stack([depth, holding[:, None, None].expand_as(depth)], dim=1)
    features = normalise_observation(config, observation)
    for layer, stride in zip(layers, config.encoder_strides, strict=True):
        features = torch.relu(functional.conv2d(features, layer.weight, layer.bias, stride))
    pull = torch.randn(3, 128)
    wanted = torch.autograd.grad((pull * features.flatten(1)).sum(), parameters)
    fast = dense.encode(config, tuple(layers), dense.prepare_depth(config, depth, holding))
    found = torch.autograd.grad((pull * fast).sum(), parameters)
    torch.testing.assert_close(fast, features.flatten(1), atol=1e-5, rtol=1e-4)
    for one, two in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, two, atol=1e-4 * float(two.abs().max()), rtol=1e-3)


def test_bfloat16_is_close_where_it_is_chosen_and_float32_is_the_fallback():
    torch.manual_seed(0)
    config = tiny_config()
    weights = Actor(config).dense().history.encoder
    frames = dense.prepare_depth(config, torch.rand(5, 16, 16) * 0.3, torch.zeros(5))
    exact = dense.encode(config, weights, frames)
    rough = dense.encode(config, weights, frames, dtype=torch.bfloat16)
    assert rough.dtype == torch.float32
    assert (rough - exact).abs().max() < 0.05 * exact.abs().max()
    assert dense.convolution_dtype() in (torch.float32, torch.bfloat16)
