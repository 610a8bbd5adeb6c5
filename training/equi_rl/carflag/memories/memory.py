# SPDX-License-Identifier: MIT
"""What a policy of the CarFlag worlds needs of its memory, and the weights that a memory asks for.

A memory holds no weights itself: it says which it needs, and runs any learner's. Two exist: the
LSTM (`recorded_lstm`) and a particle filter (`particle_filter`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from torch import Tensor

from equi_rl.nets.symmetry import Layout


class ArraySpec(NamedTuple):
    """A matrix of one learner between fields; entries start uniform in +- ``init_bound``."""

    name: str
    source: Layout
    target: Layout
    init_bound: float
    bias: bool = True


class Recording(Protocol):
    """The steps of one rollout, played without a graph and differentiated afterwards."""

    after: list[Any]
    """States after each step, before an episode's end cleared them."""

    def step(self, weights: Mapping[str, Tensor], embedding: Tensor, state: Any, noise: Any) -> Any:
        """Take one step and remember it."""

    def end_episodes(self, alive: Tensor) -> Any:
        """Forget where ``alive`` (L, N, 1) is 0; returns the state that the next step starts in."""

    def outputs(self, weights: Mapping[str, Tensor], embeddings: Tensor) -> Tensor:
        """What the memory read out (T, L, N, outputs), as a function of the weights."""


class Memory(Protocol):
    """State is a NamedTuple of tensors, each (learners, batch, ...)."""

    outputs: Layout
    """Fields that the actor and the critic see."""

    def arrays(self, features: Layout) -> list[ArraySpec]:
        """Weights by name; fields of ``features`` describe an observation.

        The first maps them to what the observation adds to a step: the embedding.
        """

    def initial_state(self, learners: int, batch: int) -> Any:
        """At the start of an episode."""

    def draw_noise(self, generators: list[np.random.Generator], batch: int) -> Any:
        """What is random in one step; None if nothing is."""

    def recur(
        self, weights: Mapping[str, Tensor], embedding: Tensor, state: Any, noise: Any = None
    ) -> Any:
        """The state after one step; without noise, one in which nothing is random."""

    def output(self, weights: Mapping[str, Tensor], state: Any) -> Tensor:
        """(learners, batch, outputs)."""

    def record(self) -> Recording:
        """A recording of one rollout."""
