# SPDX-License-Identifier: MIT
"""Memory by a differentiable particle filter, trained by the policy's loss alone (DPFRL).

A belief is K particles h_k with weights w_k. One step, with features x of the observation:

    moved       z, r   = sigmoid(U x + W h_k)
                n      = tanh(U' x + r (W' h_k) + sigma(x, h_k) noise)
                h_k    = z h_k + (1 - z) n                 a gated unit with noise
    weighted    w_k   <- w_k f(x, h_k), normalised         f: how well observation and particle fit
    resampled   k'     ~ q_k = a w_k + (1 - a) / K         from a mixture, so that the weight
                w_k'   = w_k / q_k, normalised             w / q carries a gradient
    read out    (sum_k w_k h_k,  sum_k w_k exp(v_j h_k))   mean, and moment-generating function at
                                                           learned places v_j

f is no generative model: no likelihood of images is learned, only what helps to act. After Ma et
al., "Discriminative particle filter reinforcement learning for complex partial observations", ICLR
2020, with 30 particles of 128 numbers as in the paper's comparison. Here the observation holds what
a previous action would tell, and the transition sees it, so no action is fed.

Playing records the noise; for the gradient the filter runs again over the rollout with the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from equi_rl.carflag.memories.memory import ArraySpec
from equi_rl.nets.symmetry import Layout, trivial

PARTICLES = 30
SIZE = 128  # numbers of a particle
MOMENTS = 128  # places at which the moment-generating function is read
FIT = 64  # hidden units of f
MIXTURE = 0.5  # a
_LARGEST_EXPONENT = 5.0  # of the moment-generating function; keeps an early outlier finite


class ParticleBelief(NamedTuple):
    """K weighted particles."""

    particles: Tensor  # (learners, batch, K, SIZE)
    log_weights: Tensor  # (learners, batch, K); their exponentials sum to 1

    def keep(self, alive: Tensor) -> ParticleBelief:
        """Start over where ``alive`` (learners, batch, 1) is 0: an episode has ended there."""
        fresh = -math.log(self.log_weights.shape[-1])
        return ParticleBelief(
            self.particles * alive.unsqueeze(-1), torch.where(alive > 0, self.log_weights, fresh)
        )


class FilterNoise(NamedTuple):
    """All that is random in one step."""

    normal: Tensor  # (learners, batch, K, SIZE): moves the particles
    uniform: Tensor  # (learners, batch, K): chooses which survive


class ParticleMemory:
    """The filter of the module's head; holds no weights."""

    outputs = trivial(SIZE + MOMENTS)

    def arrays(self, features: Layout) -> list[ArraySpec]:
        """Weights by name; fields of ``features`` describe an observation."""
        particle, moves, fit = trivial(SIZE), trivial(4 * SIZE), trivial(FIT)
        bound = 1 / math.sqrt(SIZE)
        of_x = 1 / math.sqrt(features.channels)
        return [
            # Of the observation: gates z and r, candidate, spread of the noise, fit.
            ArraySpec("memory_x", features, trivial(4 * SIZE + FIT), of_x),
            ArraySpec("memory_h", particle, moves, bound, bias=False),
            ArraySpec("memory_fit", particle, fit, bound, bias=False),
            ArraySpec("memory_fit_out", fit, trivial(1), 1 / math.sqrt(FIT)),
            ArraySpec("memory_moments", particle, trivial(MOMENTS), bound, bias=False),
        ]

    def initial_state(self, learners: int, batch: int) -> ParticleBelief:
        """Particles at zero with equal weights; noise parts them."""
        return ParticleBelief(
            torch.zeros(learners, batch, PARTICLES, SIZE),
            torch.full((learners, batch, PARTICLES), -math.log(PARTICLES)),
        )

    def draw_noise(self, generators: list[np.random.Generator], batch: int) -> FilterNoise:
        """Of one step; each learner draws its own."""
        shape = (batch, PARTICLES, SIZE)
        normal = np.stack([g.standard_normal(shape, dtype=np.float32) for g in generators])
        uniform = np.stack([g.random(shape[:2], dtype=np.float32) for g in generators])
        return FilterNoise(torch.from_numpy(normal), torch.from_numpy(uniform))

    def recur(
        self,
        weights: Mapping[str, Tensor],
        embedding: Tensor,
        state: ParticleBelief,
        noise: FilterNoise | None = None,
    ) -> ParticleBelief:
        """The belief after an observation; without noise nothing is random or resampled."""
        moves, fit_x = embedding.unsqueeze(2).split((4 * SIZE, FIT), dim=-1)
        particles = _moved(weights["memory_h"], moves, state.particles, noise)
        fit = (fit_x + _each(particles, weights["memory_fit"])).relu()
        score = _each(fit, weights["memory_fit_out"]).squeeze(-1)
        score = score + weights["memory_fit_out_b"]
        log_weights = functional.log_softmax(state.log_weights + score, dim=-1)
        if noise is None:
            return ParticleBelief(particles, log_weights)
        return _resampled(particles, log_weights, noise.uniform)

    def output(self, weights: Mapping[str, Tensor], state: ParticleBelief) -> Tensor:
        """Mean particle and moments (learners, batch, SIZE + MOMENTS)."""
        share = state.log_weights.exp().unsqueeze(-1)
        exponents = _each(state.particles, weights["memory_moments"])
        moments = exponents.clamp(max=_LARGEST_EXPONENT).exp()
        return torch.cat(((share * state.particles).sum(2), (share * moments).sum(2)), dim=-1)

    def record(self) -> RecordedFilter:
        """A recording of one rollout."""
        return RecordedFilter(self)


