# SPDX-License-Identifier: MIT
"""Specification of goals: a task that has one is not observed without it."""

from __future__ import annotations

import math

import pytest

from equi_core.contract import TASKS_WITH_GOAL, PolicyContract
from equi_perception.freshness import Cause
from equi_perception.goals import EpisodeGoals, GoalError
from equi_rl.envs import TASKS, make_env


def test_the_tasks_with_a_goal_are_those_whose_scenes_have_one():
    found = set()
    for task in TASKS:
        env = make_env(task)
        if env.scene_of_seed(1).goal_xy_m is not None:
            found.add(task)
        env.close()
    assert found == TASKS_WITH_GOAL
    assert PolicyContract(task="block_pushing").has_goal


def test_an_episode_of_pushing_does_not_begin_without_its_goal():
    goals = EpisodeGoals("block_pushing", needed=True)
    with pytest.raises(GoalError, match="block_pushing has a goal"):
        goals.begin("e", None)
    assert [issue.cause for issue in goals.issues("e")] == [Cause.GOAL_MISSING]
    goals.begin("e", (0.5, 0.1, 0.0))
    assert goals.of("e") == (0.5, 0.1, 0.0)
    assert goals.issues("e") == []
    assert [issue.cause for issue in goals.issues("another")] == [Cause.GOAL_MISSING]
    assert goals.issues("") == [], "outside of episodes nobody acts on the image"


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e9])
def test_a_goal_that_means_nothing_is_refused(value):
    with pytest.raises(GoalError, match="goal"):
        EpisodeGoals("block_pushing", needed=True).begin("e", (0.5, value, 0.0))


def test_a_task_without_goal_needs_none():
    goals = EpisodeGoals("block_picking", needed=False)
    goals.begin("e", None)
    assert goals.of("e") is None
    assert goals.issues("e") == []
