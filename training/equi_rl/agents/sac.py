# SPDX-License-Identifier: MIT
"""Recurrent soft actor-critic: one update over packed whole episodes.

Reads beside the paper and the original SAC: histories h_t, requested actions a_t, values Q_1, Q_2
(or more) with a target network Q' that is averaged towards them, policy pi, temperature alpha.

    y_t         = r_t + gamma (1 - terminated_t) ((1 - lambda) V'(h_{t+1}) + lambda y_{t+1})
    V'(h)       = min_i Q'_i(h, a) - alpha log pi(a | h)              with a ~ pi(h)
    critic      = sum_i mean_t (Q_i(h_t, a_t) - y_t)^2
    actor       = mean_t (alpha log pi(a | h_t) - min_i Q_i(h_t, a))  with a ~ pi(h_t)
    temperature = -mean_t alpha (log pi(a | h_t) + target entropy)

The paper has lambda = 0. With lambda > 0 a reward reaches the whole episode before it in a single
update instead of one step per update, at the price of evaluating, in part, the policy that acted.

A history holds the actions that were executed; the value is asked and learnt of the action that was
requested, because that is what a policy chooses: where the workspace clips it, both differ.

Every network sees each frame once: the actor's single forward pass serves the target (detached)
and its own loss. In the actor's loss the critic's weights carry no gradient. The target network
exists only as dense weights: expansion is linear, so averaging filters equals averaging
coefficients. `SacSettings.encoder` says whose the image encoder is.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import Parameter

from equi_rl.agents.diagnostics import critic_diagnostics, saturated_share
from equi_rl.agents.returns import lambda_returns, mean_over_copies
from equi_rl.agents.sac_networks import PolicyOutput, SacNetworks
from equi_rl.agents.sac_settings import SacSettings
from equi_rl.agents.stage_timer import StageTimer
from equi_rl.data.array_episode import ArrayBatch
from equi_rl.data.device import permutation_like
from equi_rl.data.episode_batch import EpisodeBatch
from equi_rl.nets import dense
from equi_rl.nets.networks import Actor, Critic, CriticWeights


class SacUpdate:
    """Networks, target, temperature and optimisers; ``step`` makes one update."""

    def __init__(self, actor: Actor, critic: Critic, settings: SacSettings | None = None) -> None:
        self.settings = rates = settings or SacSettings()
        self.networks = SacNetworks(actor, critic, rates)
        device = next(actor.parameters()).device
        start = torch.full((), rates.initial_temperature, device=device)
        self.log_temperature = start.log().requires_grad_()
        self._actor_parameters, self._critic_parameters = self.networks.parameters()
        self.actor_optimiser = torch.optim.Adam(
            self._actor_parameters, lr=rates.actor_learning_rate, foreach=True
        )
        self.critic_optimiser = torch.optim.Adam(
            self._critic_parameters, lr=rates.critic_learning_rate, foreach=True
        )
        self.temperature_optimiser = torch.optim.Adam(
            [self.log_temperature], lr=rates.temperature_learning_rate
        )
        self.updates = 0

    def step(
        self,
        batch: EpisodeBatch | ArrayBatch,
        generator: torch.Generator | None = None,
        timer: StageTimer | None = None,
        expert_actions: Tensor | None = None,
        *,
        diagnose: bool = False,
    ) -> dict[str, float]:
        """One update of critic, actor, temperature and target; returns the losses.

        ``expert_actions`` (D, A) guide the actor with ``settings.demonstration_weight``; rows of
        NaN are steps about which no expert was asked. ``diagnose`` returns more metrics.
        """
        settings, networks, layout = self.settings, self.networks, batch.layout
        timer = timer or StageTimer()
        if self.updates == 0:
            networks.begin()
        with timer.stage("expand filters"):
            actor_weights, critic_weights = networks.expand_actor(), networks.expand_critic()
        previous = layout.previous_actions(batch.executed_actions)
        features = networks.see(batch, actor_weights, critic_weights, timer)
        policy = networks.act(actor_weights, features.to_actor, previous, layout, generator, timer)
        temperature = self.log_temperature.detach().exp()
        with torch.no_grad():
            following = layout.next_frame_of_step
            targets = self.targets(
                batch,
                features.to_target,
                previous,
                policy.action.detach()[following],
                policy.log_density.detach()[following],
                temperature,
                timer,
                generator,
            )

        history = networks.critic_history(
            critic_weights, features.to_critic, previous, layout, timer
        )
        with timer.stage("critic heads"):
            values = networks.values(critic_weights, history, batch.requested_actions)
            critic_loss = (values - targets).square().mean(dim=1).sum()
        with timer.stage("critic backward"):
            self.critic_optimiser.zero_grad(set_to_none=True)
            critic_loss.backward()
        # Copied, because a plain network's dense weights are the parameters that will move.
        frozen_critic: CriticWeights = dense.map_tensors(critic_weights, _frozen_copy)
        metrics = {
            "critic_loss": float(critic_loss.detach()),
            "value": float(values.detach().mean()),
        }
        if features.encoded is None:
            with timer.stage("optimisers and target"):
                metrics["critic_gradient_norm"] = self._step_critic()

        history = history.detach()
        if settings.actor_uses_updated_critic:
            frozen_critic, history = networks.updated_critic(features, previous, layout, timer)
        if self.updates >= settings.actor_frozen_updates:
            with timer.stage("actor loss"):
                rows = layout.frame_of_step
                decided = PolicyOutput(*(tensor[rows] for tensor in policy))
                loss = self._gradient_loss(decided, frozen_critic, history, temperature)
                if expert_actions is not None and settings.demonstration_weight:
                    loss = loss + self._demonstration_loss(decided.mean, expert_actions)
            with timer.stage("actor backward"):
                self.actor_optimiser.zero_grad(set_to_none=True)
                loss.backward()
            metrics |= {"actor_loss": float(loss.detach())}
        if features.encoded is not None and features.leaf is not None:
            with timer.stage("shared encoder backward"):
                features.encoded.backward(features.leaf.grad)
            with timer.stage("optimisers and target"):
                metrics["critic_gradient_norm"] = self._step_critic()
        own_density = policy.log_density.detach()[layout.frame_of_step]
        with timer.stage("optimisers and target"):
            if "actor_loss" in metrics:
                norm = _clip(self._actor_parameters, settings.actor_gradient_clip)
                metrics["actor_gradient_norm"] = norm
                self.actor_optimiser.step()
                self._step_temperature(own_density)
            is_newest = settings.actor_uses_updated_critic
            with torch.no_grad():
                networks.update_target(frozen_critic if is_newest else networks.expand_critic())
        self.updates += 1
        metrics["temperature"] = float(self.log_temperature.detach().exp())
        metrics["entropy"] = float(-own_density.mean())
        if diagnose:
            with torch.no_grad():
                mean = policy.mean.detach()[layout.frame_of_step]
                metrics["saturated_actions"] = saturated_share(mean)
                metrics |= critic_diagnostics(
                    batch,
                    values.detach().mean(dim=0),
                    self.networks.values(frozen_critic, history, mean).mean(dim=0),
                    settings.discount,
                )
        return metrics

    # The actor's losses -------------------------------------------------------------------------

    def _gradient_loss(
        self,
        decided: PolicyOutput,
        frozen_critic: CriticWeights,
        history: Tensor,
        temperature: Tensor,
    ) -> Tensor:
        """SAC: the slope of the values at sampled actions."""
        values = self.networks.values(frozen_critic, history, decided.action)
        partly = self.settings.target_heads < self.settings.critic_heads
        value = values.mean(dim=0) if partly else values.amin(dim=0)
        # Values of an untrained critic would only undo what the actor knows.
        trusted = float(self.updates >= self.settings.critic_warmup_updates)
        return trusted * (temperature * decided.log_density - value).mean()

    def _demonstration_loss(self, mean: Tensor, expert_actions: Tensor) -> Tensor:
        known = ~torch.isnan(expert_actions).any(dim=1)
        if not known.any():  # the mean of nothing is NaN
            return mean.new_zeros(())
        distance = (mean[known] - expert_actions[known]).square().mean()
        return self.settings.demonstration_weight * distance

    # Targets and optimisers ---------------------------------------------------------------------

    def targets(
        self,
        batch: EpisodeBatch | ArrayBatch,
        features: Tensor,
        previous: Tensor,
        next_action: Tensor,
        next_density: Tensor,
        temperature: Tensor,
        timer: StageTimer,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """y_t for every transition, (D,)."""
        settings, layout = self.settings, batch.layout
        with timer.stage("target LSTM and heads"):
            values = self.networks.next_values(features, previous, next_action, layout)
            if settings.target_heads < len(values):
                drawn = permutation_like(values, len(values), generator)[: settings.target_heads]
                values = values[drawn]
            next_values = values.amin(dim=0)
        if settings.entropy_in_target:
            next_values = next_values - temperature * next_density
        ended = layout.is_last_step.float() if settings.time_outs_end else batch.terminated
        targets = lambda_returns(
            settings.reward_scale * batch.rewards,
            settings.discount * (1.0 - ended),
            next_values,
            settings.td_lambda,
            layout,
        )
        if settings.target_range is not None:
            targets = targets.clamp(*settings.target_range)
        if batch.copy_group is None:
            return targets
        return mean_over_copies(targets, batch.copy_group)

    def _step_critic(self) -> float:
        """Move the critic; returns the norm of its gradient."""
        norm = _clip(self._critic_parameters, self.settings.critic_gradient_clip)
        self.critic_optimiser.step()
        return norm

    def _step_temperature(self, log_density: Tensor) -> None:
        gap = (log_density + self.settings.target_entropy).mean()
        temperature_loss = -self.log_temperature.exp() * gap
        self.temperature_optimiser.zero_grad(set_to_none=True)
        temperature_loss.backward()
        self.temperature_optimiser.step()


def _clip(parameters: list[Parameter], longest: float) -> float:
    """Norm of the gradient, which is shortened to ``longest`` unless that is 0."""
    return float(torch.nn.utils.clip_grad_norm_(parameters, longest or float("inf")))


def _frozen_copy(tensor: Tensor) -> Tensor:
    return tensor.detach().clone()