class RecordedFilter:
    """The steps of one rollout: where it started, and what was random."""

    def __init__(self, memory: ParticleMemory) -> None:
        self._memory = memory
        self._start: ParticleBelief | None = None
        self._noise: list[FilterNoise | None] = []
        self._alive: list[Tensor | None] = []
        self.after: list[ParticleBelief] = []

    @torch.no_grad()
    def step(
        self,
        weights: Mapping[str, Tensor],
        embedding: Tensor,
        state: ParticleBelief,
        noise: FilterNoise | None,
    ) -> ParticleBelief:
        """Take one step and remember it."""
        if self._start is None:
            self._start = state
        self.after.append(self._memory.recur(weights, embedding, state, noise))
        self._noise.append(noise)
        self._alive.append(None)
        return self.after[-1]

    def end_episodes(self, alive: Tensor) -> ParticleBelief:
        """Forget where ``alive`` (L, N, 1) is 0; returns the state that the next step starts in."""
        self._alive[-1] = alive
        return self.after[-1].keep(alive)

    def outputs(self, weights: Mapping[str, Tensor], embeddings: Tensor) -> Tensor:
        """What the memory read out at each step (T, L, N, outputs), as a function of the weights.

        Embeddings (T, L, N, ...) must hold the numbers of the recording.
        """
        assert self._start is not None
        state, found = self._start, []
        for embedding, noise, alive in zip(embeddings, self._noise, self._alive, strict=True):
            state = self._memory.recur(weights, embedding, state, noise)
            found.append(self._memory.output(weights, state))
            if alive is not None:
                state = state.keep(alive)
        return torch.stack(found)


def _moved(
    recurrent: Tensor, moves: Tensor, particles: Tensor, noise: FilterNoise | None
) -> Tensor:
    """Particles (L, N, K, SIZE) after the gated unit; ``moves`` (L, N, 1, 4 SIZE) of x."""
    own = _each(particles, recurrent)
    keep, reset = (moves[..., : 2 * SIZE] + own[..., : 2 * SIZE]).sigmoid().split(SIZE, dim=-1)
    candidate = moves[..., 2 * SIZE : 3 * SIZE] + reset * own[..., 2 * SIZE : 3 * SIZE]
    if noise is not None:
        spread = functional.softplus(moves[..., 3 * SIZE :] + own[..., 3 * SIZE :])
        candidate = candidate + spread * noise.normal
    return keep * particles + (1 - keep) * candidate.tanh()


def _resampled(particles: Tensor, log_weights: Tensor, uniform: Tensor) -> ParticleBelief:
    """Survivors drawn from the mixture q, with the weights w / q."""
    log_share = torch.logaddexp(
        log_weights + math.log(MIXTURE),
        torch.full((), math.log((1 - MIXTURE) / log_weights.shape[-1])),
    )
    with torch.no_grad():
        edges = log_share.exp().cumsum(dim=-1)
        chosen = torch.searchsorted(edges, uniform * edges[..., -1:]).clamp(max=edges.shape[-1] - 1)
    ratio = (log_weights - log_share).gather(-1, chosen)
    index = chosen.unsqueeze(-1).expand_as(particles)
    return ParticleBelief(particles.gather(2, index), functional.log_softmax(ratio, dim=-1))


def _each(rows: Tensor, matrix: Tensor) -> Tensor:
    """Rows (L, N, K, C) times each learner's matrix (L, C, D)."""
    return torch.bmm(rows.flatten(1, 2), matrix).view(*rows.shape[:3], -1)
