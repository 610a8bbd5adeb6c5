# SPDX-License-Identifier: MIT
"""Specification of the SAC learner: what plays follows what is trained."""

from __future__ import annotations

import copy

import pytest
import torch
from small_networks import random_batch, tiny_config

from equi_rl.agents.imitation import ImitationSettings
from equi_rl.agents.learner import SacLearner
from equi_rl.agents.sac_settings import Encoder, SacSettings
from equi_rl.data.collate import LabelledBatch
from equi_rl.nets.agent import build_agent


def a_learner(policy_ema: float, pretraining_updates: int = 0) -> SacLearner:
    torch.manual_seed(0)
    actor, critic = build_agent("equivariant", tiny_config())
    settings = SacSettings(
        policy_ema=policy_ema, encoder=Encoder.BOTH, actor_uses_updated_critic=False
    )
    return SacLearner(actor, critic, settings, ImitationSettings(updates=pretraining_updates))


def a_batch() -> LabelledBatch:
    episodes = random_batch(tiny_config(), (3, 7, 5), torch.Generator().manual_seed(0))
    return LabelledBatch(episodes, expert_actions=0.5 * episodes.requested_actions)


def trained(learner: SacLearner) -> dict[str, torch.Tensor]:
    return {
        name.removeprefix("trained."): tensor.clone()
        for name, tensor in learner.tensors().items()
        if name.startswith("trained.")
    }


def test_the_policy_moves_a_share_of_the_way_to_the_trained_actor():
    learner = a_learner(policy_ema=0.25)
    before = copy.deepcopy(dict(learner.actor.named_parameters()))
    learner.update(a_batch())
    goals = trained(learner)
    assert any(not torch.equal(before[name], goal) for name, goal in goals.items())
    for name, parameter in learner.actor.named_parameters():
        expected = before[name] + 0.25 * (goals[name] - before[name])
        torch.testing.assert_close(parameter, expected)


@pytest.mark.parametrize(("rate", "pretraining_updates"), [(1.0, 0), (0.01, 1)])
def test_in_pretraining_and_by_default_the_policy_is_the_trained_actor(rate, pretraining_updates):
    learner = a_learner(rate, pretraining_updates)
    learner.update(a_batch())
    goals = trained(learner)
    for name, parameter in learner.actor.named_parameters():
        torch.testing.assert_close(parameter, goals[name])


def test_a_restored_learner_goes_on_as_the_one_that_was_saved():
    learner, again = a_learner(0.1), a_learner(0.1)
    learner.update(a_batch())
    assert learner.critic is not None
    parameters = {
        f"{prefix}.{name}": parameter.detach().clone()
        for prefix, network in (("actor", learner.actor), ("critic", learner.critic))
        for name, parameter in network.named_parameters()
    }
    saved = {name: tensor.clone() for name, tensor in learner.tensors().items()}
    again.restore({**parameters, **saved}, learner.state())
    for one in (learner, again):
        torch.manual_seed(1)
        one.update(a_batch())
    for mine, other in zip(learner.actor.parameters(), again.actor.parameters(), strict=True):
        assert torch.equal(mine, other)


def test_a_policy_that_never_follows_is_refused():
    with pytest.raises(ValueError, match=r"policy_ema is 0\.0"):
        a_learner(policy_ema=0.0)


def test_an_update_never_walks_through_the_modules(monkeypatch):
    # escnn compares its bases at every step of such a walk: a fifth of an update's time.
    learner = a_learner(policy_ema=0.25, pretraining_updates=1)
    learner.update(a_batch())

    def walk(*args: object, **options: object) -> None:
        raise AssertionError("an update walks through its modules")

    monkeypatch.setattr(torch.nn.Module, "named_modules", walk)
    learner.update(a_batch())
    learner.update(a_batch())
