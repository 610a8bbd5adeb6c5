# SPDX-License-Identifier: MIT
"""Many CarFlag worlds stepped at once with numpy: ``learners`` x ``envs`` of them.

Each learner has its own random generator, so the episodes that it sees depend on its seed alone,
not on who trains beside it. Finished worlds restart by themselves; the observation in which the old
episode ended is handed out separately, because a time-out must be bootstrapped from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from equi_rl.carflag.worlds import STEP_LIMIT, CarFlag1D, CarFlag2D, World

W = TypeVar("W", CarFlag1D, CarFlag2D)
DRAWN_AHEAD = 64  # steps for which random numbers are drawn at once


class VectorStep(NamedTuple):
    """What one step of all worlds returns; every array starts with (learners, envs)."""

    observation: np.ndarray  # float32, of the new episode where one has just ended
    reward: np.ndarray  # float32
    terminated: np.ndarray  # bool: a flag or the goal was reached
    truncated: np.ndarray  # bool: cut off after 50 steps
    success: np.ndarray  # bool: the goal was reached
    final_observation: np.ndarray  # float32: as ``observation``, but of the old episode


class CarFlagVector(ABC, Generic[W]):
    """What both vectorised worlds share: time limit, restarts, saving and loading."""

    STATE_NAMES: tuple[str, ...] = ("steps", "drawn", "drawn_used")

    def __init__(self, world: W, envs: int, generators: Sequence[np.random.Generator]) -> None:
        self.world: W = world
        self.generators = tuple(generators)
        self.shape = (len(self.generators), envs)
        self.steps = np.zeros(self.shape, dtype=np.int64)
        # Two numbers in [0, 1) for every world and step ahead, whether it will restart or not: one
        # call per learner and 64 steps is much cheaper than one per restart.
        self.drawn = np.zeros((DRAWN_AHEAD, 2, *self.shape))
        self.drawn_used = np.array(DRAWN_AHEAD)

    def reset(self) -> np.ndarray:
        """Start a new episode everywhere; returns the observations."""
        self._restart(np.ones(self.shape, dtype=bool))
        return self.observe()

    def step(self, action: np.ndarray) -> VectorStep:
        """Apply (learners, envs) integer actions."""
        self.steps += 1
        reward, terminated, success = self._move(action)
        truncated = (self.steps >= STEP_LIMIT) & ~terminated
        final_observation = observation = self.observe()
        done = terminated | truncated
        self._restart(done)
        if done.any():
            observation = self.observe()
        return VectorStep(observation, reward, terminated, truncated, success, final_observation)

    def state(self) -> dict[str, np.ndarray]:
        """Copies of the arrays that define where every world stands (generators excluded)."""
        return {name: getattr(self, name).copy() for name in self.STATE_NAMES}

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        """Continue from arrays returned by ``state``."""
        for name in self.STATE_NAMES:
            getattr(self, name)[...] = state[name]

    @abstractmethod
    def observe(self) -> np.ndarray:
        """Current observations, a new (learners, envs, ...) float32 array."""

    @abstractmethod
    def _move(self, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Change the state; returns reward, terminated, success."""

    @abstractmethod
    def _start(self, mask: np.ndarray, first: np.ndarray, second: np.ndarray) -> None:
        """Begin an episode where ``mask`` is set, from numbers in [0, 1) for each such world."""

    def _restart(self, mask: np.ndarray) -> None:
        """Begin new episodes where ``mask`` is set; called once per step, set anywhere or not."""
        # A row of numbers is used up in every step, or a learner's would depend on the others'.
        if self.drawn_used >= DRAWN_AHEAD:
            shape = (DRAWN_AHEAD, 2, self.shape[1])
            self.drawn[...] = np.stack([g.random(shape) for g in self.generators], axis=2)
            self.drawn_used[...] = 0
        first, second = self.drawn[self.drawn_used]
        self.drawn_used += 1
        if mask.any():
            self.steps[mask] = 0
            self._start(mask, first[mask], second[mask])


