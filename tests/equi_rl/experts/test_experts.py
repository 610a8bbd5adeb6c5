# SPDX-License-Identifier: MIT
"""Experts: they succeed, insist, switch, and answer on states they did not steer into."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from equi_rl.envs import TASKS
from equi_rl.experts import ExpertConfig, FirstChoice, make_expert
from equi_rl.experts.skills import open_drawer
from equi_rl.sim.object_parts import handle_position_m
from equi_rl.sim.scene import WorldState

REFERENCE_LENGTHS = {
    "block_picking": (6.0, 23.1),
    "block_pulling": (8.9, 21.2),
    "block_pushing": (9.3, 21.7),
    "drawer_opening": (9.3, 18.6),
}
"""Steps of the reference demonstrations: movable first, immovable first."""


def play(env, expert, seed, first=None):
    """Success, steps, and whether the movable object was tried first."""
    env.reset(seed=seed)
    state = env.state()
    if first is None:
        memory = expert.start(state, np.random.default_rng([1, seed]))
    else:
        memory = expert.start_with(state, first)
    movable_first = state.scene.objects[memory.target].movable
    steps, over = 0, False
    while not over:
        action, memory = expert.act(env.state(), memory)
        assert np.all(np.abs(action) <= 1.0)
        _, _, terminated, truncated, info = env.step(action)
        steps += 1
        over = terminated or truncated
    return bool(info["success"]), steps, movable_first


@pytest.mark.parametrize("task", TASKS)
def test_an_expert_succeeds_whichever_object_it_tries_first(envs, task):
    expert = make_expert(task)
    outcomes = [play(envs[task], expert, seed, first=first) for seed in (0, 1) for first in (0, 1)]
    assert [success for success, _, _ in outcomes] == [True] * 4
    by_first = {movable: [n for _, n, m in outcomes if m == movable] for movable in (True, False)}
    assert np.mean(by_first[True]) < np.mean(by_first[False])


@pytest.mark.parametrize("task", TASKS)
def test_the_imitable_expert_succeeds(envs, task):
    expert = make_expert(task, config=ExpertConfig(first_choice=FirstChoice.NEAREST))
    outcomes = [play(envs[task], expert, seed) for seed in range(4)]
    assert [success for success, _, _ in outcomes] == [True] * 4


@pytest.mark.parametrize("task", TASKS)
def test_the_random_first_choice_is_seeded_and_fair(envs, task):
    expert = make_expert(task)
    envs[task].reset(seed=0)
    state = envs[task].state()
    targets = [expert.start(state, np.random.default_rng(seed)).target for seed in range(200)]
    assert targets == [expert.start(state, np.random.default_rng(s)).target for s in range(200)]
    assert 70 < sum(targets) < 130  # four standard deviations around 100


def test_the_random_expert_insists_on_an_immovable_cube_before_it_switches(envs):
    env, expert = envs["block_picking"], make_expert("block_picking")
    env.reset(seed=0)
    state = env.state()
    wrong = next(i for i, item in enumerate(state.scene.objects) if not item.movable)
    memory = expert.start_with(state, wrong)
    targets = []
    for _ in range(14):
        action, memory = expert.act(env.state(), memory)
        targets.append(memory.target)
        env.step(action)
    assert targets == [wrong] * 11 + [1 - wrong] * 3


def test_the_imitable_expert_tries_the_nearest_object_first(envs):
    env = envs["block_picking"]
    expert = make_expert("block_picking", config=ExpertConfig(FirstChoice.NEAREST))
    for seed in range(5):
        env.reset(seed=seed)
        state = env.state()
        distances = [np.hypot(x - 0.5, y) for x, y in (o.xy_m for o in state.scene.objects)]
        target = expert.start(state, np.random.default_rng(0)).target
        assert target == int(np.argmin(distances))


@pytest.mark.parametrize("task", TASKS)
def test_the_imitable_expert_never_reads_the_hidden_property(envs, task):
    env = envs[task]
    expert = make_expert(task, config=ExpertConfig(FirstChoice.NEAREST))
    env.reset(seed=3)
    scene = env.state().scene
    memory = expert.start(env.state(), np.random.default_rng(0))
    first, _ = expert.act(env.state(), memory)
    env.reset(options={"scene": scene.with_mobility_swapped()})
    again = expert.start(env.state(), np.random.default_rng(0))
    second, _ = expert.act(env.state(), again)
    np.testing.assert_allclose(first, second, atol=1e-9)


@pytest.mark.parametrize("task", TASKS)
def test_an_expert_takes_over_from_a_random_policy_and_still_succeeds(envs, task):
    env = envs[task]
    expert = make_expert(task, config=ExpertConfig(FirstChoice.NEAREST))
    rng = np.random.default_rng(0)
    env.reset(seed=21)
    memory = expert.start(env.state(), rng)
    for _ in range(6):
        _, memory = expert.act(env.state(), memory)
        _, _, terminated, _, _ = env.step(rng.uniform(-1, 1, 5))
        assert not terminated
    for _ in range(44):
        action, memory = expert.act(env.state(), memory)
        _, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            break
    assert info["success"]


def test_coming_down_on_a_drawer_is_no_attempt_to_open_it(envs):
    env = envs["drawer_opening"]
    expert = make_expert("drawer_opening", config=ExpertConfig(FirstChoice.NEAREST))
    env.reset(seed=4)
    memory = expert.start(env.state(), np.random.default_rng(0))
    x, y = env.state().scene.objects[0].xy_m
    blocked = False
    for _ in range(12):  # over the cabinet, then down on its top, gripper closed
        _, memory = expert.act(env.state(), memory)
        tcp = np.array(env.state().tcp_position_m)
        step = np.clip((np.array([x, y]) - tcp[:2]) / 0.05, -1, 1)
        down = -1.0 if np.abs(step).max() < 0.2 else 0.0
        env.step(np.array([1.0, *step, down, 0.0]))
        blocked |= env.state().blocked
    _, memory = expert.act(env.state(), memory)
    assert blocked
    assert memory.failures == (0, 0)


@pytest.mark.parametrize(
    ("behind_m", "aside_m", "height_m", "rises"),
    [
        (0.028, 0.009, 0.038, True),  # on a post
        (0.017, 0.000, 0.041, True),  # on the bar
        (0.042, 0.007, 0.060, True),  # on the edge of the cabinet
        (0.028, 0.002, 0.038, False),  # over the gap
        (0.020, 0.004, 0.027, False),  # in the gap, at the bar: it sits there and may pull
    ],
)
def test_on_a_stiff_arm_fingers_rise_from_what_they_stand_on_and_only_from_that(
    envs, behind_m, aside_m, height_m, rises
):
    env = envs["drawer_opening"]
    scene = env.scene_of_seed(4)
    drawer = scene.objects[0]
    inwards = np.array(drawer.heading)
    aside = np.array([-inwards[1], inwards[0]])
    place = np.array(handle_position_m(drawer)[:2]) + behind_m * inwards + aside_m * aside
    scene = dataclasses.replace(
        scene,
        tcp_position_m=(*place.tolist(), height_m),
        yaw_rad=drawer.yaw_rad + np.pi / 2,
        opening=0.0,
    )
    state = WorldState(scene, holding=False, blocked=False, held_object=None)
    goal = open_drawer(state, 0, stiff_arm=True)
    assert (goal.position_m[2] > height_m) is rises


@pytest.mark.parametrize("task", TASKS)
def test_an_expert_for_whom_both_objects_have_failed_tries_again(envs, task):
    env = envs[task]
    env.reset(seed=11)
    movable = [item.movable for item in env.state().scene.objects].index(True)
    expert = make_expert(task, config=ExpertConfig(FirstChoice.NEAREST))
    # As if an unlucky attempt had spoken against the movable object before.
    memory = expert.start_with(env.state(), 1 - movable)
    failures = tuple(int(index == movable) for index in range(2))
    memory = dataclasses.replace(memory, failures=failures)
    for _ in range(50):
        action, memory = expert.act(env.state(), memory)
        _, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            break
    assert info["success"]


def test_an_unknown_task_has_no_expert():
    with pytest.raises(ValueError, match="known"):
        make_expert("juggling")


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("choice", FirstChoice)
def test_experts_succeed_in_98_of_100_episodes_at_the_reference_lengths(envs, task, choice):
    expert = make_expert(task, config=ExpertConfig(first_choice=choice))
    outcomes = [play(envs[task], expert, seed) for seed in range(200)]
    assert np.mean([success for success, _, _ in outcomes]) >= 0.98
    if choice is FirstChoice.RANDOM:
        for movable_first, reference in zip((True, False), REFERENCE_LENGTHS[task], strict=True):
            lengths = [n for success, n, m in outcomes if success and m == movable_first]
            assert np.mean(lengths) == pytest.approx(reference, abs=3.0)
