# SPDX-License-Identifier: MIT
"""Images are embedded once per rollout and then looked up.

CarFlag-2D can show few different images (720 on the 9 x 9 grid), yet embedding them is most of a
network's work. The weights do not change during a rollout, so all of them are embedded in one
batch, which costs less than the few that each step brings; for the update the encoder is
differentiated once for those that were seen.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

from equi_rl.carflag.policy import GridPolicy, Weights
from equi_rl.carflag.worlds import CarFlag2D


class EncoderCache:
    """Embeddings of every image a world can show, for each learner's weights."""

    @torch.no_grad()
    def __init__(self, policy: GridPolicy, weights: Weights, learners: int) -> None:
        world = policy.world
        if not isinstance(world, CarFlag2D):
            raise TypeError(f"{world} shows no images to encode; use a CarFlag2D world")
        self._policy = policy
        self._all_observations, self._number_of_code, self._code = _all_observations(world)
        self._learner = np.arange(learners)[:, None]
        everything = torch.from_numpy(self._all_observations).expand(
            learners, *self._all_observations.shape
        )
        self._embeddings = policy.embed(weights, everything).flatten(0, 1)
        self._lookups: list[np.ndarray] = []

    @torch.no_grad()
    def lookup(self, images: np.ndarray) -> Tensor:
        """Embeddings (L, N, C) of images (L, N, 2, size, size), without a graph."""
        codes = images.reshape(*images.shape[:2], -1) @ self._code
        numbers = self._number_of_code[codes.astype(np.int64)]
        if numbers.min() < 0:
            raise ValueError(f"{self._policy.world} cannot show one of the images looked up")
        self._lookups.append(numbers)
        rows = self._learner * len(self._all_observations) + numbers
        return self._embeddings.index_select(0, torch.from_numpy(rows.ravel())).view(
            *rows.shape, -1
        )

    def embed_seen(self, weights: Weights, lookups: int) -> Tensor:
        """What the first ``lookups`` lookups returned, as a function of the weights.

        (L, lookups * N, C), in their order. Only images that were seen go through the encoder
        again, each once: gradients that arrive at equal images add up before.
        """
        numbers = np.concatenate(self._lookups[:lookups], axis=1)
        seen = np.zeros((len(numbers), len(self._all_observations)), dtype=bool)
        seen[self._learner, numbers] = True
        distinct = _padded([np.flatnonzero(own) for own in seen])
        embeddings = self._policy.embed(weights, torch.from_numpy(self._all_observations[distinct]))
        place = (seen.cumsum(axis=1) - 1)[self._learner, numbers]  # in the learner's batch
        index = torch.from_numpy(place).unsqueeze(-1).expand(-1, -1, embeddings.shape[-1])
        return embeddings.gather(1, index)


def _padded(lists: list[np.ndarray]) -> np.ndarray:
    """Lists of unequal length as rows of (L, longest), filled with zeros."""
    rows = np.zeros((len(lists), max(map(len, lists))), dtype=np.int64)
    for row, own in zip(rows, lists, strict=True):
        row[: len(own)] = own
    return rows


@cache
def _all_observations(world: CarFlag2D) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All K images that a world can show, those with the goal hidden first.

    Returns:
        images (K, 2, size, size) float32; number of each code, -1 for impossible ones; weights
        (2 * size * size,) whose product with a image is its code: the agent's cell, and ``cells``
        times the goal's plus one where it can be seen.
    """
    cells = world.size**2
    inside = np.flatnonzero(world.info_mask)
    goals = world.goal_cells  # the complement of the information region
    agent = np.concatenate((goals, np.repeat(inside, len(goals))))
    code = np.concatenate((goals, (inside[:, None] + (goals + 1) * cells).ravel()))
    all_observations = np.zeros((len(code), *world.observation_shape), dtype=np.float32)
    planes = all_observations.reshape(len(code), 2 * cells)
    planes[np.arange(len(code)), agent] = 1.0
    seen = np.arange(len(goals), len(code))
    planes[seen, cells + np.tile(goals, len(inside))] = 1.0
    number = np.full(cells * (cells + 1), -1, dtype=np.int64)
    number[code] = np.arange(len(code))
    place = np.arange(cells, dtype=np.float32)
    return all_observations, number, np.concatenate((place, (place + 1) * cells))
