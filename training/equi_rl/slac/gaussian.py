# SPDX-License-Identifier: MIT
"""Diagonal Gaussians of a latent state, and the small networks that give them."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

_LEAST_STD = 1e-3
_NEGATIVE_SLOPE = 0.2


class Gaussian(NamedTuple):
    """Independent normal distributions, one per number."""

    mean: Tensor
    """(..., Z)."""
    std: Tensor
    """(..., Z), positive."""

    def at(self, noise: Tensor) -> Tensor:
        """The sample (..., Z) that standard normal numbers stand for (reparametrised)."""
        return self.mean + self.std * noise


def standard_normal(like: Tensor) -> Gaussian:
    """Mean 0 and standard deviation 1 in the shape of a tensor."""
    return Gaussian(torch.zeros_like(like), torch.ones_like(like))


def joined(parts: list[Gaussian]) -> Gaussian:
    """Gaussians below each other, along the first dimension."""
    means, stds = zip(*parts, strict=True)
    return Gaussian(torch.cat(means), torch.cat(stds))


def kl_divergence(posterior: Gaussian, prior: Gaussian) -> Tensor:
    """KL(posterior || prior) [nats], summed over the last dimension: (...,)."""
    ratio = (posterior.std / prior.std).square()
    distance = ((posterior.mean - prior.mean) / prior.std).square()
    return 0.5 * (ratio + distance - 1.0 - ratio.log()).sum(dim=-1)


def negative_log_likelihood(value: Tensor, mean: Tensor, std: float) -> Tensor:
    """-log N(value; mean, std) [nats] of each number, in the shape of `value`."""
    constant = math.log(std) + 0.5 * math.log(2.0 * math.pi)
    return 0.5 * ((value - mean) / std).square() + constant


class GaussianNetwork(nn.Module):
    """Two hidden layers, then mean and standard deviation."""

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.layers = mlp(inputs, hidden, 2 * outputs)

    def forward(self, *inputs: Tensor) -> Gaussian:
        """Gaussian (N, outputs) given inputs (N, ...), which are joined."""
        mean, raw = self.layers(torch.cat(inputs, dim=-1)).chunk(2, dim=-1)
        return Gaussian(mean, functional.softplus(raw) + _LEAST_STD)


def mlp(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """Two hidden layers."""
    return nn.Sequential(
        nn.Linear(inputs, hidden),
        nn.LeakyReLU(_NEGATIVE_SLOPE),
        nn.Linear(hidden, hidden),
        nn.LeakyReLU(_NEGATIVE_SLOPE),
        nn.Linear(hidden, outputs),
    )
