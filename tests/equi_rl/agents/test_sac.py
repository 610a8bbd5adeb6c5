# SPDX-License-Identifier: MIT
"""One SAC update: same losses as the plain escnn program, and the right things move."""

from __future__ import annotations

import copy
import dataclasses

import pytest
import torch
from small_networks import random_batch, tiny_config

from equi_rl.agents.returns import lambda_returns, mean_over_copies
from equi_rl.agents.sac import SacUpdate
from equi_rl.agents.sac_networks import polyak_update
from equi_rl.agents.sac_settings import Encoder, SacSettings
from equi_rl.bench.update import EscnnUpdate, pad, update_operations
from equi_rl.data.episode_batch import BatchError, EpisodeBatch, EpisodeLayout
from equi_rl.nets import dense
from equi_rl.nets.agent import build_agent
from equi_rl.nets.config import ArchitectureError, reference_config
from equi_rl.nets.networks import Actor, Critic

LENGTHS = (3, 7, 1, 5)


@pytest.fixture
def networks():
    torch.manual_seed(0)
    return build_agent("equivariant", tiny_config())


def batch_of(config, seed=0):
    return random_batch(config, LENGTHS, torch.Generator().manual_seed(seed))


def gradient_of(parameter: torch.Tensor) -> torch.Tensor:
    assert parameter.grad is not None
    return parameter.grad


def test_three_updates_follow_the_plain_escnn_program(networks):
    actor, critic = networks
    settings = SacSettings(actor_learning_rate=1e-2, critic_learning_rate=1e-2, tau=0.3)
    plain = EscnnUpdate(copy.deepcopy(actor), copy.deepcopy(critic), settings)
    fast = SacUpdate(actor, critic, settings)
    fast.networks.dtype = torch.float32
    for seed in range(3):
        batch = batch_of(actor.config, seed)
        layout = batch.layout
        packed = torch.randn(layout.n_frames, 5, generator=torch.Generator().manual_seed(seed))
        noise = torch.zeros(len(layout.frame_counts), len(LENGTHS), 5)
        noise[layout.frame_time, layout.frame_episode] = packed
        expected = plain.step(pad(batch), (noise, noise[:-1]))
        found = fast.step(batch, torch.Generator().manual_seed(seed))
        for name, value in expected.items():
            assert found[name] == pytest.approx(value, rel=2e-3, abs=2e-4), (seed, name)


def test_the_critic_is_told_the_request_and_the_memory_what_was_executed(networks):
    actor, critic = networks
    batch = batch_of(actor.config)
    losses = {}
    for name in ("as it is", "requested_actions", "executed_actions"):
        learner = SacUpdate(copy.deepcopy(actor), copy.deepcopy(critic))
        changed = batch
        if name != "as it is":
            changed = dataclasses.replace(batch, **{name: -getattr(batch, name)})
        losses[name] = learner.step(changed, torch.Generator().manual_seed(1))
    # The request enters the value of the step alone, never the policy's histories.
    assert losses["requested_actions"]["entropy"] == losses["as it is"]["entropy"]
    assert losses["requested_actions"]["value"] != losses["as it is"]["value"]
    assert losses["executed_actions"]["entropy"] != losses["as it is"]["entropy"]


def returns_of(td_lambda, lengths=(3, 1, 5)):
    """Returns of episodes that end with reward 1, except the third, which runs out of time."""
    layout = EpisodeLayout.of_lengths(lengths)
    last = layout.step_time == torch.tensor(lengths)[layout.step_episode] - 1
    ended = last & (layout.step_episode != 2)
    value = 0.1 * (1 + layout.step_time)
    found = lambda_returns(ended.float(), 0.5 * (1 - ended.float()), value, td_lambda, layout)
    return [found[layout.step_episode == number].tolist() for number in range(len(lengths))]


def test_without_a_trace_a_return_looks_one_step_ahead():
    first, second, third = returns_of(0.0)
    assert first == pytest.approx([0.05, 0.1, 1.0])
    assert second == pytest.approx([1.0])
    assert third == pytest.approx([0.05, 0.1, 0.15, 0.2, 0.25])


def test_a_full_trace_is_what_was_really_earned():
    first, second, third = returns_of(1.0)
    assert first == pytest.approx([0.25, 0.5, 1.0])
    assert second == pytest.approx([1.0])
    # Time ran out: all rests on the value of the last history.
    assert third == pytest.approx([0.5 * 0.5**k for k in (5, 4, 3, 2, 1)])


def test_a_trace_between_mixes_what_was_earned_with_the_value_of_the_next_history():
    first, _, _ = returns_of(0.5)
    assert first == pytest.approx(
        [0.5 * (0.5 * 0.1 + 0.5 * 0.3), 0.5 * (0.5 * 0.2 + 0.5 * 1.0), 1.0]
    )


