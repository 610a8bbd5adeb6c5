# SPDX-License-Identifier: MIT
"""Asymmetric actor-critic: the critic sees the simulator's state, the policy never does.

Packed whole episodes: histories h_t of the policy, states s_t of the simulator, requested actions
a_t, values Q_i(s, a) with a target network Q' that is averaged towards them.

    y_t    = r_t + gamma ((1 - lambda) V'(s_{t+1}) + lambda y_{t+1}),   0 after the last step
    V'(s)  = min over a random pair of heads of Q'_i(s, mean(h) + noise)
    critic = sum_i mean_t (Q_i(s_t, a_t) - y_t)^2
    actor  = mean_t | squash(mean(h_t)) - goal_t |^2
             + c_d * (the same distance to a_t, mean over the demonstrations)

goal_t is the mean of candidate actions near the policy's own, weighted by their values
(`sampled_improvement`). A policy that cannot know what the critic knows is led to the average over
what it cannot tell apart, and candidates lie near its own action, so what the critic knows does
not pull it far. Time-outs end an episode: success within the time limit is the objective. The
whole actor is trained, its image encoder included. The critic has no images, is cheap, and learns
from batches of its own (`state_replay`).

With `Teacher.SUCCESSES` there is no critic: the policy imitates demonstrations and the agent's own
successes in the same loop. That, and a reward scale of 0, are the controls of every claim that
values teach.
"""

from __future__ import annotations

import copy
import math
from typing import NamedTuple

import torch
from torch import Tensor

from equi_rl.agents.asymmetric_settings import AsymmetricSettings, Teacher
from equi_rl.agents.diagnostics import critic_diagnostics, saturated_share, succeeded_steps
from equi_rl.agents.imitation import SPREAD_WEIGHT
from equi_rl.agents.returns import lambda_returns
from equi_rl.agents.sampled_improvement import SampledImprovement
from equi_rl.agents.state_critic import StateCritic, rotate_horizontally
from equi_rl.agents.state_replay import StateBatch
from equi_rl.data.device import normal_like, permutation_like
from equi_rl.data.episode_batch import BatchError, EpisodeBatch, EpisodeLayout
from equi_rl.nets import dense
from equi_rl.nets.distributions import squash
from equi_rl.nets.networks import Actor

_LABEL_REACH = 0.98


class _Decisions(NamedTuple):
    """What the actor makes of the frames in which it decided (D, 5)."""

    mean: Tensor
    log_std: Tensor


