# SPDX-License-Identifier: MIT
"""Acting with a recurrent policy while it is being trained: explicit state in, state out.

Holds ordinary weights without gradient, taken from an actor once, so that acting costs neither
filter expansion nor autograd. The robot uses its own runner of exported weights; a test holds the
two together.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from equi_rl.data.augmentation import centre_crop
from equi_rl.data.device import HOST
from equi_rl.nets import dense
from equi_rl.nets.config import NetworkConfig
from equi_rl.nets.distributions import sample, squash
from equi_rl.nets.networks import Actor, ActorWeights, LstmState, initial_state

_ONE_EPISODE = torch.ones(1, dtype=torch.int64)


class Policy(Protocol):
    """Whatever plays episodes: its state goes in and comes out, and none is kept inside."""

    def to(self, device: torch.device) -> Policy:
        """The same policy on a device."""

    def start(self, seed: int) -> Any:
        """State at the start of an episode."""

    def act(
        self,
        observation: NDArray[np.float32],
        previous_action: NDArray[np.floating],
        state: Any,
        rng: np.random.Generator | None = None,
    ) -> tuple[NDArray[np.float32], Any]:
        """One step, as `ActingPolicy.act`."""


class ActingPolicy:
    """A frozen copy of an actor's weights that plays episodes."""

    def __init__(self, config: NetworkConfig, weights: ActorWeights) -> None:
        self.config = config
        self._weights = weights

    @property
    def weights(self) -> ActorWeights:
        """Its weights, expanded; do not write to them."""
        return self._weights

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self._weights.mean.weight.device

    def to(self, device: torch.device) -> ActingPolicy:
        """The same policy on a device. One frame at a time, the host is usually the fastest."""
        return ActingPolicy(
            self.config, dense.map_tensors(self._weights, lambda tensor: tensor.to(device))
        )

    @classmethod
    def of(cls, actor: Actor) -> ActingPolicy:
        """Snapshot of an actor as it is now."""
        with torch.no_grad():
            weights = dense.map_tensors(actor.dense(), torch.clone)
        return cls(actor.config, weights).to(HOST)  # players may be on other machines

    def start(self, seed: int) -> LstmState:
        """State at the start of an episode; `seed` draws it where the network starts at random."""
        generator = torch.Generator().manual_seed(seed)
        return initial_state(self.config, 1, generator, self.device)

    def act(
        self,
        observation: NDArray[np.float32],
        previous_action: NDArray[np.floating],
        state: LstmState,
        rng: np.random.Generator | None = None,
    ) -> tuple[NDArray[np.float32], LstmState]:
        """One step.

        Args:
            observation: (2, S, S) as the environment returns it.
            previous_action: (5,) action executed last; zeros at the first step.
            state: state before this step.
            rng: draws a random action; None takes the policy's mean.

        Returns:
            policy vector (5,) and the state after this step.
        """
        with torch.inference_mode():
            image = torch.from_numpy(np.ascontiguousarray(observation))[None].to(self.device)
            # Agents trained on random windows of larger images act on the middle one.
            image = centre_crop(image[0], self.config.observation_size)[None]
            frames = dense.prepare_observation(self.config, image)
            features = dense.encode(self.config, self._weights.history.encoder, frames)
            previous = torch.from_numpy(np.asarray(previous_action, dtype=np.float32))[None]
            previous = previous.to(self.device)
            history, state = dense.run_history(
                self.config, self._weights.history, features, previous, _ONE_EPISODE, state
            )
            mean, log_std = dense.actor_outputs(self.config, self._weights, history)
            if rng is None:
                action = squash(mean, self.config.squash)
            else:
                noise = torch.from_numpy(rng.standard_normal(mean.shape).astype(np.float32))
                action, _ = sample(mean, log_std, noise.to(self.device), self.config.squash)
        return action[0].cpu().numpy(), state
