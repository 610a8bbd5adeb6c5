"""Recurrent soft actor-critic: one update over packed whole episodes.

Reads beside the paper and the original SAC: histories h_t, actions a_t, twin values Q_1, Q_2 with
a slowly following target Q', policy pi, temperature alpha.

    y_t         = r_t + gamma (1 - terminated_t) ((1 - lambda) V'(h_{t+1}) + lambda y_{t+1})
    V'(h)       = min_i Q'_i(h, a) - alpha log pi(a | h)              with a ~ pi(h)
    critic      = sum_i mean_t (Q_i(h_t, a_t) - y_t)^2
    actor       = mean_t (alpha log pi(a | h_t) - min_i Q_i(h_t, a))  with a ~ pi(h_t)
    temperature = -mean_t alpha (log pi(a | h_t) + target entropy)

The paper has lambda = 0. With lambda > 0 a reward reaches the whole episode before it in a single
update instead of one step per update, at the price of judging, in part, the policy that played.

Every network sees each frame once: the actor's single forward pass serves the target (detached)
and its own loss. In the actor's loss the critic's weights carry no gradient. The target network
exists only as dense weights: expansion is linear, so averaging filters equals averaging
coefficients.

Actor and critic may share one picture encoder (``SacSettings.encoder``). A frame is then encoded
once for all of actor, critic and target, and the target follows slowly in everything but the
encoder.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import torch
from torch import Tensor

from equi_rl.agents.stage_timer import PartClock
from equi_rl.data.episode_batch import EpisodeBatch, EpisodeLayout
from equi_rl.nets import dense
from equi_rl.nets.agent import require_same_input, share_encoder
from equi_rl.nets.distributions import sample, squash
from equi_rl.nets.networks import Actor, ActorWeights, Critic, CriticWeights


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
        clock: PartClock | None = None,
        expert_actions: Tensor | None = None,
    ) -> dict[str, float]:
        """One update of critic, actor, temperature and target; returns the losses.

        ``expert_actions`` (D, 5) guide the actor with ``settings.demonstration_weight``; rows of
        NaN are steps about which no expert was asked.
        """
        clock = clock or PartClock()
        layout = batch.layout
        temperature = self.log_temperature.detach().exp()
        with clock.part("prepare frames"):
            frames = dense.prepare_depth(self.actor.config, batch.depth_m, batch.holding)
            previous = layout.previous_actions(batch.actions)
        with clock.part("expand filters"):
            actor_weights, critic_weights = self.actor.dense(), self.critic.dense()
        decided = layout.frame_of_step
        # Encoders see each frame once. In training the critic needs h_t alone, so with its own
        # encoder the last frame of each episode is left out.
        encoded = seen = None
        if self.shares_encoder:
            encoded = self._encode(critic_weights, frames, None, clock, "shared")
            seen = encoded.detach().requires_grad_()  # collects the gradient of every loss
            to_actor = seen if self.settings.encoder is Encoder.BOTH else seen.detach()
            to_target, to_critic = seen.detach(), seen[decided]
        else:
            to_actor = self._encode(actor_weights, frames, None, clock, "actor")
            with torch.no_grad():
                to_target = self._encode(self.target, frames, None, clock, "target")
            to_critic = self._encode(critic_weights, frames, decided, clock, "critic")

        action, log_density, centre = self._act(
            actor_weights, to_actor, previous, layout, generator, clock
        )
        with torch.no_grad():
            next_action = action.detach()[layout.next_frame_of_step]
            next_density = log_density.detach()[layout.next_frame_of_step]
            targets = self._targets(
                batch, to_target, previous, next_action, next_density, temperature, clock
            )

        history = self._critic_history(critic_weights, to_critic, previous, layout, clock)
        with clock.part("critic heads"):
            values = dense.critic_values(critic_weights, history, batch.actions)
            critic_loss = (values - targets).square().mean(dim=1).sum()
        with clock.part("critic backward"):
            self.critic_optimiser.zero_grad(set_to_none=True)
            critic_loss.backward()
        # Copied, because a plain network's dense weights are the parameters that will move.
        judge: CriticWeights = dense.map_tensors(critic_weights, _frozen_copy)
        if not self.shares_encoder:
            with clock.part("optimisers and target"):
                self.critic_optimiser.step()

        # actor: the critic judges; its weights carry no gradient
        history = history.detach()
        with torch.no_grad():
            if self.settings.updated_critic_judges:
                with clock.part("expand filters"):
                    judge = dense.map_tensors(self.critic.dense(), torch.detach)
                features = self._encode(judge, frames, decided, clock, "judge")
                history = self._critic_history(judge, features, previous, layout, clock)
        with clock.part("actor loss"):
            judged = dense.critic_values(judge, history, action[decided]).amin(dim=0)
            own_density = log_density[decided]
            # Values of an untrained critic would only undo what the actor knows.
            trusted = float(self.updates >= self.settings.critic_first_updates)
            actor_loss = trusted * (temperature * own_density - judged).mean()
            if expert_actions is not None and self.settings.demonstration_weight:
                known = ~torch.isnan(expert_actions).any(dim=1)
                if known.any():  # the mean of nothing is NaN
                    distance = (centre[decided][known] - expert_actions[known]).square().mean()
                    actor_loss = actor_loss + self.settings.demonstration_weight * distance
        with clock.part("actor backward"):
            self.actor_optimiser.zero_grad(set_to_none=True)
            actor_loss.backward()
        if encoded is not None and seen is not None:
            with clock.part("shared encoder backward"):
                encoded.backward(seen.grad)
            with clock.part("optimisers and target"):
                self.critic_optimiser.step()
        with clock.part("optimisers and target"):
            self.actor_optimiser.step()
            gap = (own_density.detach() + self.settings.target_entropy).mean()
            temperature_loss = -self.log_temperature.exp() * gap
            self.temperature_optimiser.zero_grad(set_to_none=True)
            temperature_loss.backward()
            self.temperature_optimiser.step()
            with torch.no_grad():
                newest = judge if self.settings.updated_critic_judges else self.critic.dense()
            follow_target(self.target, newest, self.settings.target_rate)
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
        clock: PartClock,
        name: str,
    ) -> Tensor:
        """Features (F, C) of all frames, or of those in ``rows``."""
        with clock.part(f"{name} encoder"):
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
        clock: PartClock,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Per frame: sampled action (F, 5), its log-density (F,), deterministic action (F, 5)."""
        config = self.actor.config
        with clock.part("actor LSTM"):
            history, _ = dense.run_history(
                config, weights.history, features, previous, layout.frame_counts
            )
        with clock.part("actor head"):
            mean, log_std = dense.actor_outputs(config, weights, history)
            noise = torch.randn(mean.shape, generator=generator)
            action, density = sample(mean, log_std, noise, config.squash)
            return action, density, squash(mean, config.squash)

    def _targets(
        self,
        batch: EpisodeBatch,
        features: Tensor,
        previous: Tensor,
        next_action: Tensor,
        next_density: Tensor,
        temperature: Tensor,
        clock: PartClock,
    ) -> Tensor:
        """y_t for every transition, (D,)."""
        config, layout = self.critic.config, batch.layout
        with clock.part("target LSTM and heads"):
            history, _ = dense.run_history(
                config, self.target.history, features, previous, layout.frame_counts
            )
            following = history[layout.next_frame_of_step]
            value = dense.critic_values(self.target, following, next_action).amin(dim=0)
        if self.settings.entropy_in_target:
            value = value - temperature * next_density
        goes_on = self.settings.discount * (1.0 - batch.terminated)
        targets = lambda_returns(batch.rewards, goes_on, value, self.settings.trace, layout)
        return targets if batch.moment is None else mean_over_copies(targets, batch.moment)

    def _critic_history(
        self,
        weights: CriticWeights,
        features: Tensor,
        previous: Tensor,
        layout: EpisodeLayout,
        clock: PartClock,
    ) -> Tensor:
        """History features (D, C) at the frames where a transition was decided."""
        with clock.part("critic LSTM"):
            history, _ = dense.run_history(
                self.critic.config,
                weights.history,
                features,
                previous[layout.frame_of_step],
                layout.step_counts,
            )
        return history


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


def follow_target(target: CriticWeights, newest: CriticWeights, rate: float) -> None:
    """Move the target's tensors in place a share ``rate`` of the way to the newest weights."""
    goals = dict(dense.named_tensors(newest))
    with torch.no_grad():
        for name, tensor in dense.named_tensors(target):
            tensor.lerp_(goals[name], rate)


def _frozen_copy(tensor: Tensor) -> Tensor:
    return tensor.detach().clone()
