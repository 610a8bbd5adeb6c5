# SPDX-License-Identifier: MIT
"""Returns over packed episodes: what a critic is trained towards."""

from __future__ import annotations

import torch
from torch import Tensor

from equi_rl.data.episode_batch import EpisodeLayout


def lambda_returns(
    rewards: Tensor,
    discounts: Tensor,
    next_values: Tensor,
    td_lambda: float,
    layout: EpisodeLayout,
) -> Tensor:
    """TD(lambda) returns y_t (D,) = r_t + gamma_t ((1 - lambda) V'_{t+1} + lambda y_{t+1}).

    Args:
        rewards: (D,).
        discounts: (D,) gamma_t, zero where the episode terminated.
        next_values: (D,) value V' of the history after each transition; the last of an episode
            that was truncated rests on it alone.
        td_lambda: lambda, between 0 and 1.
        layout: which transition follows which.
    """
    if not td_lambda:
        return rewards + discounts * next_values
    counts = layout.step_counts.tolist()
    columns = (tensor.split(counts) for tensor in (rewards, discounts, next_values))
    returns: list[Tensor] = []
    for reward, discount, next_value in reversed(list(zip(*columns, strict=True))):
        if returns:  # episodes that have a next step come first
            longer = len(returns[-1])
            mixed = torch.lerp(next_value[:longer], returns[-1], td_lambda)
            next_value = torch.cat([mixed, next_value[longer:]])
        returns.append(reward + discount * next_value)
    return torch.cat(returns[::-1])


def mean_over_copies(values: Tensor, copy_group: Tensor) -> Tensor:
    """Each of ``values`` (D,) replaced by the mean of those in the same ``copy_group`` (D,)."""
    count = int(copy_group.max()) + 1
    total = values.new_zeros(count).index_add_(0, copy_group, values)
    copies = values.new_zeros(count).index_add_(0, copy_group, torch.ones_like(values))
    return (total / copies)[copy_group]