class AsymmetricUpdate:
    """Actor, critic, target and optimisers, and one step of each.

    Args:
        actor: the policy to train.
        critic: sees states.
        settings: hyper-parameters.
        planned_updates: length of the run, which shapes the actor's learning rate.
    """

    def __init__(
        self,
        actor: Actor,
        critic: StateCritic,
        settings: AsymmetricSettings,
        planned_updates: int,
    ) -> None:
        self.actor, self.critic, self.settings = actor, critic, settings
        self.planned_updates = planned_updates
        self.target = copy.deepcopy(critic)
        self.sampled = SampledImprovement(settings.sampled)
        # Gathered once, as in `ImitationUpdate`.
        self._actor_parameters = list(actor.parameters())
        self.actor_optimiser = torch.optim.Adam(
            self._actor_parameters, lr=settings.actor_learning_rate, foreach=True
        )
        self.critic_optimiser = torch.optim.Adam(
            critic.parameters(), lr=settings.critic_learning_rate, foreach=True
        )
        self.updates = 0

    @property
    def actor_is_frozen(self) -> bool:
        """Whether only the critic learns now."""
        frozen = self.updates < self.settings.actor_frozen_updates
        return frozen and self.settings.teacher is Teacher.VALUES

    @property
    def critic_steps(self) -> int:
        """Steps of the critic in this update."""
        settings = self.settings
        return settings.frozen_critic_steps if self.actor_is_frozen else settings.critic_steps

    def improve_actor(
        self, batch: EpisodeBatch, *, diagnose: bool = False
    ) -> tuple[Tensor, dict[str, float]]:
        """One step of the actor.

        Returns:
            What the policy would have done (D, 5), in the frames of the states, and metrics: more
            of them with ``diagnose``.
        """
        _, frame_rad = required_states(batch)
        decided = self._decide(batch)
        mean = decided.mean.detach()
        metrics = self._improve_actor(batch, decided)
        if diagnose:
            metrics["saturated_actions"] = saturated_share(mean)
            if self.settings.teacher is Teacher.VALUES:
                metrics |= self._diagnosed(batch, mean)
        return rotate_horizontally(mean, -frame_rad), metrics

    def _decide(self, batch: EpisodeBatch) -> _Decisions:
        config, layout = self.actor.config, batch.layout
        weights = self.actor.dense()
        rows = layout.frame_of_step
        frames = dense.prepare_depth(config, batch.depth_m, batch.holding)
        features = dense.encode(
            config, weights.history.encoder, frames, rows, dense.convolution_dtype(rows.device)
        )
        previous = layout.previous_actions(batch.executed_actions)[rows]
        history, _ = dense.run_history(
            config, weights.history, features, previous, layout.step_counts
        )
        mean, log_std = dense.actor_outputs(config, weights, history)
        return _Decisions(squash(mean, config.squash), log_std)

    # Critic ---------------------------------------------------------------------------------------

    def improve_critic(self, batch: StateBatch) -> dict[str, float]:
        """One step of the critic, and of its target."""
        settings = self.settings
        with torch.no_grad():
            targets = self.targets(batch)
        values = self.critic(batch.states, batch.actions[None])[:, 0]
        loss = (values - targets).square().mean(dim=1).sum()
        self.critic_optimiser.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(
            self.critic.parameters(), settings.critic_gradient_clip
        )
        self.critic_optimiser.step()
        with torch.no_grad():
            for slow, newest in zip(
                self.target.parameters(), self.critic.parameters(), strict=True
            ):
                slow.lerp_(newest, settings.tau)
        return {
            "critic_loss": float(loss.detach()),
            "critic_gradient_norm": float(norm),
            "value": float(values.detach().mean()),
        }

    def targets(self, batch: StateBatch) -> Tensor:
        """y_t for every transition (D,)."""
        settings, layout = self.settings, batch.layout
        noise = settings.target_noise_std * normal_like(batch.policy_actions)
        pair = permutation_like(batch.states, settings.heads)[:2]
        actions = batch.policy_actions + noise
        values = self.target(batch.states, actions[None])[pair, 0].amin(dim=0)
        ended = layout.is_last_step
        targets = lambda_returns(
            settings.reward_scale * batch.rewards,
            settings.discount * (~ended).float(),
            values.clamp(*settings.target_range)[_next_step(layout)].masked_fill(ended, 0.0),
            settings.td_lambda,
            layout,
        )
        return targets.clamp(*settings.target_range)

    def _diagnosed(self, batch: EpisodeBatch, mean: Tensor) -> dict[str, float]:
        states, frame_rad = required_states(batch)
        actions = torch.stack([batch.requested_actions, mean])
        with torch.no_grad():
            asked, own = self.critic(states, rotate_horizontally(actions, -frame_rad)).mean(dim=0)
        return critic_diagnostics(batch, asked, own, self.settings.discount)

    # Actor ----------------------------------------------------------------------------------------

    def _improve_actor(self, batch: EpisodeBatch, decided: _Decisions) -> dict[str, float]:
        rate = self._learning_rate()
        for group in self.actor_optimiser.param_groups:
            group["lr"] = rate
        loss, metrics = self._actor_loss(batch, decided)
        self.actor_optimiser.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(
            self._actor_parameters, self.settings.actor_gradient_clip
        )
        self.actor_optimiser.step()
        return {
            "actor_loss": float(loss.detach()),
            "actor_gradient_norm": float(norm),
            "learning_rate": rate,
            **metrics,
        }

    def _actor_loss(
        self, batch: EpisodeBatch, decided: _Decisions
    ) -> tuple[Tensor, dict[str, float]]:
        if self.settings.teacher is Teacher.SUCCESSES:
            return self._loss_of_successes(batch, decided), {}
        states, frame_rad = required_states(batch)

        def value_of(actions: Tensor) -> Tensor:  # (K, D, 5) to (K, D)
            return self.critic(states, rotate_horizontally(actions, -frame_rad)).mean(dim=0)

        given = (batch.requested_actions,)
        loss, metrics = self.sampled.loss(decided.mean, decided.log_std, given, value_of)
        weight = self.settings.demonstration_weight * (1.0 - self._progress)
        if weight and batch.is_demonstration is not None:
            distance = _distance_to_played(batch, decided, batch.is_demonstration)
            metrics["demonstration_loss"] = float(distance.detach())
            loss = loss + weight * distance
        return loss, metrics

    def _loss_of_successes(self, batch: EpisodeBatch, decided: _Decisions) -> Tensor:
        spread = (decided.log_std - self.settings.sampled.log_std).square().mean()
        won = succeeded_steps(batch)
        return _distance_to_played(batch, decided, won) + SPREAD_WEIGHT * spread

    def _learning_rate(self) -> float:
        settings = self.settings
        warmup = min(1.0, (self.updates + 1) / max(1, settings.learning_rate_warmup_updates))
        floor = settings.final_learning_rate_share
        cosine = floor + (1.0 - floor) * 0.5 * (1.0 + math.cos(math.pi * self._progress))
        return settings.actor_learning_rate * warmup * cosine

    @property
    def _progress(self) -> float:
        """Share of the run that has been made, 0 to 1."""
        return min(1.0, self.updates / max(1, self.planned_updates))


def _distance_to_played(batch: EpisodeBatch, decided: _Decisions, chosen: Tensor) -> Tensor:
    """Mean squared distance of the policy's mean from what was played in the chosen steps (D,)."""
    if not chosen.any():  # the mean of nothing is NaN
        return decided.mean.new_zeros(())
    labels = batch.requested_actions[chosen].clamp(-_LABEL_REACH, _LABEL_REACH)
    return (decided.mean[chosen] - labels).square().sum(dim=1).mean()


def required_states(batch: EpisodeBatch) -> tuple[Tensor, Tensor]:
    """States (D, S) and the angles (D,) of the frames that they are given in."""
    if batch.privileged_state is None or batch.privileged_frame_rad is None:
        raise BatchError(
            "batch.privileged_state is None; an asymmetric critic needs episodes that were recorded"
            " with the simulator's state; collect them again in a new run"
        )
    return batch.privileged_state, batch.privileged_frame_rad


def _next_step(layout: EpisodeLayout) -> Tensor:
    """(D,) the transition that follows each; of the last of an episode, any."""
    frames = layout.frame_of_step
    step_of_frame = frames.new_zeros(layout.n_frames)
    step_of_frame[frames] = torch.arange(layout.n_steps, device=frames.device)
    return step_of_frame[layout.next_frame_of_step]
