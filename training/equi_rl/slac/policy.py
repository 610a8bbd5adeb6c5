# SPDX-License-Identifier: MIT
"""Acting with SLAC: the encoder and the actor, with the window of the last frames as state."""

from __future__ import annotations

import copy

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from equi_rl.nets.distributions import sample, squash
from equi_rl.slac.actor_critic import SQUASH, HistoryActor, joined_rows, shifted
from equi_rl.slac.images import Encoder, frames_of


class SlacPolicy:
    """A frozen copy of encoder and actor that plays episodes (`agents.acting_policy.Policy`).

    Args:
        image_size: side of the images that the encoder sees [px].
        encoder: of the latent model.
        actor: on its features.
    """

    def __init__(self, image_size: int, encoder: Encoder, actor: HistoryActor) -> None:
        self._image_size = image_size
        self._encoder = copy.deepcopy(encoder).requires_grad_(False)
        self._actor = copy.deepcopy(actor).requires_grad_(False)

    def to(self, device: torch.device) -> SlacPolicy:
        """The same policy; it acts on the host."""
        return self

    def start(self, seed: int) -> Tensor:
        """State at the start of an episode, the same for every seed."""
        return self._actor.start()

    def act(
        self,
        observation: NDArray[np.float32],
        previous_action: NDArray[np.floating],
        state: Tensor,
        rng: np.random.Generator | None = None,
    ) -> tuple[NDArray[np.float32], Tensor]:
        """One step.

        Args:
            observation: (2, S, S) as the environment returns it.
            previous_action: (5,) action executed last; zeros at the first step.
            state: window (W, C + 5) before this step.
            rng: draws a random action; None takes the policy's mean.

        Returns:
            policy vector (5,) and the window after this step.
        """
        with torch.inference_mode():
            seen = torch.from_numpy(np.ascontiguousarray(observation))[None]
            frames = frames_of(seen[:, 0], seen[:, 1, 0, 0], self._image_size)
            previous = torch.from_numpy(np.asarray(previous_action, dtype=np.float32))[None]
            row = joined_rows(self._encoder(frames), previous)
            state = shifted(state, row[0])
            mean, log_std = self._actor(state[None])
            if rng is None:
                action = squash(mean, SQUASH)
            else:
                noise = torch.from_numpy(rng.standard_normal(mean.shape).astype(np.float32))
                action, _ = sample(mean, log_std, noise, SQUASH)
        return action[0].numpy(), state
