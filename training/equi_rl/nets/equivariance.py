# SPDX-License-Identifier: MIT
"""Measures how far a network is from its declared symmetry, per group element and time step.

For a random history h and element g the actor must satisfy mean(g h) = g mean(h) and
log_std(g h) = g log_std(h), the critic Q(g h, g a) = Q(h, a). The networks run on their dense
weights in float32, through the LSTM over the whole history.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from equi_rl.nets import dense, symmetry
from equi_rl.nets.config import NetworkConfig
from equi_rl.nets.networks import Actor, Critic
from equi_rl.nets.symmetry import Element, Group


@dataclass(frozen=True)
class ElementError:
    """Error of one output under one element.

    Attributes:
        element: the group element.
        exact_on_pixels: whether it moves pixels without interpolation.
        per_step: (T,) largest absolute error over episodes and components at each step.
        scale: largest absolute output on the untransformed histories, to compare the error with.
    """

    element: Element
    exact_on_pixels: bool
    per_step: np.ndarray
    scale: float

    @property
    def largest(self) -> float:
        """Largest error over all steps."""
        return float(self.per_step.max())


@dataclass(frozen=True)
class Histories:
    """Random histories: (T, B, 2, S, S) observations, (T, B, 5) previous and current actions."""

    observations: Tensor
    previous: Tensor
    actions: Tensor


def random_histories(config: NetworkConfig, steps: int, episodes: int, seed: int) -> Histories:
    """Smooth random depth images (as C8 rotations need), random flags and actions."""
    generator = torch.Generator().manual_seed(seed)
    size = config.observation_size
    coarse = torch.rand(steps * episodes, 1, 6, 6, generator=generator) * 0.3
    depth = torch.nn.functional.interpolate(
        coarse, size=(size, size), mode="bicubic", align_corners=True
    )
    # Equal pixels outside the inscribed circle: rotations by 45 degrees lose nothing at corners.
    grid = torch.linspace(-1.0, 1.0, size)
    inside = (grid[:, None] ** 2 + grid[None, :] ** 2 < 0.9).float()
    depth = (depth * inside + 0.26 * (1.0 - inside)).view(steps, episodes, 1, size, size)
    holding = (torch.rand(steps, episodes, 1, 1, 1, generator=generator) > 0.5).float()
    observations = torch.cat([depth, holding.expand_as(depth)], dim=2)
    actions = torch.rand(steps, episodes, 5, generator=generator) * 2.0 - 1.0
    previous = torch.cat([torch.zeros(1, episodes, 5), actions[:-1]])
    return Histories(observations, previous, actions)


def transformed(group: Group, g: Element, histories: Histories) -> Histories:
    """G acting on every observation and action."""
    return Histories(
        symmetry.transform_observation(group, g, histories.observations),
        symmetry.transform_action(group, g, histories.previous),
        symmetry.transform_action(group, g, histories.actions),
    )


def run_actor(actor: Actor, histories: Histories) -> tuple[Tensor, Tensor]:
    """Mean and log-std, each (T, B, 5), on dense weights."""
    with torch.no_grad():
        weights = actor.dense()
        history = _run_history(actor.config, weights.history, histories)
        mean, log_std = dense.actor_outputs(actor.config, weights, history)
    shape = histories.previous.shape[:2]
    return mean.unflatten(0, shape), log_std.unflatten(0, shape)


def run_critic(critic: Critic, histories: Histories) -> Tensor:
    """Values (heads, T, B) on dense weights."""
    with torch.no_grad():
        weights = critic.dense()
        history = _run_history(critic.config, weights.history, histories)
        actions = histories.actions.flatten(0, 1)
        values = dense.critic_values(critic.config, weights, history, actions)
    return values.unflatten(1, histories.previous.shape[:2])


def actor_errors(
    actor: Actor, steps: int = 50, episodes: int = 4, seed: int = 0, output: str = "mean"
) -> list[ElementError]:
    """Error of ``mean`` or ``log_std`` for every element of the declared group."""
    group = actor.config.symmetry
    histories = random_histories(actor.config, steps, episodes, seed)
    index = 0 if output == "mean" else 1
    act = symmetry.transform_action if output == "mean" else symmetry.transform_log_std
    base = run_actor(actor, histories)[index]
    errors = []
    for g in group:
        seen = run_actor(actor, transformed(group, g, histories))[index]
        errors.append(_error(group, g, seen - act(group, g, base), base))
    return errors


def critic_errors(
    critic: Critic, steps: int = 50, episodes: int = 4, seed: int = 0
) -> list[ElementError]:
    """Error of both values for every element of the declared group."""
    group = critic.config.symmetry
    histories = random_histories(critic.config, steps, episodes, seed)
    base = run_critic(critic, histories)
    errors = []
    for g in group:
        seen = run_critic(critic, transformed(group, g, histories))
        errors.append(_error(group, g, (seen - base).movedim(0, -1), base))
    return errors


def _run_history(config: NetworkConfig, weights: dense.HistoryWeights, data: Histories) -> Tensor:
    steps, episodes = data.previous.shape[:2]
    frames = dense.prepare_observation(config, data.observations.flatten(0, 1))
    features = dense.encode(config, weights.encoder, frames)
    counts = torch.full((steps,), episodes, dtype=torch.int64)
    generator = torch.Generator().manual_seed(1)  # the same random start for h and g h
    start = dense.initial_state(config, episodes, generator)
    history, _ = dense.run_history(
        config, weights, features, data.previous.flatten(0, 1), counts, start
    )
    return history


def _error(group: Group, g: Element, difference: Tensor, base: Tensor) -> ElementError:
    per_step = difference.abs().flatten(1).amax(dim=1).numpy()
    return ElementError(g, group.is_exact_on_pixels(g), per_step, float(base.abs().max()))