def test_a_terminal_transition_does_not_bootstrap_and_a_time_out_does(networks):
    actor, critic = networks
    learner = SacUpdate(actor, critic)
    batch = batch_of(actor.config)
    ended = dataclasses.replace(batch, terminated=torch.ones(batch.layout.n_steps))
    going = dataclasses.replace(batch, terminated=torch.zeros(batch.layout.n_steps))
    frames = dense.prepare_depth(actor.config, batch.depth_m, batch.holding)
    features = dense.encode(critic.config, learner.networks.target.history.encoder, frames)
    previous = batch.layout.previous_actions(batch.executed_actions)
    density = torch.full((batch.layout.n_steps,), -1.0)
    targets = [
        learner.targets(
            item, features, previous, batch.requested_actions, density, torch.tensor(0.5), _timer()
        )
        for item in (ended, going)
    ]
    torch.testing.assert_close(targets[0], batch.rewards)
    assert (targets[1] - batch.rewards).abs().min() > 0.0


def _timer():
    from equi_rl.agents.stage_timer import StageTimer

    return StageTimer()


@pytest.mark.parametrize("combination", ["equivariant", "plain"])
def test_the_actor_loss_leaves_no_gradient_in_the_critic(combination):
    torch.manual_seed(0)
    actor, critic = build_agent(combination, tiny_config())
    learner = SacUpdate(actor, critic)
    seen: list[list[torch.Tensor]] = []

    def record(*_):
        seen.append([gradient_of(parameter).clone() for parameter in critic.parameters()])

    learner.critic_optimiser.register_step_pre_hook(record)
    learner.step(batch_of(actor.config))
    for before, parameter in zip(seen[0], critic.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, before)


