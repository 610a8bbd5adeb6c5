# SPDX-License-Identifier: MIT
"""SLAC as its trainer runs it: the latent model alone first, then beside actor and critics.

Actor and critics learn from the features and states that the latent model infers from the same
batch, before its own step. Random numbers come from torch's global generator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from equi_rl.agents.learner import (
    named_parameters,
    optimiser_tensors,
    require_finite,
    restore_optimiser,
)
from equi_rl.data.collate import LabelledBatch
from equi_rl.nets.checkpoint import restore_parameters
from equi_rl.slac.actor_critic import (
    Experience,
    SoftActorCritic,
    gradient_step,
    joined_rows,
    windows_of,
)
from equi_rl.slac.config import SlacRun
from equi_rl.slac.latent_model import LatentModel
from equi_rl.slac.policy import SlacPolicy


class SlacLearner:
    """Networks and optimisers of one run; ``update`` makes one update."""

    def __init__(self, run: SlacRun) -> None:
        self.run = run
        self.model = LatentModel(run.model)
        self.sac = SoftActorCritic(run)
        self.model_optimiser = torch.optim.Adam(
            self.model.parameters(), lr=run.latent_learning_rate
        )
        self.updates = 0

    @property
    def is_pretraining(self) -> bool:
        """Whether the next update is of the latent model alone."""
        return self.updates < self.run.latent_updates

    def update(self, batch: LabelledBatch) -> dict[str, float]:
        """One update; returns metrics for the log. Raises DivergedError."""
        episodes, model = batch.episodes, self.model
        layout = episodes.layout
        frames = model.frames(episodes)
        features = model.encoder(frames)
        previous = layout.previous_actions(episodes.executed_actions)
        latents = model.infer(features, previous, layout, model.noise(layout.n_frames))
        loss = model.loss(episodes, frames, latents)
        metrics = loss.metrics()
        metrics["latent_gradient_norm"] = gradient_step(self.model_optimiser, loss.total, model)
        if not self.is_pretraining:
            rows = joined_rows(features.detach(), previous)
            windows = windows_of(rows, layout, self.run.history_steps)
            seen = Experience(episodes, latents.states.detach(), windows)
            for _ in range(self.run.actor_critic_updates):
                metrics |= self.sac.step(seen)
        self.updates += 1
        for network in (model, self.sac.actor, self.sac.critic):
            require_finite(metrics, dict(network.named_parameters()))
        return metrics

    def policy(self) -> SlacPolicy:
        """The policy as it is now."""
        return SlacPolicy(self.run.model.image_size, self.model.encoder, self.sac.actor)

    def tensors(self) -> dict[str, Tensor]:
        """Everything that a checkpoint must hold as tensors."""
        parameters = {
            name: tensor
            for prefix, network in self._networks().items()
            for name, tensor in named_parameters(network, prefix).items()
        }
        moments = {
            name: tensor
            for prefix, optimiser in self._optimisers().items()
            for name, tensor in optimiser_tensors(optimiser, prefix).items()
        }
        temperature = {"log_temperature": self.sac.log_temperature.detach()}
        return {**parameters, **moments, **temperature}

    def state(self) -> dict[str, Any]:
        """Everything that a checkpoint must hold as plain data."""
        return {"updates": self.updates}

    def restore(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Continue where the checkpoint was written."""
        self.restore_networks(tensors)
        for prefix, optimiser in self._optimisers().items():
            restore_optimiser(optimiser, tensors, prefix)
        with torch.no_grad():
            self.sac.log_temperature.copy_(tensors["log_temperature"])
        self.updates = int(state["updates"])

    def restore_networks(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over the weights of a checkpoint, and nothing else of it."""
        for prefix, network in self._networks().items():
            restore_parameters(network, tensors, prefix)

    def _networks(self) -> dict[str, nn.Module]:
        sac = self.sac
        return {
            "model": self.model,
            "actor": sac.actor,
            "critic": sac.critic,
            "target": sac.target,
        }

    def _optimisers(self) -> dict[str, torch.optim.Optimizer]:
        sac = self.sac
        return {
            "model_optimiser": self.model_optimiser,
            "actor_optimiser": sac.actor_optimiser,
            "critic_optimiser": sac.critic_optimiser,
            "temperature_optimiser": sac.temperature_optimiser,
        }
