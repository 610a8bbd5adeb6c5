# SPDX-License-Identifier: MIT
"""Specification of what each setting of SAC changes, and of what it leaves alone."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from small_networks import random_batch, tiny_config

from equi_rl.agents.sac import SacUpdate
from equi_rl.agents.sac_settings import Encoder, SacSettings
from equi_rl.agents.stage_timer import StageTimer
from equi_rl.data.episode_batch import EpisodeBatch
from equi_rl.nets import dense
from equi_rl.nets.agent import build_agent

LENGTHS = (3, 7, 1, 5)


def a_batch(seed: int = 0) -> EpisodeBatch:
    return random_batch(tiny_config(), LENGTHS, torch.Generator().manual_seed(seed))


def an_update(combination: str = "equivariant", **settings) -> SacUpdate:
    torch.manual_seed(0)
    chosen = SacSettings(**settings)
    config = tiny_config(
        critic_heads=chosen.critic_heads, critic_layer_norm=chosen.critic_layer_norm
    )
    return SacUpdate(*build_agent(combination, config), chosen)


def weights_of(network: torch.nn.Module) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in network.parameters()]


def moved(network: torch.nn.Module, before: list[torch.Tensor]) -> list[bool]:
    return [
        not torch.equal(new, old) for new, old in zip(network.parameters(), before, strict=True)
    ]


def test_a_frozen_actor_waits_for_the_critic_and_then_learns():
    learner = an_update(actor_frozen_updates=2)
    actor, critic = learner.networks.actor, learner.networks.critic
    started, values = weights_of(actor), weights_of(critic)
    for _ in range(2):
        metrics = learner.step(a_batch())
        assert "actor_loss" not in metrics
        assert not any(moved(actor, started))
        assert metrics["temperature"] == pytest.approx(0.1)
    assert any(moved(critic, values))
    assert "actor_loss" in learner.step(a_batch())
    assert any(moved(actor, started))


@pytest.mark.parametrize("encoder", [Encoder.SEPARATE, Encoder.BOTH])
def test_clipped_gradients_are_no_longer_than_they_may_be(encoder):
    settings = {"encoder": encoder, "actor_uses_updated_critic": False}
    free = an_update(**settings).step(a_batch(), torch.Generator().manual_seed(1))
    assert free["actor_gradient_norm"] > 1e-3
    assert free["critic_gradient_norm"] > 1e-3
    learner = an_update(**settings, actor_gradient_clip=1e-3, critic_gradient_clip=1e-4)
    clipped = learner.step(a_batch(), torch.Generator().manual_seed(1))
    # What is logged is the norm before clipping.
    assert clipped["critic_gradient_norm"] == pytest.approx(free["critic_gradient_norm"], rel=1e-4)
    for optimiser, longest in (
        (learner.actor_optimiser, 1e-3),
        (learner.critic_optimiser, 1e-4),
    ):
        gradients = [p.grad for p in optimiser.param_groups[0]["params"] if p.grad is not None]
        norm = math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients))
        assert norm == pytest.approx(longest, rel=1e-3)


def targets_of(learner: SacUpdate, batch: EpisodeBatch, seed: int) -> torch.Tensor:
    networks = learner.networks
    frames = dense.prepare_depth(networks.actor.config, batch.depth_m, batch.holding)
    with torch.no_grad():
        return learner.targets(
            batch,
            dense.encode(networks.critic.config, networks.target.history.encoder, frames),
            batch.layout.previous_actions(batch.executed_actions),
            batch.requested_actions,
            torch.zeros(batch.layout.n_steps),
            torch.tensor(0.1),
            StageTimer(),
            torch.Generator().manual_seed(seed),
        )


def test_a_target_is_the_smallest_of_a_random_subset_of_the_heads():
    batch = a_batch()
    one_of_five = [
        targets_of(an_update(critic_heads=5, target_heads=1), batch, seed) for seed in range(40)
    ]
    all_five = targets_of(an_update(critic_heads=5, target_heads=5), batch, 0)
    distinct = {tuple(targets.tolist()) for targets in one_of_five}
    assert len(distinct) == 5
    smallest = torch.stack([torch.tensor(targets) for targets in distinct]).amin(dim=0)
    torch.testing.assert_close(all_five, smallest)


def test_with_all_heads_in_the_target_no_random_number_is_drawn():
    learner, batch = an_update(), a_batch()
    torch.manual_seed(7)
    state = torch.get_rng_state()
    assert torch.equal(targets_of(learner, batch, 7), targets_of(learner, batch, 8))
    assert torch.equal(torch.get_rng_state(), state)


def test_a_time_out_can_count_as_an_end():
    batch = dataclasses.replace(a_batch(), terminated=torch.zeros(sum(LENGTHS)))
    last = batch.layout.is_last_step
    assert int(last.sum()) == len(LENGTHS)
    goes_on = targets_of(an_update(), batch, 0)
    ends = targets_of(an_update(time_outs_end=True), batch, 0)
    torch.testing.assert_close(ends[last], batch.rewards[last])
    torch.testing.assert_close(ends[~last], goes_on[~last])
    assert (goes_on[last] != batch.rewards[last]).all()


def test_targets_can_be_kept_within_what_returns_can_be():
    batch = dataclasses.replace(a_batch(), rewards=torch.full((sum(LENGTHS),), 3.0))
    assert targets_of(an_update(), batch, 0).max() > 2.0
    assert targets_of(an_update(target_range=(-0.5, 1.0)), batch, 0).max() == 1.0


@pytest.mark.parametrize("slow", [False, True])
def test_a_shared_encoder_has_a_slow_copy_for_the_targets_if_asked(slow):
    learner = an_update(
        encoder=Encoder.CRITIC,
        actor_uses_updated_critic=False,
        slow_target_encoder=slow,
        critic_learning_rate=0.1,
        tau=0.01,
    )
    learner.step(a_batch())
    networks, batch = learner.networks, a_batch()
    features = networks.see(batch, networks.expand_actor(), networks.expand_critic(), StageTimer())
    assert features.leaf is not None
    assert torch.equal(features.to_target, features.leaf) is not slow
    frames = dense.prepare_depth(networks.actor.config, batch.depth_m, batch.holding)
    own = networks.encode(networks.target, frames, None, StageTimer(), "target")
    assert torch.equal(features.to_target, own) is slow


def test_a_shared_encoder_of_the_critic_does_not_feel_the_actors_loss():
    gradients = []
    for frozen in (0, 9):
        learner = an_update(
            encoder=Encoder.CRITIC, actor_uses_updated_critic=False, actor_frozen_updates=frozen
        )
        learner.step(a_batch(), torch.Generator().manual_seed(0))
        encoder = learner.networks.critic.history.encoder
        gradients.append([parameter.grad.clone() for parameter in encoder.parameters()])
    for one, two in zip(*gradients, strict=True):
        assert torch.equal(one, two)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"target_heads": 3}, r"sac.target_heads is 3; it must lie between 1 and .* 2"),
        ({"actor_gradient_clip": -1.0}, r"sac.actor_gradient_clip is -1.0; .* at least 0"),
        ({"actor_frozen_updates": -1}, r"sac.actor_frozen_updates is -1; .* at least 0"),
        ({"slow_target_encoder": True}, r"sac.slow_target_encoder is True; .* 'separate'"),
        ({"critic_warmup_updates": 5}, r"use sac.actor_frozen_updates"),
    ],
)
def test_settings_that_do_not_fit_say_what_does(settings, said):
    with pytest.raises(ValueError, match=said):
        SacSettings(**settings)
