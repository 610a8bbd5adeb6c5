# SPDX-License-Identifier: MIT
"""CarFlag as sheeprl sees it; imported by the Python of `make baselines`, not by ours.

Every finished episode is written down here, because nothing else knows about success.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from equi_rl.carflag.env import CarFlag1DEnv, CarFlag2DEnv


class EpisodeLog(gymnasium.Wrapper[np.ndarray, int, np.ndarray, int]):
    """Appends `own steps,success` of each finished episode to a file."""

    def __init__(self, env: gymnasium.Env[np.ndarray, int], path: Path) -> None:
        super().__init__(env)
        self._path = path
        self._steps = 0

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """One step; a finished episode is a line of the file."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._steps += 1
        if terminated or truncated:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{self._steps},{int(info['success'])}\n")
        return observation, float(reward), terminated, truncated, info


def make_world(
    domain: str, size: int, offset: int, log_folder: str, rank: int
) -> gymnasium.Env[np.ndarray, int]:
    """A world whose observation is one vector: the grid's two planes, cell by cell.

    Args:
        domain: carflag-1d or carflag-2d.
        size: cells, as in `CarFlagRun`.
        offset: of the information region.
        log_folder: where the episodes of world number ``rank`` are written.
        rank: number of this world; sheeprl counts them.
    """
    world = (CarFlag1DEnv if domain == "carflag-1d" else CarFlag2DEnv)(size, offset)
    logged = EpisodeLog(world, Path(log_folder) / f"{rank}.csv")
    return gymnasium.wrappers.FlattenObservation(logged)
