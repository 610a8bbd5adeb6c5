# SPDX-License-Identifier: MIT
"""The asymmetric actor-critic as the trainer runs it: imitation first, then learning from values.

What acts, is evaluated and is exported (`actor`) is an exponential moving average of the trained
actor (`AsymmetricSettings.policy_ema`). The critic sees the simulator's state and is kept in the
checkpoint for resuming only: nothing that is exported depends on it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from equi_rl.agents.asymmetric import AsymmetricUpdate
from equi_rl.agents.asymmetric_settings import AsymmetricSettings, Teacher
from equi_rl.agents.imitation import ImitationSettings, ImitationUpdate
from equi_rl.agents.learner import (
    AveragedWeights,
    Learner,
    named_parameters,
    optimiser_tensors,
    require_finite,
    restore_optimiser,
)
from equi_rl.agents.state_critic import StateCritic
from equi_rl.agents.state_replay import StateBatch, StateReplay
from equi_rl.data.collate import LabelledBatch
from equi_rl.data.replay_buffer import EpisodeReplayBuffer
from equi_rl.nets.checkpoint import CheckpointError, restore_parameters
from equi_rl.nets.networks import Actor


class AsymmetricLearner(Learner):
    """Pretraining by imitation, then the asymmetric actor-critic.

    Args:
        actor: the policy to train.
        state_size: numbers of the simulator's state.
        settings: of the actor-critic.
        imitation: of the pretraining.
        planned_updates: of the actor-critic in the whole run.
        recent_episodes: how many of the collected episodes are the newest ones.
    """

    def __init__(
        self,
        actor: Actor,
        state_size: int,
        settings: AsymmetricSettings,
        imitation: ImitationSettings,
        planned_updates: int,
        recent_episodes: int = 400,
    ) -> None:
        self.actor = copy.deepcopy(actor)
        self._trained = actor
        critic = StateCritic(state_size, settings.heads, settings.width)
        critic.to(next(actor.parameters()).device)
        self._update = AsymmetricUpdate(actor, critic, settings, planned_updates)
        self._pretraining = ImitationUpdate(actor, imitation, imitation.updates)
        self._recent_episodes = recent_episodes
        self._weights = AveragedWeights(self.actor, actor)
        self._critic_weights = dict(critic.named_parameters())
        self._states: StateReplay | None = None

    def attach(self, replay_buffer: EpisodeReplayBuffer) -> None:
        """Draw the critic's batches from this buffer."""
        self._states = StateReplay(replay_buffer)

    def update(self, batch: LabelledBatch, *, diagnose: bool = False) -> dict[str, float]:
        """One update: imitation while pretraining lasts, the actor-critic afterwards."""
        if self._pretraining.updates < self._pretraining.planned_updates:
            metrics = self._pretraining.step(batch)
            require_finite(metrics, self._weights.trained)
            self._weights.average(1.0)
            return metrics
        update, states = self._update, self._required_states()
        metrics = {}
        if update.settings.teacher is Teacher.VALUES:
            for _ in range(update.critic_steps):
                metrics = update.improve_critic(self._critic_batch(states))
        if not update.actor_is_frozen:
            actions, more = update.improve_actor(batch.episodes, diagnose=diagnose)
            states.remember(batch.sources, batch.episodes.layout, actions)
            metrics |= more
        update.updates += 1
        require_finite(metrics, self._weights.trained, self._critic_weights)
        self._weights.average(self._update.settings.policy_ema)
        return metrics

    def _critic_batch(self, states: StateReplay) -> StateBatch:
        settings = self._update.settings
        drawn = states.sample(
            settings.critic_batch_episodes,
            settings.critic_demonstrations_per_batch,
            settings.critic_recent_per_batch,
            self._recent_episodes,
        )
        return drawn.to(next(self._trained.parameters()).device)

    def _required_states(self) -> StateReplay:
        if self._states is None:
            raise RuntimeError("the learner has no replay buffer; attach one first")
        return self._states

    def tensors(self) -> dict[str, Tensor]:
        """Trained actor, critic and target, the optimisers' moments, the policy's actions."""
        update = self._update
        return {
            **named_parameters(self._trained, "trained"),
            **named_parameters(update.critic, "state_critic"),
            **named_parameters(update.target, "state_critic_target"),
            **optimiser_tensors(update.actor_optimiser, "actor_optimiser"),
            **optimiser_tensors(update.critic_optimiser, "critic_optimiser"),
            **optimiser_tensors(self._pretraining.optimiser, "warm_up_optimiser"),
            "policy_actions": self._required_states().tensor(),
        }

    def state(self) -> dict[str, Any]:
        """Number of updates made, by imitation and by the actor-critic; eta of the latter."""
        return {
            "imitation_updates": self._pretraining.updates,
            "asymmetric_updates": self._update.updates,
            "improvement_temperature": self._update.sampled.temperature,
        }

    def restore(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Continue where the checkpoint was written."""
        update = self._update
        if "policy_actions" not in tensors:
            raise CheckpointError(
                "tensor 'policy_actions' is missing: the run was started by an older version, whose"
                " critic had no batches of its own; start a new run in another folder"
            )
        restore_parameters(self.actor, tensors, "actor")
        restore_parameters(self._trained, tensors, "trained")
        restore_parameters(update.critic, tensors, "state_critic")
        restore_parameters(update.target, tensors, "state_critic_target")
        restore_optimiser(update.actor_optimiser, tensors, "actor_optimiser")
        restore_optimiser(update.critic_optimiser, tensors, "critic_optimiser")
        restore_optimiser(self._pretraining.optimiser, tensors, "warm_up_optimiser")
        self._required_states().restore(tensors["policy_actions"])
        self._pretraining.updates = int(state["imitation_updates"])
        update.updates = int(state["asymmetric_updates"])
        update.sampled.temperature = float(state["improvement_temperature"])
