# SPDX-License-Identifier: MIT
"""Policy improvement by sampled actions, as in MPO: propose, weight by value, regress.

At a history h, K candidate actions a_k: the policy's mean, the action in the replay buffer, and
samples around the first. With Q the mean over the critic's heads and a temperature eta,

    w_k  = softmax_k(Q(h, a_k) / eta)          eta such that mean KL(w | uniform) = target
    loss = mean_h | squash(mean(h)) - sum_k w_k a_k |^2

No slope of Q by the action is used: it is what a critic that has seen few, nearly equal actions
knows least. The constraint on the KL makes eta, not the reward's scale, decide how greedy a step
is. The standard deviation of the policy is not improved but held.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from equi_rl.agents.imitation import SPREAD_WEIGHT
from equi_rl.data.device import normal_like, uniform_like

_STEP_OF_LOG_TEMPERATURE = 0.01
_REACH = 0.99
"""Goals are clipped to +-this: a squashed mean never reaches 1."""


@dataclass(frozen=True)
class SampledImprovementSettings:
    """Hyper-parameters of the improvement by sampled actions."""

    samples: int = 12
    """Random candidates at a history, beside the two that are given."""
    noise_std: float = 0.15
    """Standard deviation of the random candidates, in policy units; each has 0.3 to 1.3 times it.
    """
    kl: float = 0.4
    """KL divergence [nat] between the weights of the candidates and equal ones: how greedy a step
    is, from 0 to the logarithm of the number of candidates."""
    initial_temperature: float = 0.02
    """Temperature eta before the first update, in units of value."""
    least_temperature: float = 2e-3
    """Below this, eta does not fall."""
    log_std: float = -2.0
    """Logarithm of the standard deviation at which the policy is held."""

    def __post_init__(self) -> None:
        if self.samples < 0:
            raise ValueError(f"asymmetric.sampled.samples is {self.samples}; it must be at least 0")
        most = math.log(2 + self.samples)
        if not 0.0 < self.kl < most:
            raise ValueError(
                f"asymmetric.sampled.kl is {self.kl}; it must lie between 0 and {most:.2f}, the"
                " logarithm of the number of candidates"
            )


class SampledImprovement:
    """The temperature eta, and the actor's loss at some histories."""

    def __init__(self, settings: SampledImprovementSettings) -> None:
        self.settings = settings
        self.temperature = settings.initial_temperature

    def loss(
        self,
        mean: Tensor,
        log_std: Tensor,
        given: tuple[Tensor, ...],
        value_of: Callable[[Tensor], Tensor],
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, dict[str, float]]:
        """The actor's loss and what to log about it; moves eta a step towards the wanted KL.

        Args:
            mean: (N, 5) the policy's squashed mean, with its gradient.
            log_std: (N, 5) logarithm of its standard deviation.
            given: candidates (N, 5) beside the mean.
            value_of: values (K, N) of candidates (K, N, 5).
            generator: draws the samples.
        """
        with torch.no_grad():
            actions = candidates(mean.detach(), given, self.settings, generator)
            values = value_of(actions)
            weights = torch.softmax(values / self.temperature, dim=0)
            kl = float((weights * (weights * len(weights)).clamp_min(1e-8).log()).sum(0).mean())
            gain = float((weights * (values - values.mean(0))).sum(0).mean())
            goal = (weights[..., None] * actions).sum(dim=0).clamp(-_REACH, _REACH)
        self._move_temperature(kl)
        loss = (mean - goal).square().sum(dim=1).mean()
        loss = loss + SPREAD_WEIGHT * (log_std - self.settings.log_std).square().mean()
        return loss, {
            "improvement_kl": kl,
            "improvement_gain": gain,
            "improvement_temperature": self.temperature,
        }

    def _move_temperature(self, kl: float) -> None:
        way = math.copysign(_STEP_OF_LOG_TEMPERATURE, kl - self.settings.kl)
        moved = self.temperature * math.exp(way)
        self.temperature = max(moved, self.settings.least_temperature)


def candidates(
    mean: Tensor,
    given: tuple[Tensor, ...],
    settings: SampledImprovementSettings,
    generator: torch.Generator | None = None,
) -> Tensor:
    """(K, N, 5): the mean, the given actions, and samples around the mean."""
    count = settings.samples
    spread = 0.3 + uniform_like(mean, generator, count, len(mean), 1)
    noise = normal_like(mean, generator, count, *mean.shape)
    drawn = (mean + settings.noise_std * spread * noise).clamp(-1.0, 1.0)
    return torch.cat([mean[None], torch.stack(given).clamp(-1.0, 1.0), drawn])
