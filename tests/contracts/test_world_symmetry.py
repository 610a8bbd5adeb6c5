# SPDX-License-Identifier: MIT
"""Law: the world is symmetric. Turning the scene turns observation, transition, reward and start.

The first observation turns exactly. What follows turns within the tolerances below, which are what
the arm's own asymmetry and the chaos of contacts leave over a whole expert episode.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import ks_2samp

from equi_rl.envs import TASKS
from equi_rl.experts import make_expert

CENTRE = (0.5, 0.0)
TCP_TOLERANCE_M = 0.006
OBJECT_TOLERANCE_M = 0.006
PIXEL_TOLERANCE_M = 0.006
PIXEL_SHARE = 0.05
"""Most pixels of a frame that may differ by more than the tolerance: those at edges."""


def turned_action(action: np.ndarray, quarter_turns: int) -> np.ndarray:
    c, s = ((1, 0), (0, 1), (-1, 0), (0, -1))[quarter_turns]
    w, x, y, z, r = action
    return np.array([w, c * x - s * y, s * x + c * y, z, r])


def play(env, scene, actions=None, expert=None, first=0):
    """Observations, states, results and actions of an episode from a scene."""
    observation, _ = env.reset(options={"scene": scene})
    observations, states, results = [observation], [env.state()], []
    played: list[np.ndarray] = []
    memory = expert.start_with(env.state(), first) if expert else None
    while actions is None or len(played) < len(actions):
        if expert is not None:
            action, memory = expert.act(env.state(), memory)
        else:
            action = actions[len(played)]
        observation, reward, terminated, truncated, info = env.step(action)
        observations.append(observation)
        states.append(env.state())
        results.append((round(reward, 6), terminated, truncated, info["success"]))
        played.append(action)
        if terminated or truncated:
            break
    return observations, states, results, played


@pytest.mark.parametrize("task", TASKS)
def test_the_first_observation_turns_exactly_with_the_scene(envs, task):
    env = envs[task]
    for seed in range(20):
        upright, _ = env.reset(seed=seed)
        scene = env.state().scene
        for k in (1, 2, 3):
            rotated, _ = env.reset(options={"scene": scene.rotated(k * math.pi / 2, CENTRE)})
            assert_array_equal(rotated, np.rot90(upright, k, axes=(-2, -1)))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("first", [0, 1])
def test_a_turned_episode_goes_the_same_way(envs, task, first):
    env = envs[task]
    env.reset(seed=first)
    scene = env.state().scene
    upright = play(env, scene, expert=make_expert(task), first=first)
    for k in (1, 2, 3):
        angle = k * math.pi / 2
        actions = [turned_action(action, k) for action in upright[3]]
        rotated = play(env, scene.rotated(angle, CENTRE), actions)
        assert rotated[2] == upright[2]  # rewards and endings
        for (before, state), (after, other) in zip(
            zip(*upright[:2], strict=True), zip(*rotated[:2], strict=True), strict=True
        ):
            back = other.scene.rotated(-angle, CENTRE)
            assert state.holding == other.holding
            assert math.dist(state.tcp_position_m, back.tcp_position_m) < TCP_TOLERANCE_M
            for item, twin in zip(state.scene.objects, back.objects, strict=True):
                assert math.dist(item.position_m, twin.position_m) < OBJECT_TOLERANCE_M
                assert abs(item.extension_m - twin.extension_m) < OBJECT_TOLERANCE_M
            off = np.abs(np.rot90(before, k, axes=(-2, -1)) - after) > PIXEL_TOLERANCE_M
            assert off[0].mean() < PIXEL_SHARE


@pytest.mark.parametrize("task", TASKS)
def test_the_start_is_drawn_alike_from_every_side(envs, task):
    """Means, spreads and correlations of 4,000 starts are those of the rotated starts."""
    env, rng = envs[task], np.random.default_rng(0)
    scenes = [env.sample_scene(rng) for _ in range(4000)]
    half = len(scenes) // 2

    def features(scene) -> list[float]:
        movable, fixed = sorted(scene.objects, key=lambda item: not item.movable)
        own = scene.yaw_rad * 2  # a gripper is the same after half a turn
        goal = scene.goal_xy_m or (0.0, 0.0)
        return [
            movable.position_m[0] - 0.5,
            movable.position_m[1],
            fixed.position_m[0] - 0.5,
            fixed.position_m[1],
            math.cos(own),
            math.sin(own),
            goal[0],
            goal[1],
        ]

    plain = np.array([features(scene) for scene in scenes[:half]])
    rotated = np.array([features(scene.rotated(math.pi / 2, CENTRE)) for scene in scenes[half:]])
    for column in range(plain.shape[1]):
        assert ks_2samp(plain[:, column], rotated[:, column]).pvalue > 1e-4


def test_the_pair_of_drawers_is_drawn_alike_from_left_and_right(envs):
    env, rng = envs["drawer_opening"], np.random.default_rng(1)
    found: list[float] = []
    for _ in range(4000):
        scene = env.sample_scene(rng)
        heading = np.array(scene.objects[0].heading)
        middle = np.mean([item.xy_m for item in scene.objects], axis=0) - CENTRE
        found.append(float(middle @ np.array([-heading[1], heading[0]])))
    aside = np.array(found)
    assert ks_2samp(aside[:2000], -aside[2000:]).pvalue > 1e-4
