# SPDX-License-Identifier: MIT
"""Law: one observation, and the executed action.

Heights and a point cloud of the same heights give the same image; the action that an environment
reports is the one that it executed.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from equi_core.observation.image import compose_observation, heights_from_points, pixel_centres_m
from equi_rl.envs import TASKS


@pytest.mark.parametrize("task", TASKS)
def test_a_point_cloud_sampled_from_the_heights_gives_the_same_observation(envs, task):
    env = envs[task]
    observation, _ = env.reset(seed=2)
    state, image = env.state(), env.contract.image
    x, y, _ = state.tcp_position_m
    heights = env.world.heights(image, (x, y))
    offsets = pixel_centres_m(image)
    grid_x, grid_y = np.meshgrid(offsets + x, offsets + y, indexing="ij")
    cloud = np.stack([grid_x, grid_y, heights], axis=-1).reshape(-1, 3)
    shuffled = np.random.default_rng(0).permutation(cloud)
    from_cloud = compose_observation(
        heights_from_points(shuffled, state.tcp_position_m, image),
        state.tcp_position_m,
        state.yaw_rad,
        state.scene.opening,
        state.holding,
        image,
        goal_xy_m=state.scene.goal_xy_m,
    )
    assert_array_equal(from_cloud, observation)


@pytest.mark.parametrize("task", TASKS)
def test_the_reported_action_is_the_one_that_was_executed(envs, task):
    """Asking for the reported action from the same state does the same, unclipped."""
    env = envs[task]
    wished = np.array([-1.0, 2.0, -0.3, 1.7, 0.4])
    env.reset(seed=1)
    start = env.state().tcp_position_m
    observation, _, _, _, info = env.step(wished)
    moved = np.subtract(env.state().tcp_position_m, start)
    assert_allclose(info["executed_action"][1:4] * 0.05, moved, atol=3e-4)
    env.reset(seed=1)
    again, _, _, _, second = env.step(info["executed_action"])
    assert second["clip_reasons"] == ()
    assert_allclose(second["executed_action"], info["executed_action"], atol=1e-6)
    assert np.mean(np.abs(observation - again) > 1e-6) < 0.01


@pytest.mark.parametrize("task", TASKS)
def test_the_drawn_fingers_cover_the_real_fingers(envs, task):
    """Where the ray caster puts the fingers from above, the observation has depth zero."""
    env = envs[task]
    for opening in (-1.0, 0.0, 1.0):
        env.reset(seed=6)
        observation, *_ = env.step([opening, 0.0, 0.0, 0.0, 0.3])
        shapes = env.world.shapes(with_robot=True)
        fingers = np.isclose(2 * shapes.size_m[:, 0], 0.022) & np.isclose(
            2 * shapes.size_m[:, 1], 0.022
        )
        centres = shapes.position_m[fingers][:, :2] - env.state().tcp_position_m[:2]
        pixels = np.round(centres / env.contract.image.pixel_m + 41.5).astype(int)
        assert len(pixels) == 2
        assert_array_equal(observation[0][pixels[:, 0], pixels[:, 1]], 0.0)
