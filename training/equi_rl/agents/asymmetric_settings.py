# SPDX-License-Identifier: MIT
"""Hyper-parameters of the asymmetric actor-critic."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import Enum

from equi_rl.agents.sampled_improvement import SampledImprovementSettings


class Teacher(str, Enum):
    """What the actor learns from."""

    VALUES = "values"  # the critic's, of sampled actions
    SUCCESSES = "successes"  # demonstrations and own successes, imitated: a control


@dataclass(frozen=True)
class AsymmetricSettings:
    """Hyper-parameters of the asymmetric actor-critic."""

    teacher: Teacher = Teacher.VALUES
    """What the actor learns from: values (the critic's, of sampled actions), or successes
    (demonstrations and the agent's own successes, imitated; a control without critic)."""
    reward_scale: float = 1.0
    """Factor on the rewards that enter the critic's targets. 0 is the control for every claim
    about reward: nothing else changes, but nothing is learned from reward."""
    discount: float = 0.98
    """Discount factor gamma."""
    td_lambda: float = 0.8
    """Lambda of the TD(lambda) targets: 0 bootstraps after one step, 1 sums the whole episode."""
    target_range: tuple[float, float] = (-0.5, 1.0)
    """Range to which the critic's targets are clipped."""
    target_noise_std: float = 0.08
    """Noise on the policy's action in the targets, in policy units (TD3's target smoothing)."""
    heads: int = 3
    """Networks of the critic; the smallest of two of them enters the targets (REDQ), their mean
    weights the candidates."""
    width: int = 128
    """Units of the critic's two hidden layers."""
    tau: float = 0.01
    """Polyak coefficient: share of the new critic's weights that enters the target per step."""
    critic_learning_rate: float = 1e-3
    """Adam's learning rate of the critic."""
    critic_steps: int = 2
    """Steps of the critic per update, each on a batch of its own."""
    frozen_critic_steps: int = 2
    """The same while the actor is frozen. More let the critic mature on fewer environment steps."""
    critic_batch_episodes: int = 32
    """Whole episodes in a batch of the critic."""
    critic_demonstrations_per_batch: int = 4
    """How many of them are sampled from the demonstrations alone."""
    critic_recent_per_batch: int = 14
    """How many of them are sampled from the newest episodes alone."""
    critic_gradient_clip: float = 5.0
    """Largest norm of the critic's gradient."""
    actor_learning_rate: float = 5e-4
    """Adam's largest learning rate of the actor."""
    learning_rate_warmup_updates: int = 50
    """Updates over which the actor's learning rate rises from 0."""
    final_learning_rate_share: float = 0.1
    """It falls along a cosine to this share of itself at the end of the run."""
    actor_gradient_clip: float = 1.0
    """Largest norm of the actor's gradient."""
    actor_frozen_updates: int = 600
    """Number of updates in which only the critic learns."""
    demonstration_weight: float = 0.0
    """Weight of an imitation loss on the demonstrations of a batch, beside the improvement by
    values. It falls on a line to 0 at the end of the run: a young critic misleads."""
    policy_ema: float = 0.005
    """Share of the trained actor's weights that enters the acting policy per update."""
    sampled: SampledImprovementSettings = dataclasses.field(
        default_factory=SampledImprovementSettings
    )
    """Improvement by sampled actions."""

    def __post_init__(self) -> None:
        for name in ("discount", "td_lambda", "tau", "policy_ema"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(
                    f"asymmetric.{name} is {getattr(self, name)}; it must lie between 0 and 1"
                )
        if self.policy_ema == 0.0:
            raise ValueError(
                "asymmetric.policy_ema is 0.0; it must be above 0, or the acting policy never"
                " changes"
            )
        least = {
            "heads": 2,
            "width": 1,
            "critic_steps": 1,
            "frozen_critic_steps": 1,
            "critic_batch_episodes": 1,
        }
        for name in (
            "reward_scale",
            "actor_frozen_updates",
            "demonstration_weight",
            "critic_demonstrations_per_batch",
            "critic_recent_per_batch",
            *least,
        ):
            if getattr(self, name) < least.get(name, 0):
                raise ValueError(
                    f"asymmetric.{name} is {getattr(self, name)}; it must be at least"
                    f" {least.get(name, 0)}"
                )
        chosen = self.critic_demonstrations_per_batch + self.critic_recent_per_batch
        if chosen > self.critic_batch_episodes:
            raise ValueError(
                f"asymmetric.critic_demonstrations_per_batch and critic_recent_per_batch are"
                f" {chosen} together; they must fit in critic_batch_episodes,"
                f" {self.critic_batch_episodes}"
            )