def test_the_target_follows_filters_as_it_would_follow_coefficients(networks):
    _, critic = networks
    other = Critic(critic.config)
    with torch.no_grad():
        target = dense.map_tensors(critic.dense(), torch.clone)
        polyak_update(target, other.dense(), 0.25)
        for parameter, goal in zip(critic.parameters(), other.parameters(), strict=True):
            parameter.lerp_(goal, 0.25)
        expected = dict(dense.named_tensors(critic.dense()))
    for name, tensor in dense.named_tensors(target):
        torch.testing.assert_close(tensor, expected[name], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("combination", ["equivariant", "plain"])
def test_a_reused_critic_is_the_one_before_its_update(combination):
    # With a critic that does not move, both orders are the same update.
    losses = []
    for updated in (True, False):
        torch.manual_seed(0)
        actor, critic = build_agent(combination, tiny_config())
        settings = SacSettings(critic_learning_rate=0.0, actor_uses_updated_critic=updated)
        learner = SacUpdate(actor, critic, settings)
        generator = torch.Generator().manual_seed(1)
        losses.append([learner.step(batch_of(actor.config), generator) for _ in range(2)])
    for one, two in zip(*losses, strict=True):
        assert one == pytest.approx(two, rel=1e-4, abs=1e-5)
    # With one that does move, the actor sees the old critic.
    torch.manual_seed(0)
    actor, critic = build_agent(combination, tiny_config())
    settings = SacSettings(critic_learning_rate=0.1, actor_uses_updated_critic=False)
    learner = SacUpdate(actor, critic, settings)
    first = learner.step(batch_of(actor.config), torch.Generator().manual_seed(1))
    assert first["actor_loss"] == pytest.approx(losses[0][0]["actor_loss"], rel=1e-4, abs=1e-5)


def test_the_critic_learns_constant_rewards(networks):
    actor, critic = networks
    settings = SacSettings(discount=0.0, critic_learning_rate=3e-3)
    learner = SacUpdate(actor, critic, settings)
    batch = batch_of(actor.config)
    batch = dataclasses.replace(batch, rewards=torch.full((batch.layout.n_steps,), 0.7))
    losses = [learner.step(batch)["critic_loss"] for _ in range(60)]
    assert losses[-1] < 0.02 * losses[0]


@pytest.mark.parametrize(("scale", "blind"), [(0.0, True), (1.0, False)])
def test_with_a_reward_scale_of_zero_rewards_change_nothing(networks, scale, blind):
    actor, critic = networks
    batch = batch_of(actor.config)
    losses = []
    for rewards in (batch.rewards, torch.zeros_like(batch.rewards)):
        settings = SacSettings(reward_scale=scale)
        update = SacUpdate(copy.deepcopy(actor), copy.deepcopy(critic), settings)
        told = dataclasses.replace(batch, rewards=rewards)
        losses.append(update.step(told, torch.Generator().manual_seed(0))["critic_loss"])
    assert (losses[0] == losses[1]) is blind


def test_a_batch_without_any_label_is_learnt_from_by_reward_alone(networks):
    batch = batch_of(networks[0].config)
    losses = []
    for labels in (None, torch.full_like(batch.requested_actions, float("nan"))):
        actor, critic = copy.deepcopy(networks)
        learner = SacUpdate(actor, critic, SacSettings(demonstration_weight=0.3))
        generator = torch.Generator().manual_seed(1)
        losses.append(learner.step(batch, generator, expert_actions=labels))
    assert losses[0] == losses[1]


def test_a_batch_that_does_not_fit_its_layout_is_refused(networks):
    batch = batch_of(networks[0].config)
    with pytest.raises(BatchError, match=r"batch.rewards has 2 rows"):
        EpisodeBatch(
            batch.layout,
            batch.depth_m,
            batch.holding,
            batch.requested_actions,
            batch.executed_actions,
            batch.rewards[:2],
            batch.terminated,
        )


def test_actor_and_critic_must_read_the_same_depth():
    actor = Actor(tiny_config())
    critic = Critic(tiny_config(depth_offset_m=0.2))
    with pytest.raises(ArchitectureError, match=r"network.depth_offset_m"):
        SacUpdate(actor, critic)


def test_operations_are_counted_per_frame_and_pass():
    # One frame, forward only: 1.64 + 5.31 + 3.61 + 1.84 + 0.66 + 0.15 million operations.
    config = reference_config("C4")
    forward = 2 * (400 * 32 * 64 + 81 * 64 * 32 * 16 + (49 + 25 + 9) * 64 * 64 * 9 + 128 * 64 * 9)
    first = 2 * 400 * 32 * 64
    actor_and_target = 3 * forward - first + forward
    assert update_operations(config, frames=1, steps=0) == pytest.approx(actor_and_target)
    assert update_operations(config, frames=0, steps=1) == pytest.approx(actor_and_target)


@pytest.mark.parametrize("combination", ["equivariant", "plain"])
def test_the_gradient_of_a_shared_encoder_is_the_slope_of_the_critic_loss(combination):
    # Without a discount the targets are the rewards, so the loss depends on the encoder once.
    torch.manual_seed(0)
    actor, critic = build_agent(combination, tiny_config())
    settings = SacSettings(
        discount=0.0,
        critic_learning_rate=0.0,
        actor_uses_updated_critic=False,
        encoder=Encoder.CRITIC,
    )
    learner = SacUpdate(actor, critic, settings)
    learner.networks.dtype = torch.float32  # a slope over so small a distance needs every digit
    batch = batch_of(actor.config)
    learner.step(batch)
    parameters = list(critic.history.encoder.parameters())
    direction = [torch.randn_like(parameter) for parameter in parameters]
    promised: float = sum(
        float((gradient_of(parameter) * change).sum())
        for parameter, change in zip(parameters, direction, strict=True)
    )

    def loss_at(distance):
        with torch.no_grad():
            for parameter, change in zip(parameters, direction, strict=True):
                parameter.add_(change, alpha=distance)
        loss = learner.step(batch)["critic_loss"]
        with torch.no_grad():
            for parameter, change in zip(parameters, direction, strict=True):
                parameter.sub_(change, alpha=distance)
        return loss

    # Close enough that hardly any rectifier switches in between.
    slope = (loss_at(5e-5) - loss_at(-5e-5)) / 1e-4
    assert slope == pytest.approx(promised, rel=0.05, abs=1e-4)


def test_a_shared_encoder_serves_both_networks_and_learns_from_both_losses(networks):
    actor, critic = networks
    gradients = []
    for encoder in (Encoder.CRITIC, Encoder.BOTH):
        one, two = copy.deepcopy(actor), copy.deepcopy(critic)
        settings = SacSettings(actor_uses_updated_critic=False, encoder=encoder)
        learner = SacUpdate(one, two, settings)
        learner.step(batch_of(actor.config), torch.Generator().manual_seed(0))
        assert one.history.encoder is two.history.encoder
        gradients.append([p.grad.clone() for p in two.history.encoder.parameters()])
    differences = [(a - b).abs().max() for a, b in zip(*gradients, strict=True)]
    assert max(differences) > 0.0


def test_networks_of_different_kinds_cannot_share_an_encoder():
    actor, critic = build_agent("actor-only", tiny_config())
    settings = SacSettings(actor_uses_updated_critic=False, encoder=Encoder.BOTH)
    with pytest.raises(ArchitectureError, match=r"equivariant_encoder.*separate"):
        SacUpdate(actor, critic, settings)


def test_copies_of_a_transition_share_the_mean_of_their_targets():
    values = torch.tensor([1.0, 4.0, 3.0, 8.0])
    copy_group = torch.tensor([0, 1, 0, 1])
    torch.testing.assert_close(
        mean_over_copies(values, copy_group), torch.tensor([2.0, 6.0, 2.0, 6.0])
    )
