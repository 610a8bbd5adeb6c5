"""Hyper-parameters of recurrent SAC; the defaults are the paper's."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Encoder(str, Enum):
    """Whose loss trains the picture encoder."""

    SEPARATE = "separate"  # actor and critic have one each
    CRITIC = "critic"  # one for both, trained by the critic's loss
    BOTH = "both"  # one for both, trained by both losses


@dataclass(frozen=True)
class SacSettings:
    """Hyper-parameters; the defaults are the paper's."""

    discount: float = 0.9
    trace: float = 0.0  # lambda: how much of the future is taken from what followed, not from V'
    target_rate: float = 0.005  # share of the new weights that enters the target per update
    actor_learning_rate: float = 3e-4
    critic_learning_rate: float = 3e-4
    temperature_learning_rate: float = 1e-3
    initial_temperature: float = 0.1
    target_entropy: float = -5.0
    entropy_in_target: bool = True
    demonstration_weight: float = 0.0  # of |policy's mean - expert's action|^2 in the actor's loss
    critic_first_updates: int = 0  # so long the actor follows demonstrations and no values yet
    updated_critic_judges: bool = True  # False: the critic's own pass is reused, 10 % faster
    encoder: Encoder = Encoder.SEPARATE
    policy_rate: float = 1.0  # share of the actor's new weights that enters the policy per update

    def __post_init__(self) -> None:
        if self.critic_first_updates and not self.demonstration_weight:
            raise ValueError("critic_first_updates needs a demonstration_weight to go by meanwhile")
        for name in ("trace", "target_rate", "policy_rate"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must lie between 0 and 1")
        if self.policy_rate == 0.0:
            raise ValueError(
                "policy_rate is 0.0; it must be above 0, or what is learnt never plays"
            )
        if self.encoder is not Encoder.SEPARATE and self.updated_critic_judges:
            raise ValueError(
                "updated_critic_judges needs the encoder 'separate': a shared one is updated last"
            )
