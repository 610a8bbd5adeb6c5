# SPDX-License-Identifier: MIT
"""The four tasks as gymnasium environments: rewards, endings, actions, bad input."""

from __future__ import annotations

import dataclasses
import math

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from numpy.testing import assert_allclose, assert_array_equal

import equi_rl.envs  # noqa: F401  (registers the tasks)
from equi_core.action import ActionError
from equi_core.contract import PolicyContract
from equi_core.step_limits import Reason
from equi_rl.envs import ENV_IDS, TASKS, make_env
from equi_rl.envs.base import LEFT_WORKSPACE
from equi_rl.envs.picking import cube_at
from equi_rl.sim.errors import SceneError
from equi_rl.sim.scene import Scene

STAY = np.array([-1.0, 0.0, 0.0, 0.0, 0.0])
UP, DOWN = (np.array([-1.0, 0.0, 0.0, z, 0.0]) for z in (1.0, -1.0))
CLOSED = np.array([2.0, 0.0, 0.0, 0.0, 0.0])  # added to an action, closes instead of opening


def cubes_scene(**changes) -> Scene:
    scene = Scene(
        objects=(cube_at((0.5, 0.0), 0.0, True), cube_at((0.6, 0.12), 0.0, False)),
        tcp_position_m=(0.5, 0.0, 0.075),
    )
    return dataclasses.replace(scene, **changes)


@pytest.mark.parametrize("task", TASKS)
def test_gymnasiums_checker_passes(task):
    env = gymnasium.make(ENV_IDS[task], render_mode="rgb_array")
    check_env(env.unwrapped, skip_render_check=False)
    env.close()


@pytest.mark.parametrize("task", TASKS)
def test_a_seed_gives_the_same_episode_bit_for_bit(envs, task):
    env = envs[task]
    actions = np.random.default_rng(3).uniform(-1, 1, (4, 5))

    def play() -> list[np.ndarray]:
        return [env.reset(seed=11)[0], *(env.step(action)[0] for action in actions)]

    first = play()
    env.reset(seed=99)
    env.step(actions[0])
    for before, after in zip(first, play(), strict=True):
        assert_array_equal(before, after)


def test_different_seeds_give_different_scenes(envs):
    env = envs["block_picking"]
    assert not np.array_equal(env.reset(seed=0)[0], env.reset(seed=1)[0])


def test_the_scene_of_a_seed_owes_nothing_to_a_generator_with_the_same_seed(envs):
    env = envs["block_picking"]
    env.reset(seed=5)
    assert env.np_random.random() != np.random.default_rng(5).random()


@pytest.mark.parametrize(
    "vector", [gymnasium.vector.SyncVectorEnv, gymnasium.vector.AsyncVectorEnv]
)
def test_vector_environments_step_together(vector):
    made = vector([lambda: make_env("block_picking"), lambda: make_env("block_picking")])
    observations, _ = made.reset(seed=[4, 4])
    assert_array_equal(observations[0], observations[1])
    observations, rewards, *_ = made.step(np.stack([DOWN, UP]).astype(np.float32))
    assert observations.shape == (2, 2, 84, 84)
    assert rewards.tolist() == [0.0, 0.0]
    assert not np.array_equal(observations[0], observations[1])
    made.close()


class TestActions:
    @pytest.mark.parametrize(
        "action", [np.full(5, np.nan), [0, 0, 0, np.inf, 0], np.zeros(4), np.zeros((1, 5))]
    )
    def test_a_meaningless_action_is_refused_and_the_world_stays_usable(self, envs, action):
        env = envs["block_picking"]
        env.reset(seed=0)
        before = env.state()
        with pytest.raises(ActionError):
            env.step(action)
        assert env.state() == before
        observation, *_ = env.step(STAY)
        assert env.observation_space.contains(observation)

    def test_an_executed_action_moves_the_gripper_by_its_metric_step(self, envs):
        env = envs["block_picking"]
        env.reset(seed=0)
        before = env.state().tcp_position_m
        _, _, _, _, info = env.step([-1.0, 0.5, -1.0, -0.5, 1.0])
        assert_allclose(
            np.subtract(env.state().tcp_position_m, before), (0.025, -0.05, -0.025), atol=2e-4
        )
        assert_allclose(info["executed_action"], [-1.0, 0.5, -1.0, -0.5, 1.0], atol=1e-6)
        assert info["clip_reasons"] == ()

    def test_a_clipped_action_is_reported_as_executed_with_its_reason(self, envs):
        env = envs["block_picking"]
        env.reset(seed=0)
        _, _, _, _, info = env.step([-1.0, 0.0, 0.0, 3.0, 0.0])
        assert info["executed_action"][3] == pytest.approx(1.0, abs=1e-6)  # 0.20 -> 0.25 m
        assert Reason.STEP_CLIPPED.value in info["clip_reasons"]
        _, _, _, _, info = env.step(UP)
        assert info["executed_action"][3] == pytest.approx(0.0, abs=1e-6)
        assert info["clip_reasons"] == (Reason.WORKSPACE_CLIPPED.value,)

    def test_the_gripper_turns_at_most_half_a_turn_from_its_start(self, envs):
        env = envs["block_picking"]
        env.reset(seed=0)
        turn = np.array([-1.0, 0.0, 0.0, 0.0, 1.0])
        executed = [env.step(turn)[4] for _ in range(9)]
        total = sum(info["executed_action"][4] for info in executed) * math.pi / 8
        assert total == pytest.approx(math.pi, abs=1e-5)
        assert executed[-1]["clip_reasons"] == (Reason.YAW_FROM_START_CLIPPED.value,)
        _, _, _, _, info = env.step(-turn)
        assert info["clip_reasons"] == ()

    def test_stepping_before_a_reset_is_refused(self):
        env = make_env("block_picking")
        with pytest.raises(gymnasium.error.ResetNeeded):
            env.step(STAY)
        env.close()

    def test_a_start_that_is_no_scene_is_refused(self, envs):
        with pytest.raises(SceneError, match="dict"):
            envs["block_picking"].reset(options={"scene": {}})


