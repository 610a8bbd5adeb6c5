# SPDX-License-Identifier: MIT
"""Specification of SLAC's learner and policy: what learns from what, and how it acts."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from slac_runs import SIZE_PX, a_batch, moving_square, tiny_slac

from equi_rl.agents.learner import DivergedError
from equi_rl.data.episode import unpack_depth
from equi_rl.data.episode_batch import EpisodeLayout
from equi_rl.slac import images
from equi_rl.slac.actor_critic import Experience, SoftActorCritic, joined_rows, windows_of
from equi_rl.slac.learner import SlacLearner


@pytest.fixture(autouse=True)
def _exact_convolutions(monkeypatch):
    monkeypatch.setattr(images, "convolution_dtype", lambda device: torch.float32)
    torch.manual_seed(0)


def weights(network: torch.nn.Module) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in network.parameters()]


def changed(network: torch.nn.Module, before: list[torch.Tensor]) -> bool:
    return any(not torch.equal(a, b) for a, b in zip(network.parameters(), before, strict=True))


def test_pretraining_moves_the_latent_model_alone():
    learner = SlacLearner(tiny_slac(latent_updates=1, actor_critic_updates=2))
    batch = a_batch([moving_square(4, 0), moving_square(6, 1)])
    networks = (learner.model, learner.sac.actor, learner.sac.critic)
    before = [weights(network) for network in networks]
    metrics = learner.update(batch)
    moved = [changed(n, old) for n, old in zip(networks, before, strict=True)]
    assert moved == [True, False, False]
    assert "critic_loss" not in metrics
    assert not learner.is_pretraining
    assert learner.update(batch).keys() >= {"elbo", "kl", "critic_loss", "actor_loss"}
    assert all(changed(n, old) for n, old in zip(networks, before, strict=True))


def test_a_window_holds_the_last_frames_with_zeros_in_front():
    lengths, window = [2, 4], 3
    layout = EpisodeLayout.of_lengths(lengths)
    rows = (10.0 * layout.frame_episode + layout.frame_time + 1.0)[:, None]
    windows = windows_of(rows, layout, window)[..., 0]
    for row, episode, time in zip(windows, layout.frame_episode, layout.frame_time, strict=True):
        steps = torch.arange(int(time) - window + 1, int(time) + 1)
        expected = torch.where(steps < 0, 0.0, 10.0 * episode + steps + 1.0)
        assert torch.equal(row, expected)


@pytest.mark.parametrize("history_steps", [3, 20])
def test_the_policy_step_by_step_is_the_actor_on_the_whole_sequence(history_steps):
    learner = SlacLearner(tiny_slac(history_steps=history_steps))
    episode = moving_square(7, 3)
    batch = a_batch([episode]).episodes
    previous = batch.layout.previous_actions(batch.executed_actions)
    with torch.no_grad():
        features = learner.model.encoder(learner.model.frames(batch))
        windows = windows_of(joined_rows(features, previous), batch.layout, history_steps)
        expected = torch.tanh(learner.sac.actor(windows)[0]).numpy()
    policy = learner.policy()
    state = policy.start(0)
    depth_m = unpack_depth(episode.depth)
    for step in range(8):
        seen = np.stack([depth_m[step], np.full((SIZE_PX, SIZE_PX), episode.holding[step])])
        action, state = policy.act(seen.astype(np.float32), previous[step].numpy(), state)
        np.testing.assert_allclose(action, expected[step], atol=1e-5)


def test_acting_leaves_the_given_state_as_it_is_and_draws_from_the_generator():
    policy = SlacLearner(tiny_slac()).policy()
    state, seen = policy.start(0), np.zeros((2, SIZE_PX, SIZE_PX), dtype=np.float32)
    before = state.clone()
    drawn = [
        policy.act(seen, np.zeros(5), state, np.random.default_rng(seed))[0] for seed in (1, 1, 2)
    ]
    assert torch.equal(state, before)
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])


def test_a_policy_does_not_change_while_its_learner_goes_on():
    learner = SlacLearner(tiny_slac(latent_updates=0))
    policy, seen = learner.policy(), np.zeros((2, SIZE_PX, SIZE_PX), dtype=np.float32)
    before, _ = policy.act(seen, np.zeros(5), policy.start(0))
    learner.update(a_batch([moving_square(4, 0)]))
    after, _ = policy.act(seen, np.zeros(5), policy.start(0))
    np.testing.assert_array_equal(before, after)


def test_actor_and_critic_find_the_better_action():
    # Given one step whose reward is the larger, the nearer the first component is to 0.5
    # When both learn from random actions, then the actor's mean ends there.
    run = tiny_slac(learning_rate=3e-3, discount=0.0, target_entropy=-10.0)
    sac = SoftActorCritic(run)
    for seed in range(500):
        batch = a_batch([moving_square(1, 50 * seed + i) for i in range(32)]).episodes
        actions = batch.requested_actions
        batch.rewards.copy_(1.0 - (actions[:, 0] - 0.5).square())
        zeros = torch.zeros(batch.layout.n_frames, run.model.latent_size)
        windows = torch.zeros(batch.layout.n_frames, run.history_steps, sac.actor.row_size)
        metrics = sac.step(Experience(batch, zeros, windows))
    mean, _ = sac.actor(sac.actor.start()[None])
    assert float(torch.tanh(mean.detach()[0, 0])) == pytest.approx(0.5, abs=0.15)
    assert metrics["temperature"] < 0.1


def test_a_terminal_step_has_no_future_and_a_time_out_has_one():
    run = tiny_slac(discount=0.5)
    values = {}
    for succeeds in (True, False):
        torch.manual_seed(0)
        sac = SoftActorCritic(run)
        batch = a_batch([moving_square(1, 0, succeeds=succeeds)]).episodes
        batch.rewards.zero_()
        for head in sac.target.heads:
            head[-1].bias.fill_(100.0)
        zeros = torch.zeros(batch.layout.n_frames, run.model.latent_size)
        windows = torch.zeros(batch.layout.n_frames, run.history_steps, sac.actor.row_size)
        values[succeeds] = sac.step(Experience(batch, zeros, windows))["critic_loss"]
    assert values[True] < 1.0
    assert values[False] == pytest.approx(2 * 50.0**2, rel=0.1)


def test_a_restored_learner_goes_on_with_the_same_weights_to_the_bit():
    run = tiny_slac(latent_updates=1)
    batches = [a_batch([moving_square(5, seed)]) for seed in range(4)]
    straight = SlacLearner(run)
    for batch in batches[:2]:
        straight.update(batch)
    tensors = {name: tensor.clone() for name, tensor in straight.tensors().items()}
    state, generator = copy.deepcopy(straight.state()), torch.get_rng_state()
    for batch in batches[2:]:
        straight.update(batch)
    torch.manual_seed(99)
    continued = SlacLearner(run)
    continued.restore(tensors, state)
    torch.set_rng_state(generator)
    for batch in batches[2:]:
        continued.update(batch)
    for name, tensor in straight.tensors().items():
        assert torch.equal(tensor, continued.tensors()[name]), name
    assert continued.state() == straight.state()


def test_a_weight_that_is_not_finite_ends_the_run_by_name():
    learner = SlacLearner(tiny_slac())
    with torch.no_grad():
        next(iter(learner.model.decoder.parameters())).fill_(float("nan"))
    with pytest.raises(DivergedError, match="elbo became nan"):
        learner.update(a_batch([moving_square(4, 0)]))
