# SPDX-License-Identifier: MIT
"""Recurrent soft actor-critic: one update over packed whole episodes.

Reads beside the paper and the original SAC: histories h_t, actions a_t, twin values Q_1, Q_2 with
a target network Q' that is averaged towards them, policy pi, temperature alpha.

    y_t         = r_t + gamma (1 - terminated_t) ((1 - lambda) V'(h_{t+1}) + lambda y_{t+1})
    V'(h)       = min_i Q'_i(h, a) - alpha log pi(a | h)              with a ~ pi(h)
    critic      = sum_i mean_t (Q_i(h_t, a_t) - y_t)^2
    actor       = mean_t (alpha log pi(a | h_t) - min_i Q_i(h_t, a))  with a ~ pi(h_t)
    temperature = -mean_t alpha (log pi(a | h_t) + target entropy)

The paper has lambda = 0. With lambda > 0 a reward reaches the whole episode before it in a single
update instead of one step per update, at the price of evaluating, in part, the policy that acted.

Every network sees each frame once: the actor's single forward pass serves the target (detached)
and its own loss. In the actor's loss the critic's weights carry no gradient. The target network
exists only as dense weights: expansion is linear, so averaging filters equals averaging
coefficients.

Actor and critic may share one image encoder (``SacSettings.encoder``). A frame is then encoded
once for all of actor, critic and target, and the target network is averaged in everything but the
encoder.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import torch
from torch import Tensor

from equi_rl.agents.stage_timer import StageTimer
from equi_rl.data.episode_batch import EpisodeBatch, EpisodeLayout
from equi_rl.nets import dense
from equi_rl.nets.agent import require_same_input, share_encoder
from equi_rl.nets.distributions import sample, squash
from equi_rl.nets.networks import Actor, ActorWeights, Critic, CriticWeights


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
    td_lambda: float = 0.0
    """Lambda of the TD(lambda) targets: 0 bootstraps after one step, 1 sums the whole episode."""
    tau: float = 0.005
    """Polyak coefficient: share of the new critic's weights that enters the target per update."""
    actor_learning_rate: float = 3e-4
    """Adam's learning rate of the actor."""
    critic_learning_rate: float = 3e-4
    """Adam's learning rate of the critic, and of an encoder that both share."""
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
    """For so many updates the actor learns from demonstrations only, not from the critic."""
    actor_uses_updated_critic: bool = True
    """Whether the actor's loss runs the critic again after its update; False reuses the critic's
    own forward pass, which is 10 % faster."""
    encoder: Encoder = Encoder.SEPARATE
    """Which loss trains the image encoder: separate (one each for actor and critic), critic or
    both (one shared encoder, trained by the critic's or by both losses)."""
    policy_ema: float = 1.0
    """Share of the trained actor's weights that enters the acting policy per update: 1 acts with
    the newest weights, less with their exponential moving average."""

    def __post_init__(self) -> None:
        if self.critic_warmup_updates and not self.demonstration_weight:
            raise ValueError(
                f"sac.critic_warmup_updates is {self.critic_warmup_updates}; it must be 0 without a"
                " sac.demonstration_weight, or the actor learns nothing meanwhile"
            )
        for name in ("td_lambda", "tau", "policy_ema"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(
                    f"sac.{name} is {getattr(self, name)}; it must lie between 0 and 1"
                )
        if self.policy_ema == 0.0:
            raise ValueError(
                "sac.policy_ema is 0.0; it must be above 0, or the acting policy never changes"
            )
        if self.encoder is not Encoder.SEPARATE and self.actor_uses_updated_critic:
            raise ValueError(
                f"sac.actor_uses_updated_critic is True; it must be False with sac.encoder"
                f" '{self.encoder.value}', because a shared encoder is updated last"
            )


class SacUpdate:
    """Networks, target, temperature and optimisers; ``step`` makes one update."""

    def __init__(self, actor: Actor, critic: Critic, settings: SacSettings | None = None) -> None:
        self.settings = settings or SacSettings()
        self.actor, self.critic = actor, critic
        require_same_input(actor.config, critic.config)
        self.shares_encoder = self.settings.encoder is not Encoder.SEPARATE
        if self.shares_encoder:
            share_encoder(actor, critic)
        with torch.no_grad():
            self.target: CriticWeights = dense.map_tensors(critic.dense(), torch.clone)
        start = torch.tensor(self.settings.initial_temperature)
        self.log_temperature = start.log().requires_grad_()
        rates = self.settings
        theirs = set(critic.parameters())  # a shared encoder is moved by the critic's optimiser
        own = [parameter for parameter in actor.parameters() if parameter not in theirs]
        self.actor_optimiser = torch.optim.Adam(own, lr=rates.actor_learning_rate, foreach=True)
        self.critic_optimiser = torch.optim.Adam(
            critic.parameters(), lr=rates.critic_learning_rate, foreach=True
        )
        self.temperature_optimiser = torch.optim.Adam(
            [self.log_temperature], lr=rates.temperature_learning_rate
        )
        self.dtype = dense.convolution_dtype()
        self.updates = 0

    def step(
        self,
        batch: EpisodeBatch,
        generator: torch.Generator | None = None,
        timer: StageTimer | None = None,
        expert_actions: Tensor | None = None,
    ) -> dict[str, float]:
        """One update of critic, actor, temperature and target; returns the losses.

        ``expert_actions`` (D, 5) guide the actor with ``settings.demonstration_weight``; rows of
        NaN are steps about which no expert was asked.
        """
        timer = timer or StageTimer()
        layout = batch.layout
        temperature = self.log_temperature.detach().exp()
        with timer.stage("prepare frames"):
            frames = dense.prepare_depth(self.actor.config, batch.depth_m, batch.holding)
            previous = layout.previous_actions(batch.executed_actions)
        with timer.stage("expand filters"):
            actor_weights, critic_weights = self.actor.dense(), self.critic.dense()
        decided = layout.frame_of_step
        # Encoders see each frame once. In training the critic needs h_t alone, so with its own
        # encoder the last frame of each episode is left out.
        encoded = seen = None
        if self.shares_encoder:
            encoded = self._encode(critic_weights, frames, None, timer, "shared")
            seen = encoded.detach().requires_grad_()  # collects the gradient of every loss
            to_actor = seen if self.settings.encoder is Encoder.BOTH else seen.detach()
            to_target, to_critic = seen.detach(), seen[decided]
        else:
            to_actor = self._encode(actor_weights, frames, None, timer, "actor")
            with torch.no_grad():
                to_target = self._encode(self.target, frames, None, timer, "target")
            to_critic = self._encode(critic_weights, frames, decided, timer, "critic")

        action, log_density, centre = self._act(
            actor_weights, to_actor, previous, layout, generator, timer
        )
        with torch.no_grad():
            next_action = action.detach()[layout.next_frame_of_step]
            next_density = log_density.detach()[layout.next_frame_of_step]
            targets = self.targets(
                batch, to_target, previous, next_action, next_density, temperature, timer
            )

        history = self._critic_history(critic_weights, to_critic, previous, layout, timer)
        with timer.stage("critic heads"):
            values = dense.critic_values(critic_weights, history, batch.requested_actions)
            critic_loss = (values - targets).square().mean(dim=1).sum()
        with timer.stage("critic backward"):
            self.critic_optimiser.zero_grad(set_to_none=True)
            critic_loss.backward()
        # Copied, because a plain network's dense weights are the parameters that will move.
        frozen_critic: CriticWeights = dense.map_tensors(critic_weights, _frozen_copy)
        if not self.shares_encoder:
            with timer.stage("optimisers and target"):
                self.critic_optimiser.step()

        # Actor: the critic's weights carry no gradient in its loss.
        history = history.detach()
        with torch.no_grad():
            if self.settings.actor_uses_updated_critic:
                with timer.stage("expand filters"):
                    frozen_critic = dense.map_tensors(self.critic.dense(), torch.detach)
                features = self._encode(frozen_critic, frames, decided, timer, "updated critic")
                history = self._critic_history(frozen_critic, features, previous, layout, timer)
        with timer.stage("actor loss"):
            action_values = dense.critic_values(frozen_critic, history, action[decided])
            own_density = log_density[decided]
            # Values of an untrained critic would only undo what the actor knows.
            trusted = float(self.updates >= self.settings.critic_warmup_updates)
            actor_loss = trusted * (temperature * own_density - action_values.amin(dim=0)).mean()
            if expert_actions is not None and self.settings.demonstration_weight:
                known = ~torch.isnan(expert_actions).any(dim=1)
                if known.any():  # the mean of nothing is NaN
                    distance = (centre[decided][known] - expert_actions[known]).square().mean()
                    actor_loss = actor_loss + self.settings.demonstration_weight * distance
        with timer.stage("actor backward"):
            self.actor_optimiser.zero_grad(set_to_none=True)
            actor_loss.backward()
        if encoded is not None and seen is not None:
            with timer.stage("shared encoder backward"):
                encoded.backward(seen.grad)
            with timer.stage("optimisers and target"):
                self.critic_optimiser.step()
        with timer.stage("optimisers and target"):
            self.actor_optimiser.step()
            gap = (own_density.detach() + self.settings.target_entropy).mean()
            temperature_loss = -self.log_temperature.exp() * gap
            self.temperature_optimiser.zero_grad(set_to_none=True)
            temperature_loss.backward()
            self.temperature_optimiser.step()
            with torch.no_grad():
                newest = (
                    frozen_critic
                    if self.settings.actor_uses_updated_critic
                    else self.critic.dense()
                )
            polyak_update(self.target, newest, self.settings.tau)
        self.updates += 1
        return {
            "critic_loss": float(critic_loss.detach()),
            "actor_loss": float(actor_loss.detach()),
            "temperature": float(self.log_temperature.detach().exp()),
            "entropy": float(-own_density.detach().mean()),
            "value": float(values.detach().mean()),
        }

    def _encode(
        self,
        weights: ActorWeights | CriticWeights,
        frames: dense.Frames,
        rows: Tensor | None,
        timer: StageTimer,
        name: str,
    ) -> Tensor:
        """Features (F, C) of all frames, or of those in ``rows``."""
        with timer.stage(f"{name} encoder"):
            is_actor = isinstance(weights, ActorWeights)
            config = self.actor.config if is_actor else self.critic.config
            return dense.encode(config, weights.history.encoder, frames, rows, dtype=self.dtype)

    def _act(
        self,
        weights: ActorWeights,
        features: Tensor,
        previous: Tensor,
        layout: EpisodeLayout,
        generator: torch.Generator | None,
        timer: StageTimer,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Per frame: sampled action (F, 5), its log-density (F,), deterministic action (F, 5)."""
        config = self.actor.config
        with timer.stage("actor LSTM"):
            history, _ = dense.run_history(
                config, weights.history, features, previous, layout.frame_counts
            )
        with timer.stage("actor head"):
            mean, log_std = dense.actor_outputs(config, weights, history)
            noise = torch.randn(mean.shape, generator=generator)
            action, density = sample(mean, log_std, noise, config.squash)
            return action, density, squash(mean, config.squash)

    def targets(
        self,
        batch: EpisodeBatch,
        features: Tensor,
        previous: Tensor,
        next_action: Tensor,
        next_density: Tensor,
        temperature: Tensor,
        timer: StageTimer,
    ) -> Tensor:
        """y_t for every transition, (D,)."""
        config, layout = self.critic.config, batch.layout
        with timer.stage("target LSTM and heads"):
            history, _ = dense.run_history(
                config, self.target.history, features, previous, layout.frame_counts
            )
            next_history = history[layout.next_frame_of_step]
            next_values = dense.critic_values(self.target, next_history, next_action).amin(dim=0)
        if self.settings.entropy_in_target:
            next_values = next_values - temperature * next_density
        discounts = self.settings.discount * (1.0 - batch.terminated)
        targets = lambda_returns(
            batch.rewards, discounts, next_values, self.settings.td_lambda, layout
        )
        if batch.copy_group is None:
            return targets
        return mean_over_copies(targets, batch.copy_group)

    def _critic_history(
        self,
        weights: CriticWeights,
        features: Tensor,
        previous: Tensor,
        layout: EpisodeLayout,
        timer: StageTimer,
    ) -> Tensor:
        """History features (D, C) at the frames where a transition was decided."""
        with timer.stage("critic LSTM"):
            history, _ = dense.run_history(
                self.critic.config,
                weights.history,
                features,
                previous[layout.frame_of_step],
                layout.step_counts,
            )
        return history


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


def polyak_update(target: CriticWeights, newest: CriticWeights, tau: float) -> None:
    """Polyak averaging in place: target <- (1 - tau) target + tau newest."""
    new = dict(dense.named_tensors(newest))
    with torch.no_grad():
        for name, tensor in dense.named_tensors(target):
            tensor.lerp_(new[name], tau)


def _frozen_copy(tensor: Tensor) -> Tensor:
    return tensor.detach().clone()
