# SPDX-License-Identifier: MIT
"""The goal of the running episode: a camera cannot see it, so it must be told, and is then drawn.

A policy that was trained with the pad in its image has no meaning without it: where the task has a
goal and none is known, there is no observation.
"""

from __future__ import annotations

import math

from equi_perception.freshness import Cause, Issue

Goal = tuple[float, float, float]
_FARTHEST_M = 2.0


class GoalError(ValueError):
    """An episode that cannot begin: its goal is missing or means nothing."""


class EpisodeGoals:
    """Goal of the newest episode."""

    def __init__(self, task: str, *, needed: bool) -> None:
        """No episode yet.

        Args:
            task: for messages.
            needed: whether the task has a goal.
        """
        self._task = task
        self._needed = needed
        self._episode_id = ""
        self._goal_m: Goal | None = None

    def begin(self, episode_id: str, goal_m: Goal | None) -> None:
        """An episode begins; its goal in the task frame [m], None if it has none."""
        if goal_m is not None and not all(
            math.isfinite(value) and abs(value) <= _FARTHEST_M for value in goal_m
        ):
            raise GoalError(f"goal {goal_m} must be three numbers within {_FARTHEST_M:g} m")
        if self._needed and goal_m is None:
            raise GoalError(
                f"{self._task} has a goal, and none was given: the policy would act on an image "
                "without its pad; set has_goal and goal_position"
            )
        self._episode_id, self._goal_m = episode_id, goal_m

    def of(self, episode_id: str) -> Goal | None:
        """The goal to draw for an observation of that episode."""
        return self._goal_m if episode_id and episode_id == self._episode_id else None

    def issues(self, episode_id: str) -> list[Issue]:
        """Why that episode cannot be observed; empty if it can, and outside of episodes."""
        if self._needed and episode_id and self.of(episode_id) is None:
            text = f"the goal of {self._task} in episode '{episode_id}' is not known"
            return [Issue(Cause.GOAL_MISSING, text)]
        return []