class TestEndings:
    @pytest.mark.parametrize("task", TASKS)
    def test_running_out_of_time_truncates_and_does_not_terminate(self, task):
        env = make_env(task, contract=PolicyContract(task=task, max_steps=3))
        env.reset(seed=1)
        endings = [env.step(STAY)[2:4] for _ in range(3)]
        env.close()
        assert endings == [(False, False), (False, False), (False, True)]

    def test_success_at_the_last_step_terminates(self):
        env = make_env("block_picking", contract=PolicyContract(task="block_picking", max_steps=3))
        env.reset(options={"scene": cubes_scene()})
        env.step(DOWN + CLOSED)
        env.step(UP + CLOSED)
        _, reward, terminated, truncated, info = env.step(UP + CLOSED)
        env.close()
        assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)

    def test_an_object_pushed_out_of_the_workspace_ends_the_episode_as_a_failure(self, envs):
        env = envs["block_picking"]
        scene = cubes_scene(
            objects=(cube_at((0.67, 0.0), 0.0, True), cube_at((0.4, 0.1), 0.0, False)),
            tcp_position_m=(0.62, 0.0, 0.03),
            yaw_rad=math.pi / 2,
            opening=0.0,
        )
        env.reset(options={"scene": scene})
        _, reward, terminated, truncated, info = env.step([1.0, 1.0, 0.0, 0.0, 0.0])
        assert (reward, terminated, truncated) == (0.0, True, False)
        assert info["failure"] == LEFT_WORKSPACE
        assert not info["success"]


class TestPicking:
    def test_lifting_the_movable_cube_is_rewarded(self, envs):
        env = envs["block_picking"]
        env.reset(options={"scene": cubes_scene()})
        rewards = [env.step(action + CLOSED)[1] for action in (DOWN, UP, UP)]
        assert rewards == [0.0, 0.0, 1.0]

    def test_the_immovable_cube_cannot_be_lifted(self, envs):
        env = envs["block_picking"]
        env.reset(options={"scene": cubes_scene().with_mobility_swapped()})
        results = [env.step(action + CLOSED) for action in (DOWN, UP, UP, UP)]
        assert [result[1] for result in results] == [0.0] * 4
        assert results[0][4]["holding"]
        assert not results[-1][4]["holding"]


class TestPushing:
    def start(self, env, goal):
        scene = cubes_scene(
            tcp_position_m=(0.44, 0.0, 0.03), yaw_rad=math.pi / 2, opening=0.5, goal_xy_m=goal
        )
        env.reset(options={"scene": scene})

    def test_pushing_the_movable_cube_onto_the_pad_is_rewarded(self, envs):
        env = envs["block_pushing"]
        self.start(env, goal=(0.6, 0.0))
        push = np.array([0.0, 1.0, 0.0, 0.0, 0.0])
        results = [env.step(push), env.step(push)]
        assert [result[1] for result in results] == [0.0, 1.0]
        assert results[-1][2]

    def test_lifting_the_movable_cube_costs_a_tenth_per_step(self, envs):
        env = envs["block_pushing"]
        scene = cubes_scene(goal_xy_m=(0.4, -0.12))
        env.reset(options={"scene": scene})
        rewards = [env.step(action + CLOSED)[1] for action in (DOWN, UP, UP)]
        assert rewards == pytest.approx([0.0, -0.1, -0.1])

    def test_the_pad_is_drawn_deeper_than_the_table(self, envs):
        env = envs["block_pushing"]
        observation, _ = env.reset(options={"scene": cubes_scene(goal_xy_m=(0.4, -0.12))})
        assert observation[0].max() == pytest.approx(0.075 + 0.06 + 0.02, abs=1e-4)


@pytest.mark.parametrize("task", TASKS)
def test_scenes_lie_in_the_workspace_and_differ_in_mobility_alone(envs, task):
    env, rng = envs[task], np.random.default_rng(0)
    box = env.contract.workspace
    for _ in range(100):
        scene = env.sample_scene(rng)
        first, second = scene.objects
        assert first.movable != second.movable
        assert (first.size_m, first.mass_kg, first.friction, first.position_m[2]) == (
            second.size_m,
            second.mass_kg,
            second.friction,
            second.position_m[2],
        )
        assert scene.tcp_position_m == pytest.approx((0.5, 0.0, 0.2))
        if task != "drawer_opening":
            for item in scene.objects:
                assert box.x_min_m < item.position_m[0] < box.x_max_m
                assert box.y_min_m < item.position_m[1] < box.y_max_m


def test_pulled_blocks_never_touch_at_the_start(envs):
    env = envs["block_pulling"]
    for seed in range(20):
        env.reset(seed=seed)
        _, _, terminated, _, _ = env.step(STAY)
        assert not terminated
