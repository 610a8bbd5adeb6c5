# SPDX-License-Identifier: MIT
"""Specification of stored features: those of the images, rotated alike, and gone with them."""

from __future__ import annotations

import gc
import math

import numpy as np
import pytest
import torch
from small_networks import tiny_config

from equi_rl.agents.feature_cache import FeatureCache
from equi_rl.data.collate import Augmentation, collate
from equi_rl.data.episode import Episode
from equi_rl.nets import dense, symmetry
from equi_rl.nets.networks import Actor

TOLERANCE = 2e-2  # convolutions in bfloat16 where the processor has them


def an_episode(seed: int, steps: int, reach: float = 0.6) -> Episode:
    rng = np.random.default_rng(seed)
    actions = rng.uniform(-reach, reach, (steps, 5)).astype(np.float32)
    return Episode(
        depth=rng.integers(10_000, 20_000, (steps + 1, 16, 16), dtype=np.uint16),
        holding=rng.random(steps + 1) < 0.5,
        requested_action=actions,
        executed_action=actions / 2,
        reward=np.zeros(steps, dtype=np.float32),
        terminated=True,
        expert_action=actions,
        is_demonstration=seed == 0,
    )


@pytest.fixture
def actor() -> Actor:
    torch.manual_seed(0)
    return Actor(tiny_config())


def test_a_batch_of_stored_features_is_the_batch_of_images_encoded(actor):
    episodes = [an_episode(0, 3), an_episode(1, 6), an_episode(2, 1)]
    rng = np.random.default_rng(0)
    found = FeatureCache(actor, rotations=0).collate(episodes, rng)
    images = collate(episodes, 16, rng, Augmentation(rotate=False))
    expected, batch = images.episodes, found.episodes
    assert batch.depth_m is None
    assert batch.features is not None
    assert expected.depth_m is not None
    frames = dense.prepare_depth(actor.config, expected.depth_m, expected.holding)
    with torch.no_grad():
        encoded = dense.encode(actor.config, actor.dense().history.encoder, frames)
    torch.testing.assert_close(batch.features, encoded, atol=TOLERANCE, rtol=TOLERANCE)
    for name in ("requested_actions", "executed_actions", "rewards", "terminated", "holding"):
        assert torch.equal(getattr(batch, name), getattr(expected, name)), name
    assert torch.equal(found.expert_actions, images.expert_actions)
    assert batch.is_demonstration is not None
    assert int(batch.is_demonstration.sum()) == 3


def test_rotated_copies_have_rotated_actions_and_the_same_angles_in_a_resumed_run(actor):
    episode = an_episode(1, 4)
    copies = FeatureCache(actor, rotations=3).copies(episode)
    again = FeatureCache(actor, rotations=3).copies(an_episode(1, 4))
    assert [copy.angle_rad for copy in copies] == [copy.angle_rad for copy in again]
    assert len({copy.angle_rad for copy in copies}) == 4
    assert copies[0].angle_rad == 0.0
    for one, two in zip(copies, again, strict=True):
        assert torch.equal(one.features, two.features)
    # Every copy is met; its actions fit its angle.
    cache, rng = FeatureCache(actor, rotations=3), np.random.default_rng(0)
    met = set()
    for _ in range(60):
        batch = cache.collate([episode], rng).episodes
        x, y = batch.requested_actions[0, 1:3].tolist()
        start = math.atan2(episode.requested_action[0, 2], episode.requested_action[0, 1])
        met.add(round((math.atan2(y, x) - start) % (2 * math.pi), 3))
    assert met == {round(copy.angle_rad, 3) for copy in copies}


def test_features_of_an_equivariant_encoder_permute_under_a_quarter_turn(actor):
    # Given an episode that only quarter turns leave inside the square of actions
    episode = an_episode(1, 3)
    episode.requested_action[:, 1:3] = 1.0
    copies = FeatureCache(actor, rotations=6, fit_square=True).copies(episode)
    assert len({copy.angle_rad for copy in copies}) > 1
    group = actor.config.symmetry
    for copy in copies:
        turns = round(copy.angle_rad / (math.pi / 2))
        assert copy.angle_rad == pytest.approx(turns * math.pi / 2)
        expected = symmetry.transform_regular(
            group, symmetry.Element(turns, False), copies[0].features
        )
        torch.testing.assert_close(copy.features, expected, atol=TOLERANCE, rtol=TOLERANCE)


def test_features_go_with_their_episode(actor):
    cache = FeatureCache(actor, rotations=1)
    episode = an_episode(1, 3)
    cache.copies(episode)
    assert len(cache._copies) == 1
    del episode
    gc.collect()
    assert len(cache._copies) == 0
