# SPDX-License-Identifier: MIT
"""The CarFlag worlds as gymnasium environments; `equi_rl.envs` registers them."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from equi_rl.carflag.render import draw_grid, draw_line
from equi_rl.carflag.worlds import (
    MIN_START_DISTANCE,
    STEP_LIMIT,
    CarFlag1D,
    CarFlag2D,
    CarFlagError,
)


class CarFlag1DEnv(gym.Env[np.ndarray, int]):
    """One CarFlag-1D world. ``reset(options={"cell": .., "goal_side": ..})`` fixes the start."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 8}  # noqa: RUF012

    def __init__(self, size: int = 50, offset: int = 0, render_mode: str | None = None) -> None:
        self.world = CarFlag1D(size, offset)
        self.render_mode = render_mode
        self.action_space = gym.spaces.Discrete(self.world.NUM_ACTIONS)  # type: ignore[assignment]
        self.observation_space = gym.spaces.Box(-1.0, 1.0, self.world.observation_shape, np.float32)
        self.cell = 0
        self.goal_side = 1
        self.steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start at a random cell (never the information cell) with a random goal side."""
        super().reset(seed=seed)
        options = options or {}
        self.cell = int(options.get("cell", self.np_random.choice(self.world.start_cells)))
        self.goal_side = int(options.get("goal_side", self.np_random.choice((-1, 1))))
        if self.cell not in self.world.start_cells or abs(self.goal_side) != 1:
            raise CarFlagError(
                f"cannot start at cell {self.cell} with goal_side {self.goal_side}; cells"
                f" {self.world.start_cells[0]}..{self.world.start_cells[-1]} except the information"
                f" cell {self.world.offset}, and sides -1 or 1, are allowed"
            )
        self.steps = 0
        return self.world.observe(self.cell, self.goal_side), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Move one cell; the episode ends at either flag, and is cut off after 50 steps."""
        _require_action(action, self.world.NUM_ACTIONS)
        self.cell += 1 if action == 1 else -1
        self.steps += 1
        at_flag = abs(self.cell) == self.world.half
        success = at_flag and self.cell * self.goal_side > 0
        reward = self.world.STEP_REWARD
        if at_flag:
            reward = self.world.GOAL_REWARD if success else self.world.WRONG_FLAG_REWARD
        truncated = not at_flag and self.steps >= STEP_LIMIT
        observation = self.world.observe(self.cell, self.goal_side)
        return observation, reward, at_flag, truncated, {"success": success}

    def render(self) -> np.ndarray | None:
        """The line as an RGB image (height, width, 3) uint8."""
        return draw_line(self.world, self.cell, self.goal_side) if self.render_mode else None


class CarFlag2DEnv(gym.Env[np.ndarray, int]):
    """One CarFlag-2D world. ``reset(options={"cell": (r, c), "goal": (r, c)})`` fixes the start."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 8}  # noqa: RUF012

    def __init__(self, size: int = 9, offset: int = 0, render_mode: str | None = None) -> None:
        self.world = CarFlag2D(size, offset)
        self.render_mode = render_mode
        self.action_space = gym.spaces.Discrete(self.world.NUM_ACTIONS)  # type: ignore[assignment]
        self.observation_space = gym.spaces.Box(0.0, 1.0, self.world.observation_shape, np.float32)
        self.cell = (0, 0)
        self.goal = (size - 1, size - 1)
        self.steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Draw a goal outside the information region, then a start at least two steps away."""
        super().reset(seed=seed)
        options = options or {}
        goal = options.get("goal", divmod(self.np_random.choice(self.world.goal_cells), self._size))
        legal = self.world.start_cells[self._number(goal)]
        if not len(legal):
            raise CarFlagError(f"goal {tuple(goal)} lies in the information region; choose another")
        cell = options.get("cell", divmod(self.np_random.choice(legal), self._size))
        if self._number(cell) not in legal:
            raise CarFlagError(
                f"cannot start at {tuple(cell)} with the goal at {tuple(goal)}: it must lie outside"
                f" the information region and at least {MIN_START_DISTANCE} steps from the goal"
            )
        self.goal = (int(goal[0]), int(goal[1]))
        self.cell = (int(cell[0]), int(cell[1]))
        self.steps = 0
        return self.world.observe(self.cell, self.goal), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Move one cell (off the grid: stay); the goal ends the episode, 50 steps cut it off."""
        _require_action(action, self.world.NUM_ACTIONS)
        row, column = (a + b for a, b in zip(self.cell, self.world.MOVES[action], strict=True))
        if 0 <= row < self._size and 0 <= column < self._size:
            self.cell = (row, column)
        self.steps += 1
        success = self.cell == self.goal
        truncated = not success and self.steps >= STEP_LIMIT
        reward = self.world.GOAL_REWARD if success else 0.0
        observation = self.world.observe(self.cell, self.goal)
        return observation, reward, success, truncated, {"success": success}

    def render(self) -> np.ndarray | None:
        """The grid as an RGB image (height, width, 3) uint8."""
        return draw_grid(self.world, self.cell, self.goal) if self.render_mode else None

    @property
    def _size(self) -> int:
        return self.world.size

    def _number(self, cell: tuple[int, int]) -> int:
        row, column = int(cell[0]), int(cell[1])
        if not (0 <= row < self._size and 0 <= column < self._size):
            raise CarFlagError(
                f"cell {(row, column)} is not on the {self._size} x {self._size} grid"
            )
        return row * self._size + column


def _require_action(action: int, count: int) -> None:
    if not 0 <= action < count:
        raise CarFlagError(f"action = {action} is not known; use 0..{count - 1}")
