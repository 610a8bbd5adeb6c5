# SPDX-License-Identifier: MIT
"""Imitation: the actor learns the expert's action at every labelled step of whole episodes.

    loss = mean over labelled steps of | squash(mean(h_t)) - a*_t |^2

Used as pretraining on demonstrations (behaviour cloning) and, with an expert that is asked about
the states which the policy itself visits, as DAgger. Labels are pulled slightly inside the squash's
range, because a target on its edge can only be reached by an infinite mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from equi_rl.data.collate import LabelledBatch
from equi_rl.nets import dense
from equi_rl.nets.distributions import squash
from equi_rl.nets.networks import Actor, ActorWeights

SPREAD_WEIGHT = 0.01
"""Of the log-standard-deviation's error: small, because the layers below serve the mean first."""


@dataclass(frozen=True)
class ImitationSettings:
    """Hyper-parameters of imitation."""

    updates: int = 0
    """Updates by imitation alone before the first round (pretraining, behaviour cloning)."""
    learning_rate: float = 1e-3
    """Adam's largest learning rate."""
    learning_rate_warmup_updates: int = 50
    """Updates over which the learning rate rises from 0."""
    final_learning_rate_share: float = 0.05
    """The rate falls along a cosine to this share of itself at the end of the run."""
    policy_ema: float = 1.0
    """Share of the trained weights that enters the acting policy per update: 1 acts with the
    newest weights, less with their exponential moving average, whose success does not jump."""
    gradient_clip: float = 5.0
    """Largest norm of a gradient; longer ones are shortened to it."""
    label_reach: float = 0.98
    """Labels are clipped to +-this."""
    log_std: float | None = None
    """Logarithm of the standard deviation that the policy is trained towards; None leaves it free.
    Squared distances to labels do not change it, and a policy that samples with the standard
    deviation of a fresh network, 1, finds no reward."""

    def __post_init__(self) -> None:
        if self.updates < 0:
            raise ValueError(f"imitation.updates is {self.updates}; it must be at least 0")
        if not 0.0 < self.label_reach < 1.0:
            raise ValueError(
                f"imitation.label_reach is {self.label_reach}; it must lie between 0 and 1"
            )
        if not 0.0 < self.policy_ema <= 1.0:
            raise ValueError(f"imitation.policy_ema is {self.policy_ema}; it must lie in (0, 1]")


class ImitationUpdate:
    """Actor and optimiser; `step` makes one update.

    Args:
        actor: the policy to train.
        settings: hyper-parameters.
        planned_updates: length of the run, which shapes the learning rate.
    """

    def __init__(self, actor: Actor, settings: ImitationSettings, planned_updates: int) -> None:
        self.actor = actor
        self.settings = settings
        self.planned_updates = planned_updates
        self.updates = 0
        # Gathered once: escnn's modules compare their bases whenever one walks through them, which
        # would cost a fifth of an update.
        self._parameters = list(actor.parameters())
        self.optimiser = torch.optim.Adam(self._parameters, lr=settings.learning_rate, foreach=True)

    def step(self, batch: LabelledBatch) -> dict[str, float]:
        """One update; returns the loss and the learning rate."""
        rate = self._learning_rate()
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        loss = imitation_loss(self.actor, self.actor.dense(), batch, self.settings)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self._parameters, self.settings.gradient_clip)
        self.optimiser.step()
        self.updates += 1
        return {
            "imitation_loss": float(loss.detach()),
            "gradient_norm": float(norm),
            "learning_rate": rate,
        }

    def _learning_rate(self) -> float:
        warmup = min(1.0, (self.updates + 1) / max(1, self.settings.learning_rate_warmup_updates))
        progress = min(1.0, self.updates / max(1, self.planned_updates))
        floor = self.settings.final_learning_rate_share
        cosine = floor + (1.0 - floor) * 0.5 * (1.0 + math.cos(math.pi * progress))
        return self.settings.learning_rate * warmup * cosine


def imitation_loss(
    actor: Actor, weights: ActorWeights, batch: LabelledBatch, settings: ImitationSettings
) -> Tensor:
    """Mean squared distance (scalar) between the policy's and the expert's actions.

    With `settings.log_std`, plus that of the policy's log-standard-deviation from it.
    """
    config, episodes = actor.config, batch.episodes
    layout = episodes.layout
    frames = dense.prepare_depth(config, episodes.depth_m, episodes.holding)
    rows = layout.frame_of_step
    features = dense.encode(
        config, weights.history.encoder, frames, rows, dense.convolution_dtype(rows.device)
    )
    previous = layout.previous_actions(episodes.executed_actions)[rows]
    history, _ = dense.run_history(config, weights.history, features, previous, layout.step_counts)
    labelled = ~torch.isnan(batch.expert_actions).any(dim=1)
    if not labelled.any():
        raise ValueError("no step of the batch carries an expert's action to imitate")
    mean, log_std = dense.actor_outputs(config, weights, history[labelled])
    reach = settings.label_reach
    labels = batch.expert_actions[labelled].clamp(-reach, reach)
    loss = (squash(mean, config.squash) - labels).square().mean()
    if settings.log_std is not None:
        loss = loss + SPREAD_WEIGHT * (log_std - settings.log_std).square().mean()
    return loss
