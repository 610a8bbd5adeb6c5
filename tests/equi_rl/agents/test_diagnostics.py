# SPDX-License-Identifier: MIT
"""Specification of a critic's metrics, on numbers that can be worked out by hand."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from small_networks import random_batch, tiny_config

from equi_rl.agents.diagnostics import (
    critic_diagnostics,
    discounted_returns,
    rank_correlation,
    saturated_share,
)
from equi_rl.agents.sac import SacUpdate
from equi_rl.data.episode_batch import EpisodeBatch
from equi_rl.nets.agent import build_agent
from equi_rl.training.metrics import METRICS


def three_episodes() -> EpisodeBatch:
    """A demonstration of 2 steps, a success of 3, and a failure of 1 that ran out of time."""
    batch = random_batch(tiny_config(), (2, 3, 1))
    last, episode = batch.layout.is_last_step, batch.layout.step_episode
    won = last & (episode != 2)
    return dataclasses.replace(
        batch, rewards=won.float(), terminated=won.float(), is_demonstration=episode == 0
    )


def test_the_return_that_followed_is_the_discounted_sum_of_rewards():
    batch = three_episodes()
    found = discounted_returns(batch, 0.5)
    by_episode = [found[batch.layout.step_episode == number].tolist() for number in range(3)]
    assert by_episode == [[0.5, 1.0], [0.25, 0.5, 1.0], [0.0]]


def test_values_are_told_apart_by_who_acted_and_how_it_ended():
    batch = three_episodes()
    values = torch.tensor([0.6, 0.4, 0.1])[batch.layout.step_episode]
    found = critic_diagnostics(batch, values, values - 0.25, 0.5)
    assert found["q_demonstrations"] == pytest.approx(0.6)
    assert found["q_successes"] == pytest.approx(0.4)
    assert found["q_failures"] == pytest.approx(0.1)
    assert found["q_demonstration_advantage"] == pytest.approx(0.25)


def test_a_group_that_is_not_there_is_left_out():
    batch = dataclasses.replace(three_episodes(), is_demonstration=None)
    found = critic_diagnostics(batch, torch.rand(6), torch.rand(6), 0.5)
    assert "q_demonstrations" not in found
    assert "q_demonstration_advantage" not in found


def test_a_critic_that_orders_as_the_returns_do_has_rank_correlation_one():
    returns = torch.tensor([0.1, 0.5, 0.3, 0.9])
    assert rank_correlation(returns.exp(), returns) == pytest.approx(1.0)
    assert rank_correlation(-returns, returns) == pytest.approx(-1.0)
    assert rank_correlation(torch.ones(4), returns) is None


def test_saturation_is_counted_per_component():
    actions = torch.tensor([[1.0, -0.99, 0.0, 0.5, 0.96]])
    assert saturated_share(actions) == pytest.approx(0.4)


def test_an_update_that_is_diagnosed_gives_metrics_that_are_explained():
    torch.manual_seed(0)
    learner = SacUpdate(*build_agent("equivariant", tiny_config()))
    plain = learner.step(three_episodes())
    more = learner.step(three_episodes(), diagnose=True)
    assert set(plain) < set(more) <= set(METRICS)
    assert {"q_failures", "q_return_rank_correlation", "saturated_actions"} <= set(more)
