# SPDX-License-Identifier: MIT
"""Law: nothing that can be observed before an interaction tells movable from immovable.

Exchanging which object is movable changes no bit of the first observation, nor of any later one as
long as nothing is touched.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from equi_rl.envs import TASKS
from equi_rl.sim.cameras import render, side_view_camera


@pytest.mark.parametrize("task", TASKS)
def test_exchanging_mobility_changes_no_bit_of_the_first_observation(envs, task):
    env = envs[task]
    for seed in range(200):
        first, _ = env.reset(seed=seed)
        swapped, _ = env.reset(options={"scene": env.state().scene.with_mobility_swapped()})
        assert_array_equal(first, swapped)


@pytest.mark.parametrize("task", TASKS)
def test_both_objects_stand_at_exactly_the_same_height(envs, task):
    env = envs[task]
    for seed in range(50):
        env.reset(seed=seed)
        heights = {item.position_m[2] for item in env.state().scene.objects}
        assert len(heights) == 1
        for item in env.state().scene.objects:
            tops = env.world.heights(env.contract.image, item.xy_m)
            # Over its own middle stands the object's top surface, to the last bit.
            assert tops[41:43, 41:43].max() == np.float32(item.size_m[2])


@pytest.mark.parametrize("task", TASKS)
def test_waiting_and_passing_overhead_reveals_nothing(envs, task):
    env = envs[task]
    env.reset(seed=5)
    scene = env.state().scene
    x, y = scene.objects[0].xy_m
    glances = [
        np.array([-1.0, math.copysign(min(1.0, abs(x - 0.5) / 0.1), x - 0.5), 0.0, 0.0, 0.0]),
        np.array([-1.0, 0.0, math.copysign(min(1.0, abs(y) / 0.1), y), -1.0, 0.0]),
        np.array([1.0, 0.0, 0.0, -1.0, 1.0]),
        np.array([-1.0, 0.0, 0.0, 0.0, -1.0]),
    ]

    def watch(start) -> list[np.ndarray]:
        first, _ = env.reset(options={"scene": start})
        return [first, *(env.step(action)[0] for action in glances)]

    for one, other in zip(watch(scene), watch(scene.with_mobility_swapped()), strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize("task", TASKS)
def test_a_side_camera_cannot_tell_either(envs, task):
    env = envs[task]
    env.reset(seed=9)
    camera = side_view_camera((160, 120))
    one = render(env.world, camera)
    env.reset(options={"scene": env.state().scene.with_mobility_swapped()})
    other = render(env.world, camera)
    assert_array_equal(one.colour, other.colour)
    assert_array_equal(one.depth_m, other.depth_m)
