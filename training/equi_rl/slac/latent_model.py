# SPDX-License-Identifier: MIT
"""SLAC's latent model: a stochastic state of two levels, over packed whole episodes.

With images x_t, executed actions a_t and a state z_t = (z1_t, z2_t):

    prior       p(z1_0) = N(0, 1)                   p(z1_t | z2_{t-1}, a_{t-1})
    posterior   q(z1_0 | x_0)                       q(z1_t | x_t, z2_{t-1}, a_{t-1})
    both        p(z2_0 | z1_0)                      p(z2_t | z1_t, z2_{t-1}, a_{t-1})
    decoder     p(x_t | z_t)
    reward      p(r_t | z_t, a_t, z_{t+1})          and whether the task ended there

    loss = sum_t KL(q(z1_t) || p(z1_t)) - log p(x_t | z_t) - log p(r_t, end_t | z_t, a_t, z_{t+1})

which is the negative evidence lower bound (ELBO). The posterior of a step never sees a later one.
Frames are packed: step t holds the episodes that last so long, and nothing is padded.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from equi_core.contract import ACTION_ORDER
from equi_rl.data.episode_batch import EpisodeBatch, EpisodeLayout
from equi_rl.slac.config import LatentModelConfig
from equi_rl.slac.gaussian import (
    Gaussian,
    GaussianNetwork,
    joined,
    kl_divergence,
    mlp,
    negative_log_likelihood,
    standard_normal,
)
from equi_rl.slac.images import Decoder, Encoder, Frames, frames_of

N_ACTIONS = len(ACTION_ORDER)


@dataclass(frozen=True)
class Latents:
    """Latent states of F packed frames, sampled from the posterior."""

    z1: Tensor
    """(F, Z1)."""
    z2: Tensor
    """(F, Z2)."""
    posterior: Gaussian
    """Of z1, (F, Z1)."""
    prior: Gaussian
    """Of z1, (F, Z1), given the sampled state before."""

    @property
    def states(self) -> Tensor:
        """Both levels (F, Z1 + Z2)."""
        return torch.cat([self.z1, self.z2], dim=1)


@dataclass(frozen=True)
class LatentLoss:
    """Parts of the loss, each in nats per frame."""

    kl: Tensor
    reconstruction: Tensor
    """Of the image."""
    holding: Tensor
    reward: Tensor
    termination: Tensor

    @property
    def total(self) -> Tensor:
        """The negative evidence lower bound."""
        return self.kl + self.reconstruction + self.holding + self.reward + self.termination

    def metrics(self) -> dict[str, float]:
        """For the log."""
        return {
            "elbo": -float(self.total.detach()),
            "kl": float(self.kl.detach()),
            "reconstruction_loss": float(self.reconstruction.detach()),
            "holding_loss": float(self.holding.detach()),
            "reward_loss": float(self.reward.detach()),
            "termination_loss": float(self.termination.detach()),
        }


class LatentModel(nn.Module):
    """Encoder, prior, posterior, decoder, and the heads of reward and termination."""

    def __init__(self, config: LatentModelConfig) -> None:
        super().__init__()
        self.config = config
        z1, z2, hidden, feature = (
            *(config.z1_size, config.z2_size),
            *(config.hidden_size, config.feature_size),
        )
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.z1_prior = GaussianNetwork(z2 + N_ACTIONS, hidden, z1)
        self.z1_first_posterior = GaussianNetwork(feature, hidden, z1)
        self.z1_posterior = GaussianNetwork(feature + z2 + N_ACTIONS, hidden, z1)
        self.z2_first = GaussianNetwork(z1, hidden, z2)
        self.z2_next = GaussianNetwork(z1 + z2 + N_ACTIONS, hidden, z2)
        # Mean of the reward, and logit of the end of the task.
        self.transition = mlp(2 * config.latent_size + N_ACTIONS, hidden, 2)

    def frames(self, batch: EpisodeBatch) -> Frames:
        """Every frame of a batch, at the model's size."""
        return frames_of(batch.depth_m, batch.holding, self.config.image_size)

    def noise(self, n_frames: int) -> Tensor:
        """Standard normal numbers (F, Z1 + Z2) for `infer`, from torch's generator."""
        return torch.randn(n_frames, self.config.latent_size)

    def infer(
        self, features: Tensor, previous_actions: Tensor, layout: EpisodeLayout, noise: Tensor
    ) -> Latents:
        """States of every frame, from the posterior.

        Args:
            features: (F, C) of the images.
            previous_actions: (F, 5) executed before each frame, zero before the first.
            layout: of the packed episodes.
            noise: (F, Z1 + Z2) standard normal numbers.
        """
        noise1, noise2 = noise.split([self.config.z1_size, self.config.z2_size], dim=1)
        counts = layout.frame_counts.tolist()
        z1s: list[Tensor] = []
        z2s: list[Tensor] = []
        posteriors: list[Gaussian] = []
        steps = [rows.split(counts) for rows in (features, previous_actions, noise1, noise2)]
        for feature, action, drawn1, drawn2 in zip(*steps, strict=True):
            if not z1s:
                posterior = self.z1_first_posterior(feature)
                z1 = posterior.at(drawn1)
                z2 = self.z2_first(z1).at(drawn2)
            else:
                before = z2s[-1][: len(feature)]  # the longest episodes come first
                posterior = self.z1_posterior(feature, before, action)
                z1 = posterior.at(drawn1)
                z2 = self.z2_next(z1, before, action).at(drawn2)
            posteriors.append(posterior)
            z1s.append(z1)
            z2s.append(z2)
        z1, z2 = torch.cat(z1s), torch.cat(z2s)
        first = standard_normal(z1s[0])
        rows = layout.frame_of_step
        prior = first
        if len(rows):
            following = self.z1_prior(z2[rows], previous_actions[layout.next_frame_of_step])
            prior = joined([first, following])
        return Latents(z1, z2, joined(posteriors), prior)

    def imagine(self, z2: Tensor, action: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """One step without an image: z1 (N, Z1) and z2 (N, Z2) of the prior.

        Args:
            z2: (N, Z2) second level before the step.
            action: (N, 5) executed.
            noise: (N, Z1 + Z2); zeros give the mean.
        """
        noise1, noise2 = noise.split([self.config.z1_size, self.config.z2_size], dim=1)
        z1 = self.z1_prior(z2, action).at(noise1)
        return z1, self.z2_next(z1, z2, action).at(noise2)

    def outcomes(self, states: Tensor, actions: Tensor, next_states: Tensor) -> Tensor:
        """Mean reward and logit of the end (D, 2), given states (D, Z) around actions (D, 5)."""
        outcomes: Tensor = self.transition(torch.cat([states, actions, next_states], dim=1))
        return outcomes

    def loss(self, batch: EpisodeBatch, frames: Frames, latents: Latents) -> LatentLoss:
        """The loss of a batch, averaged over its frames."""
        config, layout, states = self.config, batch.layout, latents.states
        pixels, holding = self.decoder(states)
        outcomes = self.outcomes(
            states[layout.frame_of_step], batch.executed_actions, states[layout.next_frame_of_step]
        )
        of_images = negative_log_likelihood(frames.pixels, pixels, config.image_std)
        of_rewards = negative_log_likelihood(batch.rewards, outcomes[:, 0], config.reward_std)
        of_holding = functional.binary_cross_entropy_with_logits(
            holding, frames.holding, reduction="sum"
        )
        of_ends = functional.binary_cross_entropy_with_logits(
            outcomes[:, 1], batch.terminated, reduction="sum"
        )
        count = layout.n_frames
        return LatentLoss(
            kl=kl_divergence(latents.posterior, latents.prior).sum() / count,
            reconstruction=of_images.sum() / count,
            holding=of_holding / count,
            reward=of_rewards.sum() / count,
            termination=of_ends / count,
        )
