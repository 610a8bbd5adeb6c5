"""Each distinct picture of a rollout is perceived once.

CarFlag-2D shows few different pictures (one per cell while the goal is hidden), yet perceiving
them is most of a network's work. The weights do not change during a rollout, so what was computed
for a picture is kept and looked up; for the update the encoder is differentiated once for the
distinct ones.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from equi_rl.agents.grid_policy import GridPolicy, Weights
from equi_rl.envs.carflag import CarFlag2D


class PictureMemory:
    """Percepts of the pictures seen by each learner during one rollout."""

    def __init__(self, policy: GridPolicy, weights: Weights, learners: int) -> None:
        world = policy.world
        if not isinstance(world, CarFlag2D):
            raise TypeError(f"{world} shows no pictures to remember; use a CarFlag2D world")
        self._policy = policy
        self._weights = weights
        cells = world.size**2
        # One number per picture: the agent's cell, and the goal's where it can be seen.
        place = np.arange(cells, dtype=np.float32)
        self._code = np.concatenate((place, (place + 1) * cells))
        self._slot_of_code = np.full((learners, cells * (cells + 1)), -1, dtype=np.int64)
        self._used = np.zeros(learners, dtype=np.int64)
        self._rows = np.arange(learners)[:, None]
        capacity = 4 * cells
        self._pictures = np.zeros((learners, capacity, *world.observation_shape), np.float32)
        self._percepts = torch.zeros(0)
        self._looks: list[np.ndarray] = []
        # Most looks find the goal hidden; one batch for all such pictures beats many small ones.
        hidden = _hidden_goal_pictures(world)
        many = np.broadcast_to(hidden, (learners, *hidden.shape))
        codes = self._codes(many)
        self._learn(many, codes, np.ones(codes.shape, dtype=bool))

    @torch.no_grad()
    def look(self, pictures: np.ndarray) -> Tensor:
        """Percepts (L, N, C) of pictures (L, N, 2, size, size), without a graph."""
        codes = self._codes(pictures)
        slots = self._slot_of_code[self._rows, codes]
        if (slots < 0).any():
            self._learn(pictures, codes, slots < 0)
            slots = self._slot_of_code[self._rows, codes]
        self._looks.append(slots)
        return self._percepts[self._rows, slots]

    def _codes(self, pictures: np.ndarray) -> np.ndarray:
        """(L, N) int64, one number per picture."""
        codes: np.ndarray = pictures.reshape(*pictures.shape[:2], -1) @ self._code
        return codes.astype(np.int64)

    def recall(self, weights: Weights, looks: int) -> Tensor:
        """What the first ``looks`` looks returned, as a function of the weights.

        (L, looks * N, C), in their order. Gradients that arrive at equal pictures add up before
        they go through the encoder.
        """
        slots = torch.from_numpy(np.concatenate(self._looks[:looks], axis=1))
        distinct = torch.from_numpy(self._pictures[:, : int(self._used.max())])
        percepts = self._policy.perceive(weights, distinct)
        return percepts.gather(1, slots.unsqueeze(-1).expand(-1, -1, percepts.shape[-1]))

    @torch.no_grad()
    def _learn(self, pictures: np.ndarray, codes: np.ndarray, unknown: np.ndarray) -> None:
        """Perceive the unknown pictures, one padded batch for all learners, and keep the result."""
        learner, world = np.nonzero(unknown)
        counts = unknown.sum(axis=1)
        rank = np.arange(len(learner)) - np.repeat(np.cumsum(counts) - counts, counts)
        slot = self._used[learner] + rank
        self._reserve(int((self._used + counts.max()).max()))
        self._pictures[learner, slot] = pictures[learner, world]
        # Two worlds may show the same new picture; the later slot wins, the other stays unused.
        self._slot_of_code[learner, codes[learner, world]] = slot
        batch = self._used[:, None] + np.arange(counts.max())
        fresh = torch.from_numpy(self._pictures[self._rows, batch])
        self._percepts[self._rows, batch] = self._policy.perceive(self._weights, fresh)
        self._used += counts

    def _reserve(self, slots: int) -> None:
        """Make room for ``slots`` pictures per learner."""
        if slots > self._pictures.shape[1]:
            room = ((0, 0), (0, slots), (0, 0), (0, 0), (0, 0))
            self._pictures = np.pad(self._pictures, room)
        missing = self._pictures.shape[1] - (
            self._percepts.shape[1] if self._percepts.dim() > 1 else 0
        )
        if missing:
            channels = self._weights["lstm_x_b"].shape[-1]
            more = torch.zeros(len(self._used), missing, channels)
            self._percepts = (
                more if self._percepts.dim() == 1 else torch.cat((self._percepts, more), 1)
            )


def _hidden_goal_pictures(world: CarFlag2D) -> np.ndarray:
    """(K, 2, size, size) float32: the agent on every cell from which the goal cannot be seen."""
    cells = world.goal_cells  # the complement of the information region
    pictures = np.zeros((len(cells), *world.observation_shape), dtype=np.float32)
    pictures.reshape(len(cells), -1)[np.arange(len(cells)), cells] = 1.0
    return pictures
