# SPDX-License-Identifier: MIT
"""Hyper-parameters of recurrent soft actor-critic; the defaults are the paper's."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Encoder(str, Enum):
    """Which loss trains the image encoder."""

    SEPARATE = "separate"  # actor and critic have one each
    CRITIC = "critic"  # one for both, trained by the critic's loss
    BOTH = "both"  # one for both, trained by both losses


@dataclass(frozen=True)
class SacSettings:
    """Hyper-parameters; the defaults are the paper's."""

    discount: float = 0.9
    """Discount factor gamma."""
    reward_scale: float = 1.0
    """Factor on the rewards that enter the critic's targets. 0 is the control for every claim
    about reward: nothing else changes, but nothing is learned from reward."""
    td_lambda: float = 0.0
    """Lambda of the TD(lambda) targets: 0 bootstraps after one step, 1 sums the whole episode."""
    time_outs_end: bool = False
    """Whether an episode that runs out of time counts as ended, so that its value is 0 from there
    on: success within the time limit is then the objective. False bootstraps."""
    target_range: tuple[float, float] | None = None
    """Range to which the critic's targets are clipped; None: no clipping."""
    tau: float = 0.005
    """Polyak coefficient: share of the new critic's weights that enters the target per update."""
    critic_heads: int = 2
    """Number of heads of the critic; each estimates the value of an action."""
    target_heads: int = 2
    """The targets use the smallest of this many heads, drawn at random per update (REDQ). If
    that is not all of them, the actor is improved by their mean, else by the smallest."""
    critic_layer_norm: bool = False
    """Whether hidden layers of the critic's heads are normalised; it keeps the symmetry exact."""
    actor_learning_rate: float = 3e-4
    """Adam's learning rate of the actor."""
    critic_learning_rate: float = 3e-4
    """Adam's learning rate of the critic, and of an encoder that both share."""
    actor_gradient_clip: float = 0.0
    """Largest norm of the actor's gradient; 0: no clipping."""
    critic_gradient_clip: float = 0.0
    """The same for the critic, and for an encoder that both share."""
    temperature_learning_rate: float = 1e-3
    """Adam's learning rate of the entropy temperature alpha."""
    initial_temperature: float = 0.1
    """Entropy temperature alpha before the first update."""
    target_entropy: float = -5.0
    """Entropy [nat] to which the temperature steers the policy."""
    entropy_in_target: bool = True
    """Whether the critic's targets contain the entropy bonus."""
    demonstration_weight: float = 0.0
    """Weight of |policy's mean - expert's action|^2 in the actor's loss."""
    critic_warmup_updates: int = 0
    """Number of updates in which the actor learns from demonstrations only, not from the critic."""
    actor_frozen_updates: int = 0
    """Number of updates in which only the critic learns."""
    actor_uses_updated_critic: bool = True
    """Whether the actor's loss runs the critic again after its update; False reuses the critic's
    own forward pass, which is 10 % faster."""
    encoder: Encoder = Encoder.SEPARATE
    """Which loss trains the image encoder: separate (one each for actor and critic), critic or
    both (one shared encoder, trained by the critic's or by both losses)."""
    slow_target_encoder: bool = False
    """With an encoder that critic or both losses train: whether the targets see through an average
    of it, as they do through the rest of the target network, at the price of one more pass."""
    policy_ema: float = 1.0
    """Share of the trained actor's weights that enters the acting policy per update: 1 acts with
    the newest weights, less with their exponential moving average."""

    def __post_init__(self) -> None:
        if self.critic_warmup_updates and not self.demonstration_weight:
            raise ValueError(
                f"sac.critic_warmup_updates is {self.critic_warmup_updates}; it must be 0 without a"
                " sac.demonstration_weight, or the actor learns nothing meanwhile; use"
                " sac.actor_frozen_updates for that"
            )
        for name in ("discount", "td_lambda", "tau", "policy_ema"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(
                    f"sac.{name} is {getattr(self, name)}; it must lie between 0 and 1"
                )
        for name in (
            "reward_scale",
            "actor_gradient_clip",
            "critic_gradient_clip",
            "actor_frozen_updates",
        ):
            if getattr(self, name) < 0:
                raise ValueError(f"sac.{name} is {getattr(self, name)}; it must be at least 0")
        if self.policy_ema == 0.0:
            raise ValueError(
                "sac.policy_ema is 0.0; it must be above 0, or the acting policy never changes"
            )
        if not 1 <= self.target_heads <= self.critic_heads:
            raise ValueError(
                f"sac.target_heads is {self.target_heads}; it must lie between 1 and"
                f" sac.critic_heads = {self.critic_heads}"
            )
        self._require_fit_for_encoder()

    def _require_fit_for_encoder(self) -> None:
        if self.trains_shared_encoder and self.actor_uses_updated_critic:
            raise ValueError(
                f"sac.actor_uses_updated_critic is True; it must be False with sac.encoder"
                f" '{self.encoder.value}', because a shared encoder is updated last"
            )
        if self.slow_target_encoder and not self.trains_shared_encoder:
            raise ValueError(
                "sac.slow_target_encoder is True; it must be False with sac.encoder"
                f" '{self.encoder.value}', whose target has its own encoder or needs none"
            )

    @property
    def shares_encoder(self) -> bool:
        """Whether actor and critic have one image encoder."""
        return self.encoder is not Encoder.SEPARATE

    @property
    def trains_shared_encoder(self) -> bool:
        """Whether that encoder is trained by SAC."""
        return self.encoder in (Encoder.CRITIC, Encoder.BOTH)
