# SPDX-License-Identifier: MIT
"""Metrics of a critic beside its loss: whether it ranks actions and outcomes that were seen.

Explained on the page `metrics.md`.
"""

from __future__ import annotations

import torch
from scipy.stats import spearmanr
from torch import Tensor

from equi_rl.agents.returns import lambda_returns
from equi_rl.data.array_episode import ArrayBatch
from equi_rl.data.episode_batch import EpisodeBatch

SATURATED_ABOVE = 0.97


def critic_diagnostics(
    batch: EpisodeBatch | ArrayBatch, values: Tensor, policy_values: Tensor, discount: float
) -> dict[str, float]:
    """Values of groups of steps, and how they rank; a group that the batch lacks is left out.

    Args:
        batch: packed episodes.
        values: (D,) of the requested actions.
        policy_values: (D,) of the policy's mean action after the same histories.
        discount: gamma.
    """
    shown = torch.zeros_like(values, dtype=torch.bool)
    if batch.is_demonstration is not None:
        shown = batch.is_demonstration
    succeeded = succeeded_steps(batch)
    found = {
        "q_demonstrations": _mean(values, shown),
        "q_successes": _mean(values, succeeded & ~shown),
        "q_failures": _mean(values, ~succeeded & ~shown),
        "q_demonstration_advantage": _mean(values - policy_values, shown),
        "q_return_rank_correlation": rank_correlation(values, discounted_returns(batch, discount)),
    }
    return {name: value for name, value in found.items() if value is not None}


def discounted_returns(batch: EpisodeBatch | ArrayBatch, discount: float) -> Tensor:
    """(D,) discounted sum of the rewards that followed each step in its episode."""
    discounts = discount * (1.0 - batch.layout.is_last_step.float())
    return lambda_returns(
        batch.rewards, discounts, torch.zeros_like(batch.rewards), 1.0, batch.layout
    )


def rank_correlation(one: Tensor, two: Tensor) -> float | None:
    """Spearman's rank correlation; None where either is constant."""
    if len(one) < 2 or bool((one == one[0]).all()) or bool((two == two[0]).all()):
        return None
    return float(spearmanr(one.cpu().numpy(), two.cpu().numpy()).statistic)


def saturated_share(actions: Tensor) -> float:
    """Share of the components of actions (N, 5) that are next to the end of their range."""
    return float((actions.abs() > SATURATED_ABOVE).float().mean())


def succeeded_steps(batch: EpisodeBatch | ArrayBatch) -> Tensor:
    """(D,) whether the step belongs to an episode that ended with a reward."""
    layout = batch.layout
    won = (batch.rewards > 0) & (batch.terminated > 0)
    by_episode = torch.zeros_like(layout.order, dtype=torch.bool)
    by_episode[layout.step_episode[won]] = True
    return by_episode[layout.step_episode]


def _mean(values: Tensor, chosen: Tensor) -> float | None:
    return float(values[chosen].mean()) if bool(chosen.any()) else None