class CarFlag1DVector(CarFlagVector[CarFlag1D]):
    """Many lines at once; see `CarFlag1D`."""

    STATE_NAMES = (*CarFlagVector.STATE_NAMES, "cell", "goal_side")

    def __init__(
        self, world: CarFlag1D, envs: int, generators: Sequence[np.random.Generator]
    ) -> None:
        super().__init__(world, envs, generators)
        self.cell = np.zeros(self.shape, dtype=np.int64)
        self.goal_side = np.ones(self.shape, dtype=np.int64)

    def observe(self) -> np.ndarray:
        """(learners, envs, 2) float32: scaled position and the goal's side where it can be seen."""
        observation = np.empty((*self.shape, 2), dtype=np.float32)
        np.divide(
            self.cell, self.world.position_scale, out=observation[..., 0], casting="same_kind"
        )
        np.multiply(
            self.goal_side,
            self.cell == self.world.offset,
            out=observation[..., 1],
            casting="unsafe",
        )
        return observation

    def _move(self, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        world = self.world
        self.cell += 2 * action - 1
        at_flag = np.abs(self.cell) == world.half
        reward = np.full(self.shape, world.STEP_REWARD, dtype=np.float32)
        success = self.cell == self.goal_side * world.half
        if at_flag.any():
            reward[at_flag] = world.WRONG_FLAG_REWARD
            reward[success] = world.GOAL_REWARD
        return reward, at_flag, success

    def _start(self, mask: np.ndarray, first: np.ndarray, second: np.ndarray) -> None:
        cells = self.world.start_cells
        self.cell[mask] = cells[(first * len(cells)).astype(np.int64)]
        self.goal_side[mask] = np.where(second < 0.5, -1, 1)


class CarFlag2DVector(CarFlagVector[CarFlag2D]):
    """Many grids at once; see `CarFlag2D`. Cells are numbers, row * size + column."""

    STATE_NAMES = (*CarFlagVector.STATE_NAMES, "cell", "goal")

    def __init__(
        self, world: CarFlag2D, envs: int, generators: Sequence[np.random.Generator]
    ) -> None:
        super().__init__(world, envs, generators)
        self.cell = np.zeros(self.shape, dtype=np.int64)
        self.goal = np.zeros(self.shape, dtype=np.int64)
        self._next_cell = _move_table(world)
        self._sees_goal = world.info_mask.ravel().astype(np.float32)
        self._start_counts = np.array([len(cells) for cells in world.start_cells])
        width = self._start_counts.max()
        self._starts = np.array(
            [np.pad(cells, (0, width - len(cells))) for cells in world.start_cells]
        )
        self._world_index = np.arange(self.steps.size)

    def observe(self) -> np.ndarray:
        """(learners, envs, 2, size, size) float32: the agent's cell, the goal's if seen."""
        cells = self.world.size**2
        planes = np.zeros((self.steps.size, 2 * cells), dtype=np.float32)
        cell = self.cell.ravel()
        planes[self._world_index, cell] = 1.0
        planes[self._world_index, cells + self.goal.ravel()] = self._sees_goal[cell]
        return planes.reshape(*self.shape, *self.world.observation_shape)

    def _move(self, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self.cell[...] = self._next_cell[self.cell, action]
        success = self.cell == self.goal
        return success * np.float32(self.world.GOAL_REWARD), success, success

    def _start(self, mask: np.ndarray, first: np.ndarray, second: np.ndarray) -> None:
        goals = self.world.goal_cells[(first * len(self.world.goal_cells)).astype(np.int64)]
        self.goal[mask] = goals
        self.cell[mask] = self._starts[goals, (second * self._start_counts[goals]).astype(np.int64)]


def make_vector(
    world: World, envs: int, generators: Sequence[np.random.Generator]
) -> CarFlag1DVector | CarFlag2DVector:
    """The vectorised form of a world, one row of ``envs`` worlds per generator."""
    if isinstance(world, CarFlag1D):
        return CarFlag1DVector(world, envs, generators)
    return CarFlag2DVector(world, envs, generators)


def _move_table(world: CarFlag2D) -> np.ndarray:
    """(cells, actions) int64: the cell reached; a move off the grid stays."""
    rows, columns = np.divmod(np.arange(world.size**2), world.size)
    moves = np.array(world.MOVES)
    new_rows = np.clip(rows[:, None] + moves[:, 0], 0, world.size - 1)
    new_columns = np.clip(columns[:, None] + moves[:, 1], 0, world.size - 1)
    return new_rows * world.size + new_columns
