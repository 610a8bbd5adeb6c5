# SPDX-License-Identifier: MIT
"""Domain randomisation: seeded, the same for both objects, and off unless asked for."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from equi_rl.envs import TASKS, make_env
from equi_rl.envs.randomisation import DomainRandomisation, EpisodeVariation, nearest_filled


@pytest.fixture(scope="module")
def env():
    made = make_env("block_picking", randomisation=DomainRandomisation())
    yield made
    made.close()


def test_it_is_seeded(env):
    first, _ = env.reset(seed=2)
    env.reset(seed=3)
    again, _ = env.reset(seed=2)
    assert_array_equal(first, again)


def test_both_objects_are_changed_alike(env):
    sizes = set()
    for seed in range(10):
        env.reset(seed=seed)
        first, second = env.state().scene.objects
        assert first.size_m == second.size_m
        assert first.mass_kg == second.mass_kg
        assert first.friction == second.friction
        assert first.position_m[2] == second.position_m[2] == first.size_m[2] / 2
        sizes.add(first.size_m)
    assert len(sizes) == 10


def test_it_leaves_the_scene_of_a_seed_in_its_place(env):
    plain = make_env("block_picking")
    plain.reset(seed=7)
    env.reset(seed=7)
    for a, b in zip(plain.state().scene.objects, env.state().scene.objects, strict=True):
        assert a.xy_m == b.xy_m
        assert a.movable == b.movable
    plain.close()


def test_swapping_mobility_changes_no_bit_of_the_first_observation(env):
    env.reset(seed=4)
    scene = env.state().scene
    # Sizes were drawn already; the same noise stream is drawn again for both.
    first, _ = env.reset(seed=4, options={"scene": scene})
    second, _ = env.reset(seed=4, options={"scene": scene.with_mobility_swapped()})
    assert_array_equal(first, second)


def test_noise_differs_from_frame_to_frame(env):
    first, _ = env.reset(seed=0)
    second, *_ = env.step([-1.0, 0.0, 0.0, 0.0, 0.0])
    assert 0.0 < np.abs(first[0] - second[0]).mean() < 0.01


def test_latency_leaves_the_last_millimetres_of_a_motion_to_the_next_step():
    late = DomainRandomisation(latency_s=(0.04, 0.04))
    made = make_env("block_picking", randomisation=late)
    made.reset(seed=0)
    made.step([-1.0, 0.0, 0.0, 1.0, 0.0])
    missing_m = 0.25 - made.state().tcp_position_m[2]
    # The last 40 ms of a stop from 4 m/s^2 cover half of a t^2 = 3.2 mm.
    assert missing_m == pytest.approx(0.0032, abs=0.0015)
    made.step([-1.0, 0.0, 0.0, 0.0, 0.0])
    assert made.state().tcp_position_m[2] == pytest.approx(0.25, abs=0.001)
    made.close()


@pytest.mark.parametrize("task", TASKS)
def test_every_task_runs_with_it(task):
    made = make_env(task, randomisation=DomainRandomisation())
    observation, _ = made.reset(seed=0)
    assert made.observation_space.contains(observation)
    observation, *_ = made.step(np.zeros(5))
    assert made.observation_space.contains(observation)
    made.close()


def test_widened_objects_grow_by_a_ring_of_one_pixel_at_most_and_lose_nothing():
    heights = np.zeros((20, 20), dtype=np.float32)
    heights[8:12, 8:12] = 0.05
    quiet = {"depth_noise_m": 0.0, "missing_fraction": 0.0, "missing_patches": 0.0}
    ring = np.zeros((20, 20), dtype=bool)
    ring[7:13, 8:12] = ring[8:12, 7:13] = True

    whole = DomainRandomisation(widened_share=(1.0, 1.0), **quiet)
    assert_array_equal(whole.disturbed(heights, np.random.default_rng(0)) > 0.0, ring)

    half = DomainRandomisation(widened_share=(0.5, 0.5), **quiet)
    seen = half.disturbed(heights, np.random.default_rng(0)) > 0.0
    assert seen[heights > 0.0].all()
    assert not seen[~ring].any()
    assert 0 < (seen & (heights == 0.0)).sum() < 16


def test_missing_pixels_take_the_nearest_measured_height():
    heights = np.arange(16, dtype=np.float32).reshape(4, 4)
    missing = np.zeros((4, 4), dtype=bool)
    missing[0, 0] = missing[0, 1] = True
    filled = nearest_filled(heights, missing)
    assert filled[0, 1] in (heights[0, 2], heights[1, 1])
    assert_array_equal(filled[~missing], heights[~missing])


def test_the_default_variation_changes_nothing(env):
    env.reset(seed=0)
    scene = env.state().scene
    assert EpisodeVariation().applied_to(scene) == scene


@pytest.mark.parametrize(
    "changes",
    [
        {"size_scale": (1.2, 0.8)},
        {"missing_fraction": 1.0},
        {"depth_noise_m": -1.0},
        {"widened_share": (0.2, 1.2)},
    ],
)
def test_a_range_that_means_nothing_is_refused_by_name(changes):
    with pytest.raises(ValueError, match=next(iter(changes))):
        DomainRandomisation(**changes)
