# SPDX-License-Identifier: MIT
"""CarFlag: small worlds in which the goal can be seen from one hidden place only.

The definitions (`CarFlag1D`, `CarFlag2D`: sizes, rewards, where episodes may start) are shared by
the gymnasium environments in `env` and by the vectorised ones in `vector`; the two step functions
are written independently and tested against each other.

With the information region in the centre (offset 0) the worlds are exactly symmetric: under the
flip of the line in 1-D, under quarter turns (C4) in 2-D. Any other offset breaks the symmetry on
purpose.

Differences from the published environments of the original work, all of them deliberate: an
episode never starts on the information cell (1-D); the start cell is drawn anew at every reset
(2-D); images hold 0 and 1, not 0 and 255; the last step is worth exactly +1 or -1 (1-D),
without the step cost; every random number comes from the environment's own generator.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

STEP_LIMIT = 50
START_MARGIN_CELLS = 3  # 1-D: how far the outermost start cells stay away from the flags
INFO_RADIUS_CELLS = 1  # 2-D: the information region is a 3 x 3 block
MIN_START_DISTANCE = 2  # 2-D: Manhattan distance between start and goal


class CarFlagError(ValueError):
    """A CarFlag world that cannot exist, or an action it does not know."""


@dataclass(frozen=True)
class CarFlag1D:
    """A line with a flag at each end, one of them the goal; ``offset`` moves the information cell.

    Cells are whole numbers with 0 in the middle; the flags stand at ``-half`` and ``+half``.
    """

    size: int = 50  # distance between the flags [cells]
    offset: int = 0  # information cell, counted from the centre [cells]

    STEP_REWARD: ClassVar[float] = -0.01
    GOAL_REWARD: ClassVar[float] = 1.0
    WRONG_FLAG_REWARD: ClassVar[float] = -1.0
    NUM_ACTIONS: ClassVar[int] = 2  # 0: one cell to the left, 1: one cell to the right

    def __post_init__(self) -> None:
        if self.size % 2 or self.size < 10:
            raise CarFlagError(
                f"size = {self.size} flags apart is not possible; use an even number of at least 10"
            )
        if abs(self.offset) >= self.half:
            raise CarFlagError(
                f"offset = {self.offset} puts the information cell on or beyond a flag;"
                f" with size = {self.size} use {-self.half + 1}..{self.half - 1}"
            )

    @property
    def half(self) -> int:
        """Distance from the centre to each flag [cells]."""
        return self.size // 2

    @property
    def position_scale(self) -> float:
        """Cells that an observed position of 1 stands for: the wall, one cell behind the flag."""
        return float(self.half + 1)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """(position, side of the goal)."""
        return (2,)

    @cached_property
    def start_cells(self) -> np.ndarray:
        """Cells on which an episode may start, never the information cell: (K,) int64."""
        limit = self.half - START_MARGIN_CELLS
        cells = np.arange(-limit, limit + 1)
        return cells[cells != self.offset]

    def observe(self, cell: int, goal_side: int) -> np.ndarray:
        """(2,) float32: scaled position, and the goal's side (-1, +1), or 0 where it is hidden."""
        shown = goal_side if cell == self.offset else 0
        return np.array([cell / self.position_scale, shown], dtype=np.float32)


@dataclass(frozen=True)
class CarFlag2D:
    """A square grid with one goal cell; ``offset`` moves the 3 x 3 region along the diagonal.

    Cells are (row, column) with row 0 at the top, numbered ``row * size + column``.
    """

    size: int = 9  # cells along each edge
    offset: int = 0  # displacement of the information region in both directions [cells]

    GOAL_REWARD: ClassVar[float] = 1.0
    NUM_ACTIONS: ClassVar[int] = 4  # right, up, left, down: counter-clockwise, so C4 shifts them
    MOVES: ClassVar[tuple[tuple[int, int], ...]] = ((0, 1), (-1, 0), (0, -1), (1, 0))

    def __post_init__(self) -> None:
        if self.size % 2 == 0 or self.size < 5:
            raise CarFlagError(
                f"size = {self.size} is not possible; use an odd number of cells of at least 5,"
                " so that the grid has a centre"
            )
        limit = self.size // 2 - INFO_RADIUS_CELLS
        if abs(self.offset) > limit:
            raise CarFlagError(
                f"offset = {self.offset} moves the information region off the grid;"
                f" with size = {self.size} use {-limit}..{limit}"
            )

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """(agent and goal planes, rows, columns)."""
        return (2, self.size, self.size)

    @cached_property
    def info_mask(self) -> np.ndarray:
        """(size, size) bool: the cells from which the goal can be seen."""
        centre = self.size // 2 + self.offset
        block = slice(centre - INFO_RADIUS_CELLS, centre + INFO_RADIUS_CELLS + 1)
        mask = np.zeros((self.size, self.size), dtype=bool)
        mask[block, block] = True
        return mask

    @cached_property
    def goal_cells(self) -> np.ndarray:
        """Numbers of the cells that can be the goal: (K,) int64."""
        return np.flatnonzero(~self.info_mask)

    @cached_property
    def start_cells(self) -> tuple[np.ndarray, ...]:
        """For each cell as the goal, the legal start cells; none if it cannot be the goal."""
        rows, columns = np.divmod(np.arange(self.size**2), self.size)
        legal = []
        for goal in range(self.size**2):
            distance = np.abs(rows - rows[goal]) + np.abs(columns - columns[goal])
            allowed = (distance >= MIN_START_DISTANCE) & ~self.info_mask.ravel()
            legal.append(np.flatnonzero(allowed & (not self.info_mask.flat[goal])))
        return tuple(legal)

    def observe(self, cell: tuple[int, int], goal: tuple[int, int]) -> np.ndarray:
        """(2, size, size) float32 of 0 and 1: the agent's cell, and the goal's if seen."""
        image = np.zeros(self.observation_shape, dtype=np.float32)
        image[0][cell] = 1.0
        if self.info_mask[cell]:
            image[1][goal] = 1.0
        return image


World = CarFlag1D | CarFlag2D
