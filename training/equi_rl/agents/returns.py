"""What the critic should have said: returns over packed episodes, and their mean over copies."""

from __future__ import annotations

import torch
from torch import Tensor

from equi_rl.data.episode_batch import EpisodeLayout


def lambda_returns(
    rewards: Tensor, goes_on: Tensor, following: Tensor, trace: float, layout: EpisodeLayout
) -> Tensor:
    """Returns y_t (D,) = r_t + goes_on_t ((1 - trace) following_t + trace y_{t+1}).

    Args:
        rewards: (D,).
        goes_on: (D,) discount, zero where the episode ended.
        following: (D,) value V' of the history after each transition; the last of an episode that
            ran out of time rests on it alone.
        trace: lambda, between 0 and 1.
        layout: which transition follows which.
    """
    if not trace:
        return rewards + goes_on * following
    counts = layout.step_counts.tolist()
    steps = zip(*(tensor.split(counts) for tensor in (rewards, goes_on, following)), strict=True)
    returns: list[Tensor] = []
    for reward, factor, ahead in reversed(list(steps)):
        if returns:  # episodes that have a next step come first
            longer = len(returns[-1])
            mixed = torch.lerp(ahead[:longer], returns[-1], trace)
            ahead = torch.cat([mixed, ahead[longer:]])
        returns.append(reward + factor * ahead)
    return torch.cat(returns[::-1])


def mean_over_copies(values: Tensor, moment: Tensor) -> Tensor:
    """Each of ``values`` (D,) replaced by the mean of those with the same ``moment`` (D,)."""
    count = int(moment.max()) + 1
    total = values.new_zeros(count).index_add_(0, moment, values)
    copies = values.new_zeros(count).index_add_(0, moment, torch.ones_like(values))
    return (total / copies)[moment]
