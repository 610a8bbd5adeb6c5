# SPDX-License-Identifier: MIT
"""Specification of the CarFlag worlds: definition, symmetry, both implementations alike."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import equi_rl.envs  # noqa: F401  registers the environments
from equi_rl.carflag.env import CarFlag1DEnv, CarFlag2DEnv
from equi_rl.carflag.render import save_video
from equi_rl.carflag.vector import CarFlag1DVector, CarFlag2DVector
from equi_rl.carflag.worlds import STEP_LIMIT, CarFlag1D, CarFlag2D, CarFlagError

RIGHT, UP, LEFT, DOWN = range(4)
WORLDS_1D = [CarFlag1D(), CarFlag1D(40), CarFlag1D(40, -10), CarFlag1D(50, 5)]
WORLDS_2D = [CarFlag2D(), CarFlag2D(11), CarFlag2D(9, -2), CarFlag2D(9, 1)]


def vector_of(world, envs=64, seed=0):
    kind = CarFlag1DVector if isinstance(world, CarFlag1D) else CarFlag2DVector
    return kind(world, envs, [np.random.default_rng(seed)])


# --- gymnasium interface --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["equi/CarFlag1D-v0", "equi/CarFlag2D-v0"])
@pytest.mark.parametrize("offset", [0, 2])
def test_gymnasiums_own_checker_accepts_the_environments(name, offset):
    env = gym.make(name, offset=offset, render_mode="rgb_array")
    check_env(env.unwrapped)


@pytest.mark.parametrize("kind", [CarFlag1DEnv, CarFlag2DEnv])
def test_the_same_seed_gives_the_same_start_and_other_seeds_give_others(kind):
    one, two = kind(), kind()
    assert np.array_equal(one.reset(seed=3)[0], two.reset(seed=3)[0])
    starts = {one.reset(seed=seed)[0].tobytes() for seed in range(20)}
    assert len(starts) > 5


@pytest.mark.parametrize("kind", [CarFlag1DEnv, CarFlag2DEnv])
def test_an_unknown_action_is_refused_and_the_episode_goes_on(kind):
    env = kind()
    env.reset(seed=0)
    with pytest.raises(CarFlagError, match="action = 7"):
        env.step(7)
    assert env.steps == 0
    env.step(0)


# --- 1-D definition -------------------------------------------------------------------------------


def test_walking_to_the_goal_flag_earns_one_and_ends_the_episode():
    env = CarFlag1DEnv()
    env.reset(options={"cell": 22, "goal_side": 1})
    rewards = [env.step(1)[1:3] for _ in range(3)]
    assert rewards == [(-0.01, False), (-0.01, False), (1.0, True)]


def test_the_other_flag_costs_one():
    env = CarFlag1DEnv()
    env.reset(options={"cell": 22, "goal_side": -1})
    for _ in range(2):
        env.step(1)
    _, reward, terminated, truncated, info = env.step(1)
    assert (reward, terminated, truncated, info["success"]) == (-1.0, True, False, False)


def test_the_side_of_the_goal_shows_on_the_information_cell_only():
    env = CarFlag1DEnv(size=40, offset=-5)
    env.reset(options={"cell": -7, "goal_side": -1})
    seen = [float(env.step(1)[0][1]) for _ in range(4)]  # cells -6, -5, -4, -3
    assert seen == [0.0, -1.0, 0.0, 0.0]


def test_dithering_is_cut_off_after_fifty_steps_and_is_not_a_terminal():
    env = CarFlag1DEnv()
    env.reset(options={"cell": 5, "goal_side": 1})
    ends = [env.step(t % 2)[2:4] for t in range(STEP_LIMIT)]
    assert ends[:-1] == [(False, False)] * (STEP_LIMIT - 1)
    assert ends[-1] == (False, True)


def test_the_goal_reached_in_the_very_last_step_is_a_success_not_a_time_out():
    env = CarFlag1DEnv()
    env.reset(options={"cell": 21, "goal_side": 1})
    for t in range(46):
        env.step(t % 2)
    for _ in range(3):
        env.step(1)
    _, _, terminated, truncated, info = env.step(1)
    assert env.steps == STEP_LIMIT
    assert (terminated, truncated, info["success"]) == (True, False, True)


@pytest.mark.parametrize("world", WORLDS_1D, ids=str)
def test_starts_cover_all_allowed_cells_but_never_the_information_cell(world):
    vector = vector_of(world, envs=4000)
    vector.reset()
    limit = world.half - 3
    expected = set(range(-limit, limit + 1)) - {world.offset}
    assert set(vector.cell.ravel().tolist()) == expected
    assert abs(vector.goal_side.mean()) < 0.1  # fair coin: three standard deviations are 0.05


# --- 2-D definition -------------------------------------------------------------------------------


def test_moves_go_where_their_names_say_and_the_edge_holds():
    env = CarFlag2DEnv()
    for action, expected in ((RIGHT, (7, 2)), (UP, (6, 1)), (LEFT, (7, 0)), (DOWN, (8, 1))):
        env.reset(options={"cell": (7, 1), "goal": (0, 8)})
        env.step(action)
        assert env.cell == expected
    env.reset(options={"cell": (8, 0), "goal": (0, 8)})
    env.step(DOWN)
    env.step(LEFT)
    assert env.cell == (8, 0)


def test_the_goal_shows_inside_the_three_by_three_region_only():
    env = CarFlag2DEnv(offset=1)
    env.reset(options={"cell": (3, 5), "goal": (0, 0)})
    outside = env.step(RIGHT)[0]  # (3, 6), row above the region
    inside = env.step(DOWN)[0]  # (4, 6)
    assert outside[1].sum() == 0.0
    assert np.argwhere(inside[1]).tolist() == [[0, 0]]
    assert np.argwhere(inside[0]).tolist() == [[4, 6]]


@pytest.mark.parametrize("world", WORLDS_2D, ids=str)
def test_goals_and_starts_lie_outside_the_region_and_two_steps_apart(world):
    vector = vector_of(world, envs=3000)
    vector.reset()
    info = world.info_mask.ravel()
    cell, goal = vector.cell.ravel(), vector.goal.ravel()
    assert not info[cell].any()
    assert not info[goal].any()
    distance = sum(
        abs(a - b) for a, b in zip(divmod(cell, world.size), divmod(goal, world.size), strict=True)
    )
    assert distance.min() == 2
    assert len(set(goal.tolist())) == world.size**2 - 9
    assert len(set(cell.tolist())) == world.size**2 - 9


def test_a_new_episode_does_not_start_where_the_last_one_ended():
    # Given many worlds about to finish at their goals
    vector = vector_of(CarFlag2D(), envs=2000)
    vector.reset()
    vector.steps[...] = STEP_LIMIT - 1
    before = vector.cell.copy()
    # When they time out and restart
    step = vector.step(np.full(vector.shape, RIGHT))
    # Then the new cell is independent of the old: about one in 72 stays by chance
    assert (step.terminated | step.truncated).all()
    assert (np.abs(vector.cell - before) <= 1).mean() < 0.1


# --- impossible worlds ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "size", "offset", "message"),
    [
        (CarFlag1D, 50, 25, r"offset = 25 .* use -24\.\.24"),
        (CarFlag1D, 40, -20, r"offset = -20 .* use -19\.\.19"),
        (CarFlag1D, 41, 0, "size = 41"),
        (CarFlag2D, 9, 4, r"offset = 4 .* use -3\.\.3"),
        (CarFlag2D, 9, -4, "off the grid"),
        (CarFlag2D, 8, 0, "odd number"),
    ],
)
def test_an_impossible_world_is_refused_with_the_possible_values(kind, size, offset, message):
    with pytest.raises(CarFlagError, match=message):
        kind(size, offset)


@pytest.mark.parametrize(
    ("env", "options"),
    [
        (CarFlag1DEnv(), {"cell": 0, "goal_side": 1}),
        (CarFlag1DEnv(), {"cell": 25, "goal_side": 1}),
        (CarFlag2DEnv(), {"cell": (0, 0), "goal": (4, 4)}),
        (CarFlag2DEnv(), {"cell": (0, 0), "goal": (0, 1)}),
        (CarFlag2DEnv(), {"cell": (9, 0), "goal": (0, 1)}),
    ],
)
def test_an_illegal_start_is_refused(env, options):
    with pytest.raises(CarFlagError):
        env.reset(options=options)


# --- the two implementations agree ----------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(
    world=st.sampled_from([*WORLDS_1D, *WORLDS_2D]),
    seed=st.integers(0, 2**16),
    persistence=st.integers(1, 30),
)
def test_vectorised_and_gymnasium_worlds_agree_step_by_step(world, seed, persistence):
    # Given one gymnasium environment per vectorised world, started alike
    vector = vector_of(world, envs=4, seed=seed)
    observation = vector.reset()
    kind = CarFlag1DEnv if isinstance(world, CarFlag1D) else CarFlag2DEnv
    singles = [kind(world.size, world.offset) for _ in range(4)]
    _start_alike(singles, vector, range(4), observation)
    rng = np.random.default_rng(seed)
    # When both take the same actions, which persist so that episodes really end at flags and goals
    action = np.zeros(vector.shape, dtype=np.int64)
    for t in range(120):
        if t % persistence == 0:
            action = rng.integers(world.NUM_ACTIONS, size=vector.shape)
        step = vector.step(action)
        # Then every result is the same
        for i, env in enumerate(singles):
            seen, reward, terminated, truncated, info = env.step(int(action[0, i]))
            assert np.array_equal(seen, step.final_observation[0, i])
            assert np.float32(reward) == step.reward[0, i]
            assert terminated == step.terminated[0, i]
            assert truncated == step.truncated[0, i]
            assert info["success"] == step.success[0, i]
        ended = np.flatnonzero((step.terminated | step.truncated)[0])
        _start_alike(singles, vector, ended, step.observation)


def _start_alike(singles, vector, which, observation):
    for i in which:
        if isinstance(vector, CarFlag1DVector):
            options = {"cell": vector.cell[0, i], "goal_side": vector.goal_side[0, i]}
        else:
            size = vector.world.size
            options = {
                "cell": divmod(vector.cell[0, i], size),
                "goal": divmod(vector.goal[0, i], size),
            }
        assert np.array_equal(singles[i].reset(options=options)[0], observation[0, i])


def test_each_learners_episodes_depend_on_its_own_generator_alone():
    world = CarFlag2D()
    alone = CarFlag2DVector(world, 8, [np.random.default_rng(5)])
    beside = CarFlag2DVector(world, 8, [np.random.default_rng(9), np.random.default_rng(5)])
    alone.reset()
    beside.reset()
    rng = np.random.default_rng(0)
    for _ in range(150):
        action = rng.integers(4, size=(1, 8))
        one = alone.step(action)
        two = beside.step(np.concatenate((rng.integers(4, size=(1, 8)), action)))
        assert np.array_equal(one.observation[0], two.observation[1])


def test_a_saved_state_continues_like_the_original():
    one = vector_of(CarFlag1D(), envs=8, seed=1)
    one.reset()
    for _ in range(10):
        one.step(np.ones(one.shape, dtype=np.int64))
    two = vector_of(CarFlag1D(), envs=8, seed=77)
    two.set_state(one.state())
    two.generators[0].bit_generator.state = one.generators[0].bit_generator.state
    for t in range(60):
        action = np.full(one.shape, (t // 7) % 2)
        assert np.array_equal(one.step(action).observation, two.step(action).observation)


# --- symmetry of the world (Definition 1 of the paper) --------------------------------------------


@pytest.mark.parametrize("size", [40, 50])
@pytest.mark.parametrize("cell", [-17, -3, 1, 16])
def test_the_flip_of_the_line_flips_observations_and_keeps_rewards(size, cell):
    one, two = CarFlag1DEnv(size), CarFlag1DEnv(size)
    first = one.reset(options={"cell": cell, "goal_side": 1})[0]
    flipped = two.reset(options={"cell": -cell, "goal_side": -1})[0]
    assert np.array_equal(first, -flipped)
    for t in range(30):
        action = (t // 9) % 2
        a, b = one.step(action), two.step(1 - action)
        assert np.array_equal(a[0], -b[0])
        assert a[1:] == b[1:]
        if a[2] or a[3]:
            break


@pytest.mark.parametrize("size", [9, 11])
@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_quarter_turn_of_the_grid_turns_images_and_shifts_actions(size, turns):
    def turn(cell):
        marker = np.zeros((size, size))
        marker[cell] = 1
        return tuple(np.argwhere(np.rot90(marker, turns))[0])

    one, two = CarFlag2DEnv(size), CarFlag2DEnv(size)
    cell, goal = (1, 2), (size - 1, 4)
    first = one.reset(options={"cell": cell, "goal": goal})[0]
    rotated = two.reset(options={"cell": turn(cell), "goal": turn(goal)})[0]
    assert np.array_equal(np.rot90(first, turns, axes=(1, 2)), rotated)
    rng = np.random.default_rng(0)
    for _ in range(STEP_LIMIT):
        action = int(rng.integers(4))
        a, b = one.step(action), two.step((action + turns) % 4)
        assert np.array_equal(np.rot90(a[0], turns, axes=(1, 2)), b[0])
        assert a[1:] == b[1:]
        if a[2] or a[3]:
            break


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_the_set_of_starts_is_invariant_in_the_centred_grid_and_not_with_an_offset(turns):
    def starts(world):
        table = np.zeros((world.size,) * 4, dtype=bool)  # goal, start
        for goal, cells in enumerate(world.start_cells):
            for cell in cells:
                table[(*divmod(goal, world.size), *divmod(cell, world.size))] = True
        return table

    def rotated(table):
        return np.rot90(np.rot90(table, turns, axes=(0, 1)), turns, axes=(2, 3))

    assert np.array_equal(rotated(starts(CarFlag2D())), starts(CarFlag2D()))
    assert not np.array_equal(rotated(starts(CarFlag2D(9, 1))), starts(CarFlag2D(9, 1)))


# --- images -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [CarFlag1DEnv, CarFlag2DEnv])
def test_an_episode_becomes_a_gif_with_one_frame_per_step(kind, tmp_path):
    from PIL import Image, ImageSequence

    env = kind(render_mode="rgb_array")
    env.reset(seed=1)
    frames = [env.render()]
    for _ in range(5):
        env.step(0)
        frames.append(env.render())
    save_video(frames, tmp_path / "episode.gif")
    with Image.open(tmp_path / "episode.gif") as gif:
        assert sum(1 for _ in ImageSequence.Iterator(gif)) == len(
            {frame.tobytes() for frame in frames}
        )
        assert gif.size == (frames[0].shape[1], frames[0].shape[0])
