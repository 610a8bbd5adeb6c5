# SPDX-License-Identifier: MIT
"""Specification of the recurrent grid policy: symmetric in time, its learners independent."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from equi_rl.carflag.encoder_cache import EncoderCache
from equi_rl.carflag.policy import GridPolicy
from equi_rl.carflag.worlds import CarFlag1D, CarFlag2D
from equi_rl.nets.symmetry import transform_observation, transform_regular

WORLDS = [CarFlag1D(), CarFlag2D(), CarFlag2D(11)]


def random_weights(policy, learners=2, scale=0.1):
    generator = torch.Generator().manual_seed(0)
    free = scale * torch.randn(learners, policy.num_parameters, generator=generator)
    return policy.weights(policy.expand(free))


def run(policy, weights, observations):
    """Logits and values of a whole history (T, L, B, ...)."""
    state = policy.initial_state(*observations.shape[1:3])
    logits, values = [], []
    for observation in observations:
        logit, value, state = policy.step(weights, observation, state)
        logits.append(logit)
        values.append(value)
    return torch.stack(logits), torch.stack(values)


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_actor_turns_and_critic_stays_over_a_whole_episode(world):
    policy = GridPolicy(world, equivariant=True)
    weights = random_weights(policy)
    history = torch.randn(50, 2, 3, *world.observation_shape)
    logits, values = run(policy, weights, history)
    for g in policy.group:
        rotated = torch.as_tensor(transform_observation(policy.group, g, history)).contiguous()
        turned_logits, turned_values = run(policy, weights, rotated)
        expected = transform_regular(policy.group, g, logits)
        torch.testing.assert_close(turned_logits, expected, atol=2e-5, rtol=1e-4)
        torch.testing.assert_close(turned_values, values, atol=2e-5, rtol=1e-4)


def test_the_plain_network_has_no_such_symmetry():
    policy = GridPolicy(CarFlag1D(), equivariant=False)
    history = torch.randn(10, 1, 3, 2)
    weights = random_weights(policy, learners=1)
    _, values = run(policy, weights, history)
    _, flipped = run(policy, weights, -history)
    assert (values - flipped).abs().max() > 1e-2


def test_the_free_numbers_of_the_parts_add_up():
    # Plain, 9 x 9: 3 x 3 filters 2-8-16-32-64, an LSTM of 64 channels, four actions, one value.
    policy = GridPolicy(CarFlag2D(), equivariant=False)
    encoder = 9 * (2 * 8 + 8 * 16 + 16 * 32 + 32 * 64) + 8 + 16 + 32 + 64
    counts = {"encoder": encoder, "lstm": 4 * 64 * (64 + 64 + 1), "actor": 4 * 65, "critic": 65}
    assert {part: policy.count_parameters(part) for part in counts} == counts
    assert sum(counts.values()) == policy.num_parameters


@pytest.mark.parametrize("world", [CarFlag1D(), CarFlag2D()], ids=str)
def test_both_networks_are_equally_wide_and_the_equivariant_one_has_fewer_free_numbers(world):
    tied, plain = (GridPolicy(world, equivariant=e) for e in (True, False))
    dense = [p.expand(torch.zeros(1, p.num_parameters)).shape for p in (tied, plain)]
    assert dense[0] == dense[1]
    ratio = plain.num_parameters / tied.num_parameters
    assert 0.9 * tied.group.order < ratio <= tied.group.order


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_a_learner_computes_the_same_alone_and_beside_others(world):
    policy = GridPolicy(world, equivariant=True)
    free = policy.initial_parameters([np.random.default_rng(i) for i in range(3)])
    history = torch.randn(5, 3, 4, *world.observation_shape)
    together, _ = run(policy, policy.weights(policy.expand(free)), history)
    alone, _ = run(policy, policy.weights(policy.expand(free[1:2])), history[:, 1:2])
    torch.testing.assert_close(together[:, 1:2], alone, atol=1e-6, rtol=1e-5)


def some_images(world, rng, batch=6):
    """(L, B, 2, size, size) of images that the world can show, with many repetitions."""
    images = np.zeros((2, batch, *world.observation_shape), np.float32)
    inside = np.flatnonzero(world.info_mask)
    for place in np.ndindex(2, batch):
        cell, goal = rng.choice([*inside[:2], 0]), rng.choice(world.goal_cells[:2])
        images[place][0].flat[cell] = 1
        images[place][1].flat[goal] = cell in inside  # hidden from cell 0
    return images


@pytest.mark.parametrize("world", [CarFlag2D(), CarFlag2D(11)], ids=str)
@pytest.mark.parametrize("equivariant", [True, False])
def test_cached_images_give_the_same_embeddings_and_the_same_gradient(world, equivariant):
    policy = GridPolicy(world, equivariant=equivariant)
    free = policy.initial_parameters([np.random.default_rng(i) for i in range(2)])
    dense = policy.expand(free).requires_grad_()
    cache = EncoderCache(policy, policy.weights(dense), learners=2)
    rng = np.random.default_rng(0)
    lookups = [some_images(world, rng) for _ in range(4)]
    cached = torch.cat([cache.lookup(images) for images in lookups], dim=1)

    everything = torch.from_numpy(np.concatenate(lookups, axis=1))
    direct = policy.embed(policy.weights(dense), everything)
    torch.testing.assert_close(cached, direct.detach(), atol=1e-6, rtol=1e-5)

    cotangent = torch.randn_like(direct)
    (expected,) = torch.autograd.grad(direct, dense, cotangent)
    again = cache.embed_seen(policy.weights(dense), len(lookups))
    torch.testing.assert_close(again, direct, atol=1e-6, rtol=1e-5)
    (found,) = torch.autograd.grad(again, dense, cotangent)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("world", [CarFlag2D(5), CarFlag2D(9, -2)], ids=str)
def test_the_cache_knows_every_image_that_the_world_can_show(world):
    policy = GridPolicy(world, equivariant=False)
    weights = random_weights(policy, learners=1)
    cache = EncoderCache(policy, weights, learners=1)
    shown = [
        world.observe(divmod(cell, world.size), divmod(goal, world.size))
        for cell in range(world.size**2)
        for goal in world.goal_cells
    ]
    images = np.stack(shown)[None]
    embeddings = cache.lookup(images)
    direct = policy.embed(weights, torch.from_numpy(images))
    torch.testing.assert_close(embeddings, direct, atol=1e-5, rtol=1e-4)


def test_an_image_that_the_world_cannot_show_is_refused():
    policy = GridPolicy(CarFlag2D(), equivariant=False)
    cache = EncoderCache(policy, random_weights(policy, learners=1), learners=1)
    both_in_a_corner = np.zeros((1, 1, 2, 9, 9), np.float32)
    both_in_a_corner[..., 0, 0] = 1
    with pytest.raises(ValueError, match="cannot show"):
        cache.lookup(both_in_a_corner)
