# SPDX-License-Identifier: MIT
"""SLAC's actor and critics, and one update of soft actor-critic with them.

    actor    pi(a_t | features of x_0..x_t, executed actions a_0..a_{t-1})
    critics  Q_1, Q_2 (z_t, a_t), z_t sampled from the posterior, a_t as it was requested

    y_t   = r_t + gamma (1 - terminated_t) (min_i Q'_i(z_{t+1}, a) - alpha log pi(a | h_{t+1}))
    critics     = sum_i mean_t (Q_i(z_t, a_t) - y_t)^2
    actor       = mean_t (alpha log pi(a | h_t) - min_i Q_i(z_t, a))       with a ~ pi(h_t)
    temperature = -mean_t alpha (log pi(a | h_t) + target entropy)

The actor needs no latent state, so a deployed policy needs the encoder only. What it sees is joined
over the last `history_steps` frames, with zeros in front of an episode. Neither of the two trains
the latent model.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from equi_rl.data.episode_batch import EpisodeBatch, EpisodeLayout
from equi_rl.nets.distributions import sample
from equi_rl.slac.config import SlacRun
from equi_rl.slac.gaussian import mlp
from equi_rl.slac.latent_model import N_ACTIONS

SQUASH = "tanh"
_LOG_STD_RANGE = (-20.0, 2.0)


class HistoryActor(nn.Module):
    """Gaussian policy on the features and actions of the last frames.

    Args:
        feature_size: numbers of a feature.
        history_steps: frames that it sees.
        hidden: width of the hidden layers.
    """

    def __init__(self, feature_size: int, history_steps: int, hidden: int) -> None:
        super().__init__()
        self.history_steps = history_steps
        self.row_size = feature_size + N_ACTIONS
        self.layers = mlp(history_steps * self.row_size, hidden, 2 * N_ACTIONS)

    def forward(self, windows: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log standard deviation (N, 5) given windows (N, history_steps, C + 5)."""
        mean, log_std = self.layers(windows.flatten(1)).chunk(2, dim=1)
        return mean, log_std.clamp(*_LOG_STD_RANGE)

    def start(self) -> Tensor:
        """Window (history_steps, C + 5) before the first frame of an episode."""
        return torch.zeros(self.history_steps, self.row_size)


def joined_rows(features: Tensor, previous_actions: Tensor) -> Tensor:
    """What a frame adds to the history: (N, C + 5)."""
    return torch.cat([features, previous_actions], dim=1)


def shifted(window: Tensor, row: Tensor) -> Tensor:
    """The window (W, C + 5) one frame later."""
    return torch.cat([window[1:], row[None]])


def windows_of(rows: Tensor, layout: EpisodeLayout, history_steps: int) -> Tensor:
    """Window (F, W, C + 5) of every packed frame, given the frames' rows (F, C + 5)."""
    episodes, longest = len(layout.order), len(layout.frame_counts)
    padded = rows.new_zeros(episodes, history_steps - 1 + longest, rows.shape[1])
    padded[layout.frame_episode, history_steps - 1 + layout.frame_time] = rows
    # (B, T, C + 5, W) without a copy; only windows of real frames are copied.
    sliding = padded.unfold(1, history_steps, 1)
    return sliding[layout.frame_episode, layout.frame_time].transpose(1, 2)


class TwinCritic(nn.Module):
    """Two values of a latent state and an action."""

    def __init__(self, latent_size: int, hidden: int) -> None:
        super().__init__()
        self.heads = nn.ModuleList(mlp(latent_size + N_ACTIONS, hidden, 1) for _ in range(2))

    def forward(self, states: Tensor, actions: Tensor) -> Tensor:
        """Values (2, N)."""
        inputs = torch.cat([states, actions], dim=1)
        return torch.stack([head(inputs)[:, 0] for head in self.heads])


@dataclass(frozen=True)
class Experience:
    """A batch as actor and critics see it; nothing of it carries a gradient."""

    batch: EpisodeBatch
    states: Tensor
    """(F, Z) latent states."""
    windows: Tensor
    """(F, W, C + 5) histories."""


class SoftActorCritic:
    """Actor, critics, target, temperature and their optimisers."""

    def __init__(self, run: SlacRun) -> None:
        self.run = run
        hidden = run.actor_hidden_size
        self.actor = HistoryActor(run.model.feature_size, run.history_steps, hidden)
        self.critic = TwinCritic(run.model.latent_size, hidden)
        self.target = copy.deepcopy(self.critic).requires_grad_(False)
        start = torch.full((), run.initial_temperature)
        self.log_temperature = start.log().requires_grad_()
        rate = run.learning_rate
        self.actor_optimiser = torch.optim.Adam(self.actor.parameters(), lr=rate)
        self.critic_optimiser = torch.optim.Adam(self.critic.parameters(), lr=rate)
        self.temperature_optimiser = torch.optim.Adam(
            [self.log_temperature], lr=run.temperature_learning_rate
        )

    def step(self, seen: Experience) -> dict[str, float]:
        """One update of critics, actor, temperature and target."""
        batch, layout = seen.batch, seen.batch.layout
        now, following = layout.frame_of_step, layout.next_frame_of_step
        mean, log_std = self.actor(seen.windows)
        action, log_density = sample(mean, log_std, torch.randn_like(mean), SQUASH)
        temperature = self.log_temperature.detach().exp()
        with torch.no_grad():
            next_values = self.target(seen.states[following], action[following]).amin(dim=0)
            next_values = next_values - temperature * log_density[following]
            target = batch.rewards + self.run.discount * (1.0 - batch.terminated) * next_values
        values = self.critic(seen.states[now], batch.requested_actions)
        critic_loss = (values - target).square().mean(dim=1).sum()
        gradient_step(self.critic_optimiser, critic_loss, self.critic, self.run.gradient_clip)

        self.critic.requires_grad_(False)  # the actor's loss moves the actor alone
        value = self.critic(seen.states[now], action[now]).amin(dim=0)
        self.critic.requires_grad_(True)
        actor_loss = (temperature * log_density[now] - value).mean()
        gradient_step(self.actor_optimiser, actor_loss, self.actor, self.run.gradient_clip)

        density = log_density[now].detach()
        temperature_loss = -self.log_temperature.exp() * (density + self.run.target_entropy).mean()
        self.temperature_optimiser.zero_grad(set_to_none=True)
        temperature_loss.backward()
        self.temperature_optimiser.step()
        with torch.no_grad():
            for old, new in zip(self.target.parameters(), self.critic.parameters(), strict=True):
                old.lerp_(new, self.run.tau)
        return {
            "critic_loss": float(critic_loss.detach()),
            "actor_loss": float(actor_loss.detach()),
            "value": float(values.detach().mean()),
            "entropy": float(-density.mean()),
            "temperature": float(self.log_temperature.detach().exp()),
        }


def gradient_step(
    optimiser: torch.optim.Optimizer, loss: Tensor, network: nn.Module, longest: float = 0.0
) -> float:
    """One optimiser step; returns the gradient's norm, which is clipped unless `longest` is 0."""
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(network.parameters(), longest or float("inf"))
    optimiser.step()
    return float(norm)
