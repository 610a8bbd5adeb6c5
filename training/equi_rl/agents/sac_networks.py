# SPDX-License-Identifier: MIT
"""Actor, critic and target of soft actor-critic, and their forward passes over packed episodes.

The target network exists only as dense weights: expansion is linear, so averaging filters equals
averaging coefficients. `SacSettings.encoder` says whose the image encoder is; each encoder sees
each frame once per update.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import Parameter

from equi_rl.agents.sac_settings import Encoder, SacSettings
from equi_rl.agents.stage_timer import StageTimer
from equi_rl.data.array_episode import ArrayBatch
from equi_rl.data.device import normal_like
from equi_rl.data.episode_batch import EpisodeBatch, EpisodeLayout
from equi_rl.nets import dense
from equi_rl.nets.agent import require_same_input, share_encoder
from equi_rl.nets.distributions import sample, squash
from equi_rl.nets.networks import Actor, ActorWeights, Critic, CriticWeights


class Features(NamedTuple):
    """What the networks see of the batch's frames."""

    to_actor: Tensor  # (F, C)
    to_target: Tensor  # (F, C)
    to_critic: Tensor  # (D, C): the frames in which a transition was decided
    encoded: Tensor | None  # (F, C) from an encoder that SAC trains for both networks
    leaf: Tensor | None  # the same, cut from the encoder: collects the gradient of every loss
    frames: dense.Frames | Tensor  # the images, or arrays


class PolicyOutput(NamedTuple):
    """What the actor makes of every frame."""

    action: Tensor  # (F, A) sampled
    log_density: Tensor  # (F,)
    mean: Tensor  # (F, A) deterministic action
    log_std: Tensor  # (F, A)


class SacNetworks:
    """The networks of one agent.

    Attributes:
        actor, critic: what is trained.
        target: dense weights that follow the critic's.
        dtype: of the encoders' convolutions.
    """

    def __init__(self, actor: Actor, critic: Critic, settings: SacSettings) -> None:
        self.actor, self.critic, self.settings = actor, critic, settings
        require_same_input(actor.config, critic.config)
        if settings.shares_encoder:
            share_encoder(actor, critic)
        self.dtype = dense.convolution_dtype(next(actor.parameters()).device)
        with torch.no_grad():
            self.target: CriticWeights = dense.map_tensors(self.expand_critic(), torch.clone)

    def begin(self) -> None:
        """Right before the first update: imitation may have trained a shared encoder."""
        with torch.no_grad():
            self.target = dense.map_tensors(self.expand_critic(), torch.clone)

    def parameters(self) -> tuple[list[Parameter], list[Parameter]]:
        """What the actor's and the critic's loss train; a shared encoder is the critic's."""
        theirs = set(self.critic.parameters())
        return (
            [parameter for parameter in self.actor.parameters() if parameter not in theirs],
            list(self.critic.parameters()),
        )

    def expand_actor(self) -> ActorWeights:
        """Dense weights of the actor."""
        return self.actor.dense()

    def expand_critic(self) -> CriticWeights:
        """Dense weights of the critic."""
        return self.critic.dense()

    def update_target(self, newest: CriticWeights) -> None:
        """Move the target a little way to the newest weights."""
        polyak_update(self.target, newest, self.settings.tau)

    def see(
        self,
        batch: EpisodeBatch | ArrayBatch,
        actor_weights: ActorWeights,
        critic_weights: CriticWeights,
        timer: StageTimer,
    ) -> Features:
        """Encode each frame once per encoder."""
        decided = batch.layout.frame_of_step
        with timer.stage("prepare frames"):
            frames = dense.frames_of(self.actor.config, batch)
        if not self.settings.shares_encoder:
            to_actor = self.encode(actor_weights, frames, None, timer, "actor")
            with torch.no_grad():
                to_target = self.encode(self.target, frames, None, timer, "target")
            # In training the critic needs h_t alone: the last frame of an episode is left out.
            to_critic = self.encode(critic_weights, frames, decided, timer, "critic")
            return Features(to_actor, to_target, to_critic, None, None, frames)
        encoded = self.encode(critic_weights, frames, None, timer, "shared")
        leaf = encoded.detach().requires_grad_()
        to_actor = leaf if self.settings.encoder is Encoder.BOTH else leaf.detach()
        to_target = leaf.detach()
        if self.settings.slow_target_encoder:
            with torch.no_grad():
                to_target = self.encode(self.target, frames, None, timer, "target")
        return Features(to_actor, to_target, leaf[decided], encoded, leaf, frames)

    def encode(
        self,
        weights: ActorWeights | CriticWeights,
        frames: dense.Frames | Tensor,
        rows: Tensor | None,
        timer: StageTimer,
        name: str,
    ) -> Tensor:
        """Features (F, C) of all frames, or of those in ``rows``."""
        with timer.stage(f"{name} encoder"):
            is_actor = isinstance(weights, ActorWeights)
            config = self.actor.config if is_actor else self.critic.config
            return dense.encode(config, weights.history.encoder, frames, rows, dtype=self.dtype)

    def act(
        self,
        weights: ActorWeights,
        features: Tensor,
        previous: Tensor,
        layout: EpisodeLayout,
        generator: torch.Generator | None,
        timer: StageTimer,
    ) -> PolicyOutput:
        """Run the actor over all frames and sample an action in each."""
        config = self.actor.config
        with timer.stage("actor LSTM"):
            history, _ = dense.run_history(
                config, weights.history, features, previous, layout.frame_counts
            )
        with timer.stage("actor head"):
            mean, log_std = dense.actor_outputs(config, weights, history)
            noise = normal_like(mean, generator)
            action, density = sample(mean, log_std, noise, config.squash)
            return PolicyOutput(action, density, squash(mean, config.squash), log_std)

    def critic_history(
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

    def updated_critic(
        self, features: Features, previous: Tensor, layout: EpisodeLayout, timer: StageTimer
    ) -> tuple[CriticWeights, Tensor]:
        """The critic after its update, without gradient, and its history features (D, C)."""
        with torch.no_grad():
            with timer.stage("expand filters"):
                weights: CriticWeights = dense.map_tensors(self.expand_critic(), torch.detach)
            rows = layout.frame_of_step
            seen = self.encode(weights, features.frames, rows, timer, "updated critic")
            return weights, self.critic_history(weights, seen, previous, layout, timer)

    def next_values(
        self, features: Tensor, previous: Tensor, actions: Tensor, layout: EpisodeLayout
    ) -> Tensor:
        """Values (heads, D) by the target of actions (D, A) after each transition."""
        history, _ = dense.run_history(
            self.critic.config, self.target.history, features, previous, layout.frame_counts
        )
        return self.values(self.target, history[layout.next_frame_of_step], actions)

    def values(self, weights: CriticWeights, history: Tensor, actions: Tensor) -> Tensor:
        """Values (heads, N) of actions (N, A) after histories (N, C)."""
        return dense.critic_values(self.critic.config, weights, history, actions)


def polyak_update(target: CriticWeights, newest: CriticWeights, tau: float) -> None:
    """Polyak averaging in place: target <- (1 - tau) target + tau newest."""
    new = dict(dense.named_tensors(newest))
    with torch.no_grad():
        for name, tensor in dense.named_tensors(target):
            tensor.lerp_(new[name], tau)
