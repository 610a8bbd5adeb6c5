# SPDX-License-Identifier: MIT
"""Specification of the particle-filter memory: a belief that moves, is weighed and resampled."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from equi_rl.carflag.a2c import A2CConfig, A2CLearners
from equi_rl.carflag.memories.particle_filter import (
    PARTICLES,
    SIZE,
    ParticleBelief,
    ParticleMemory,
    _resampled,
)
from equi_rl.carflag.policy import GridPolicy
from equi_rl.carflag.worlds import CarFlag1D

LEARNERS, BATCH, STEPS = 2, 3, 6
MEMORY = ParticleMemory()


@pytest.fixture
def policy() -> GridPolicy:
    return GridPolicy(CarFlag1D(), equivariant=False, memory=MEMORY)


@pytest.fixture
def weights(policy):
    generators = [np.random.default_rng(seed) for seed in range(LEARNERS)]
    return policy.weights(policy.expand(policy.initial_parameters(generators)))


def noise(seed: int = 0, batch: int = BATCH):
    return MEMORY.draw_noise([np.random.default_rng((seed, own)) for own in range(LEARNERS)], batch)


def an_embedding(policy, weights, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    return policy.embed(weights, torch.randn(LEARNERS, BATCH, 2, generator=generator))


def test_weights_are_a_distribution_at_the_start_and_after_every_step(policy, weights):
    state = MEMORY.initial_state(LEARNERS, BATCH)
    for step in range(STEPS):
        total = state.log_weights.exp().sum(dim=-1)
        torch.testing.assert_close(total, torch.ones(LEARNERS, BATCH))
        assert state.particles.shape == (LEARNERS, BATCH, PARTICLES, SIZE)
        state = MEMORY.recur(weights, an_embedding(policy, weights, step), state, noise(step))


def test_resampling_keeps_the_mean_on_average_and_takes_particles_as_they_are():
    generator = torch.Generator().manual_seed(1)
    particles = torch.randn(1, 1, 3, 2, generator=generator)
    log_weights = torch.tensor([[[0.7, 0.2, 0.1]]]).log()
    repeats = 20_000
    uniform = torch.rand(1, repeats, 3, generator=generator)
    found = _resampled(
        particles.expand(1, repeats, 3, 2), log_weights.expand(1, repeats, 3), uniform
    )
    known = particles[0, 0]
    distance = (found.particles[0, :50, :, None] - known).abs().sum(dim=-1)
    assert (distance.min(dim=-1).values == 0).all()
    # Unnormalised, w / q is unbiased; check that estimate against the definition.
    mixture = 0.5 * log_weights.exp() + 0.5 / 3
    chosen = distance.min(dim=-1).indices
    expected = (log_weights.exp() / mixture)[0, 0][chosen]
    torch.testing.assert_close(
        found.log_weights[0, :50].exp(), expected / expected.sum(-1, keepdim=True)
    )
    counts = torch.stack([(found.particles[0] == row).all(dim=-1).float().mean() for row in known])
    torch.testing.assert_close(counts, mixture[0, 0], atol=0.01, rtol=0.0)


def test_an_observation_that_fits_a_particle_raises_its_weight(weights):
    """The fit is made to like particles whose first number is positive."""
    weights = {name: torch.zeros_like(array) for name, array in weights.items()}
    weights["memory_fit"][:, 0, 0] = 1.0
    weights["memory_fit_out"][:, 0] = 3.0
    weights["memory_x_b"][..., :SIZE] = 20.0  # gate z open: particles stay
    particles = torch.zeros(LEARNERS, BATCH, PARTICLES, SIZE)
    particles[..., : PARTICLES // 2, 0] = 0.9
    start = MEMORY.initial_state(LEARNERS, BATCH)
    embedding = weights["memory_x_b"].expand(LEARNERS, BATCH, -1)
    state = MEMORY.recur(weights, embedding, ParticleBelief(particles, start.log_weights))
    share = state.log_weights.exp()[..., : PARTICLES // 2].sum(dim=-1)
    expected = math.exp(2.7) / (math.exp(2.7) + 1)
    torch.testing.assert_close(share, torch.full_like(share, expected), atol=1e-3, rtol=0.0)


def test_the_output_is_the_mean_and_the_moment_generating_function(policy, weights):
    state = MEMORY.recur(
        weights, an_embedding(policy, weights), MEMORY.initial_state(LEARNERS, BATCH), noise()
    )
    found = MEMORY.output(weights, state)[1, 2]
    share, particles = state.log_weights[1, 2].exp(), state.particles[1, 2]
    torch.testing.assert_close(found[:SIZE], share @ particles)
    places = weights["memory_moments"][1]
    torch.testing.assert_close(found[SIZE:], share @ (particles @ places).exp())


def test_the_order_of_particles_does_not_matter(policy, weights):
    embedding = an_embedding(policy, weights)
    state = MEMORY.recur(weights, embedding, MEMORY.initial_state(LEARNERS, BATCH), noise())
    order = torch.randperm(PARTICLES, generator=torch.Generator().manual_seed(2))
    shuffled = ParticleBelief(state.particles[:, :, order], state.log_weights[:, :, order])
    one, other = (
        MEMORY.output(weights, MEMORY.recur(weights, embedding, belief))
        for belief in (state, shuffled)
    )
    torch.testing.assert_close(one, other)


def test_an_ended_episode_is_forgotten_and_the_others_are_not(policy, weights):
    embedding = an_embedding(policy, weights)
    start = MEMORY.initial_state(LEARNERS, BATCH)
    state = MEMORY.recur(weights, embedding, start, noise())
    alive = torch.tensor([[True, False, True], [True, True, False]]).unsqueeze(-1)
    kept = state.keep(alive)
    for own, fresh, before in zip(kept, start, state, strict=True):
        assert torch.equal(own[0, 1], fresh[0, 1])
        assert torch.equal(own[1, 2], fresh[1, 2])
        assert torch.equal(own[0, 0], before[0, 0])


def test_what_was_played_is_what_is_differentiated(policy, weights):
    recording = MEMORY.record()
    state = MEMORY.initial_state(LEARNERS, BATCH)
    embeddings, played = [], []
    for step in range(STEPS):
        embeddings.append(an_embedding(policy, weights, step))
        state = recording.step(weights, embeddings[-1], state, noise(step))
        played.append(MEMORY.output(weights, state))
        if step == 2:
            alive = torch.tensor([[True, False, True]] * LEARNERS).unsqueeze(-1)
            state = recording.end_episodes(alive)
    again = recording.outputs(weights, torch.stack(embeddings))
    torch.testing.assert_close(again, torch.stack(played))


def test_the_loss_reaches_every_weight_through_time():
    config = A2CConfig(envs=2, rollout_steps=6)
    learners = A2CLearners(
        CarFlag1D(), equivariant=False, config=config, seeds=(0, 1), memory=MEMORY
    )
    before = learners.policy.weights(learners.policy.expand(learners.parameters.clone()))
    learners.update()
    after = learners.policy.weights(learners.policy.expand(learners.parameters))
    for name, old in before.items():
        assert not torch.equal(old, after[name]), name


def test_a_learner_does_not_depend_on_its_company():
    config = A2CConfig(envs=2, rollout_steps=8)
    pair, alone = (
        A2CLearners(CarFlag1D(), equivariant=False, config=config, seeds=seeds, memory=MEMORY)
        for seeds in ((0, 7), (7,))
    )
    for learners in (pair, alone):
        for _ in range(2):
            learners.update()
    torch.testing.assert_close(pair.parameters[1], alone.parameters[0], atol=1e-5, rtol=1e-4)
