# SPDX-License-Identifier: MIT
"""What the trainer needs of a learning method, and the methods of three of the presets.

A learner makes one update from a batch, hands out the policy that acts now, and can be written to
and read from a checkpoint. `ImitationLearner` follows an expert's labels; `SacLearner` learns from
reward, optionally beside a demonstration loss. The fourth is `asymmetric_learner`.
"""

from __future__ import annotations

import abc
import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from equi_rl.agents.acting_policy import ActingPolicy
from equi_rl.agents.imitation import ImitationSettings, ImitationUpdate
from equi_rl.agents.sac import SacUpdate
from equi_rl.agents.sac_settings import SacSettings
from equi_rl.data.collate import LabelledBatch
from equi_rl.data.replay_buffer import EpisodeReplayBuffer
from equi_rl.nets.checkpoint import restore_parameters
from equi_rl.nets.dense import named_tensors
from equi_rl.nets.networks import Actor, Critic

MAX_PLAUSIBLE_VALUE = 20.0


class DivergedError(RuntimeError):
    """Learning went wrong beyond repair; the run stops and keeps its checkpoints."""


class Learner(abc.ABC):
    """A learning method with its networks and optimisers."""

    actor: Actor
    critic: Critic | None = None

    @abc.abstractmethod
    def update(self, batch: LabelledBatch, *, diagnose: bool = False) -> dict[str, float]:
        """One update; returns metrics for the log, more with `diagnose`. Raises DivergedError."""

    def attach(self, replay_buffer: EpisodeReplayBuffer) -> None:  # noqa: B027 - most need none
        """The buffer of the run, for a learner that draws batches of its own beside `update`'s."""

    @abc.abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint must hold beside the networks' parameters."""

    @abc.abstractmethod
    def restore(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Take over tensors and plain state of a checkpoint; its buffer is already restored."""

    @abc.abstractmethod
    def state(self) -> dict[str, Any]:
        """Everything that a checkpoint must hold as plain data."""

    def start_from(self, tensors: Mapping[str, Tensor]) -> None:
        """Begin with the policy of a checkpoint; refused where that would not be enough."""
        raise ValueError("this way of learning cannot start from weights alone")

    def policy(self) -> ActingPolicy:
        """The policy as it is now."""
        return ActingPolicy.of(self.actor)


class ImitationLearner(Learner):
    """Learns the expert's labels.

    What acts, is evaluated and is exported (`actor`) is an exponential moving average of the
    trained actor (`ImitationSettings.policy_ema`).
    """

    def __init__(self, actor: Actor, settings: ImitationSettings, planned_updates: int) -> None:
        self.actor = copy.deepcopy(actor)
        self._trained = actor
        self._update = ImitationUpdate(actor, settings, planned_updates)
        self._weights = AveragedWeights(self.actor, actor)

    def update(self, batch: LabelledBatch, *, diagnose: bool = False) -> dict[str, float]:
        """One update by the expert's labels."""
        metrics = self._update.step(batch)
        require_finite(metrics, self._weights.trained)
        # A mean over all updates at first, so that the weights at the start are soon forgotten.
        rate = max(self._update.settings.policy_ema, 1.0 / self._update.updates)
        self._weights.average(rate)
        return metrics

    def start_from(self, tensors: Mapping[str, Tensor]) -> None:
        """Begin with the policy of a checkpoint, and nothing else of it."""
        restore_parameters(self.actor, tensors, "actor")
        restore_parameters(self._trained, tensors, "actor")

    def tensors(self) -> dict[str, Tensor]:
        """Trained actor and the optimiser's moments."""
        return {
            **named_parameters(self._trained, "trained"),
            **optimiser_tensors(self._update.optimiser, "actor_optimiser"),
        }

    def state(self) -> dict[str, Any]:
        """Number of updates made."""
        return {"imitation_updates": self._update.updates}

    def restore(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Continue where the checkpoint was written."""
        restore_parameters(self.actor, tensors, "actor")
        restore_parameters(self._trained, tensors, "trained")
        restore_optimiser(self._update.optimiser, tensors, "actor_optimiser")
        self._update.updates = int(state["imitation_updates"])


class SacLearner(Learner):
    """Recurrent SAC, after optional pretraining of the actor by imitation.

    What acts, is evaluated and is exported (`actor`) is an exponential moving average of the
    trained actor (`SacSettings.policy_ema`): at a constant learning rate a policy's success jumps
    from one update to the next, that of its average does not.
    """

    def __init__(
        self,
        actor: Actor,
        critic: Critic,
        settings: SacSettings,
        imitation: ImitationSettings,
    ) -> None:
        self.actor, self.critic = copy.deepcopy(actor), critic
        self._trained = actor
        self._sac = SacUpdate(actor, critic, settings)
        self._pretraining = ImitationUpdate(actor, imitation, imitation.updates)
        self._reach = imitation.label_reach
        self._weights = AveragedWeights(self.actor, actor)
        self._critic_weights = dict(critic.named_parameters())

    @property
    def _is_pretraining(self) -> bool:
        return self._pretraining.updates < self._pretraining.planned_updates

    def update(self, batch: LabelledBatch, *, diagnose: bool = False) -> dict[str, float]:
        """One update: imitation while pretraining lasts, SAC afterwards."""
        if self._is_pretraining:
            metrics = self._pretraining.step(batch)
            require_finite(metrics, self._weights.trained)
            self._weights.average(1.0)
            return metrics
        labels = batch.expert_actions.clamp(-self._reach, self._reach)
        metrics = self._sac.step(batch.episodes, expert_actions=labels, diagnose=diagnose)
        require_finite(metrics, self._weights.trained, self._critic_weights)
        # Rewards are at most 1 in all, so a value far outside cannot be an estimate of return.
        if abs(metrics["value"]) > MAX_PLAUSIBLE_VALUE:
            raise DivergedError(f"the mean value is {metrics['value']:.1f}; returns are at most 1")
        self._weights.average(self._sac.settings.policy_ema)
        return metrics

    def tensors(self) -> dict[str, Tensor]:
        """Trained actor, target weights, temperature and the optimisers' moments."""
        sac = self._sac
        return {
            **named_parameters(self._trained, "trained"),
            **{f"target.{name}": tensor for name, tensor in named_tensors(sac.networks.target)},
            "log_temperature": sac.log_temperature.detach(),
            **optimiser_tensors(sac.actor_optimiser, "actor_optimiser"),
            **optimiser_tensors(sac.critic_optimiser, "critic_optimiser"),
            **optimiser_tensors(sac.temperature_optimiser, "temperature_optimiser"),
            **optimiser_tensors(self._pretraining.optimiser, "warm_up_optimiser"),
        }

    def state(self) -> dict[str, Any]:
        """Number of updates made, by imitation and by SAC."""
        return {
            "imitation_updates": self._pretraining.updates,
            "sac_updates": self._sac.updates,
        }

    def restore(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Continue where the checkpoint was written."""
        sac = self._sac
        restore_parameters(self.actor, tensors, "actor")
        restore_parameters(self._trained, tensors, "trained")
        sac.updates = int(state["sac_updates"])
        restore_parameters(sac.networks.critic, tensors, "critic")
        with torch.no_grad():
            for name, tensor in named_tensors(sac.networks.target, "target"):
                tensor.copy_(tensors[name])
            sac.log_temperature.copy_(tensors["log_temperature"])
        restore_optimiser(sac.actor_optimiser, tensors, "actor_optimiser")
        restore_optimiser(sac.critic_optimiser, tensors, "critic_optimiser")
        restore_optimiser(sac.temperature_optimiser, tensors, "temperature_optimiser")
        restore_optimiser(self._pretraining.optimiser, tensors, "warm_up_optimiser")
        self._pretraining.updates = int(state["imitation_updates"])


class AveragedWeights:
    """Parameters of an actor that is trained, and of one that follows it.

    Gathered once: escnn's modules compare their bases whenever one walks through them.
    """

    def __init__(self, following: Actor, trained: Actor) -> None:
        self.trained = dict(trained.named_parameters())
        self._following = list(following.parameters())

    @torch.no_grad()
    def average(self, rate: float) -> None:
        """Exponential moving average in place: following <- (1 - rate) following + rate trained."""
        for mean, newest in zip(self._following, self.trained.values(), strict=True):
            mean.lerp_(newest, rate)


def named_parameters(network: torch.nn.Module, prefix: str) -> dict[str, Tensor]:
    """Every parameter by name, as `restore_parameters` takes them."""
    return {f"{prefix}.{name}": value.detach() for name, value in network.named_parameters()}


def optimiser_tensors(optimiser: torch.optim.Optimizer, prefix: str) -> dict[str, Tensor]:
    """Every tensor of an optimiser's state by name."""
    return {
        f"{prefix}.{index}.{name}": torch.as_tensor(value)
        for index, entries in optimiser.state_dict()["state"].items()
        for name, value in entries.items()
    }


def restore_optimiser(
    optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor], prefix: str
) -> None:
    """Put tensors written by `optimiser_tensors` back; groups keep their own settings."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith(prefix + "."):
            index, entry = name[len(prefix) + 1 :].split(".", 1)
            state.setdefault(int(index), {})[entry] = tensor
    optimiser.load_state_dict(
        {"state": state, "param_groups": optimiser.state_dict()["param_groups"]}
    )


def require_finite(metrics: Mapping[str, float], *networks: Mapping[str, Tensor]) -> None:
    """Raise DivergedError if a metric or one of the networks' parameters is NaN or infinite."""
    for name, value in metrics.items():
        if not abs(value) < float("inf"):
            raise DivergedError(f"{name} became {value}; lower the learning rate and resume")
    for parameters in networks:
        for name, parameter in parameters.items():
            if not torch.isfinite(parameter).all():
                raise DivergedError(f"weight {name} is no longer finite; lower the learning rate")
