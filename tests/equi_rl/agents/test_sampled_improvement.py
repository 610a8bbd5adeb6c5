# SPDX-License-Identifier: MIT
"""Specification of the improvement by sampled actions: towards the better ones, and so far."""

from __future__ import annotations

import pytest
import torch

from equi_rl.agents.sampled_improvement import (
    SampledImprovement,
    SampledImprovementSettings,
    candidates,
)

GOAL = torch.tensor([0.5, -0.5, 0.2, 0.0, 0.3])


def near_the_goal(actions: torch.Tensor) -> torch.Tensor:
    """Values (K, N), largest at GOAL."""
    return -(actions - GOAL).square().sum(dim=-1)


def given(count: int) -> tuple[torch.Tensor]:
    """An action of the replay buffer, which is not the goal."""
    return (torch.full((count, 5), 0.1),)


def test_candidates_are_the_mean_the_given_ones_and_samples_in_range():
    settings = SampledImprovementSettings(samples=6, noise_std=0.5)
    mean, (replayed,) = torch.full((4, 5), 0.9), given(4)
    found = candidates(mean, (replayed,), settings, torch.Generator().manual_seed(0))
    assert found.shape == (8, 4, 5)
    torch.testing.assert_close(found[:2], torch.stack([mean, replayed]))
    assert found.abs().max() <= 1.0
    assert found[2:].mean() > 0.4, "samples lie around the mean"
    without = candidates(mean, (replayed,), SampledImprovementSettings(samples=0, kl=0.5))
    assert without.shape == (2, 4, 5)


def test_the_mean_moves_to_where_the_values_are_high():
    improvement = SampledImprovement(SampledImprovementSettings(kl=0.5))
    mean = torch.zeros(32, 5, requires_grad=True)
    log_std = torch.full((32, 5), -2.0)
    generator = torch.Generator().manual_seed(0)
    optimiser = torch.optim.Adam([mean], lr=0.02)
    start = float(near_the_goal(mean.detach()).mean())
    for _ in range(300):
        loss, metrics = improvement.loss(mean, log_std, given(32), near_the_goal, generator)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        assert metrics["improvement_gain"] >= 0.0
    # Both are negative. It stops short: at a fixed KL the worse candidates keep some weight.
    assert float(near_the_goal(mean.detach()).mean()) > 0.3 * start


@pytest.mark.parametrize("scale", [1e-2, 1.0, 100.0])
def test_how_greedy_a_step_is_does_not_depend_on_the_scale_of_the_values(scale):
    improvement = SampledImprovement(SampledImprovementSettings(kl=0.4, least_temperature=1e-6))
    generator = torch.Generator().manual_seed(0)
    mean, log_std = torch.zeros(64, 5), torch.full((64, 5), -2.0)
    for _ in range(1500):
        _, metrics = improvement.loss(
            mean, log_std, given(64), lambda actions: scale * near_the_goal(actions), generator
        )
    assert metrics["improvement_kl"] == pytest.approx(0.4, abs=0.06)


def test_values_that_are_all_equal_move_the_mean_to_the_middle_of_the_candidates():
    improvement = SampledImprovement(SampledImprovementSettings(samples=0))
    mean = torch.full((2, 5), 0.5, requires_grad=True)
    loss, _ = improvement.loss(
        mean, torch.full((2, 5), -2.0), given(2), lambda a: torch.zeros(a.shape[:2])
    )
    middle = (0.5 + 0.1) / 2
    assert float(loss.detach()) == pytest.approx(5 * (0.5 - middle) ** 2, rel=1e-5)


def test_the_spread_of_the_policy_is_held():
    improvement = SampledImprovement(SampledImprovementSettings(log_std=-2.0))
    log_std = torch.zeros(4, 5, requires_grad=True)
    loss, _ = improvement.loss(torch.zeros(4, 5), log_std, given(4), near_the_goal)
    loss.backward()
    assert log_std.grad is not None
    assert (log_std.grad > 0).all()  # downhill is towards -2


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"samples": -1}, r"asymmetric.sampled.samples is -1; it must be at least 0"),
        ({"kl": 2.7}, r"asymmetric.sampled.kl is 2.7; it must lie between 0 and 2.64"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        SampledImprovementSettings(**settings)
