# SPDX-License-Identifier: MIT
"""How well anybody could do in a CarFlag world: the best success rate that its rules allow.

With the information region off the centre some starts of the 1-D world leave too little time: going
to the hint and from there to the far flag takes more than 50 steps. Then the best policy fetches
the hint only where that pays, and guesses elsewhere.
"""

from __future__ import annotations

import numpy as np

from equi_rl.carflag.worlds import STEP_LIMIT, CarFlag1D, CarFlag2D, World

GUESS = 0.5  # success of running to one flag without the hint


def best_success(world: World) -> float:
    """Greatest success rate of any policy, even one that knows where the hint is, in [0, 1]."""
    return _best_on_line(world) if isinstance(world, CarFlag1D) else _best_on_grid(world)


def _best_on_line(world: CarFlag1D) -> float:
    starts = world.start_cells
    to_hint = np.abs(starts - world.offset)
    flags = np.array([-world.half, world.half])
    in_time = to_hint[:, None] + np.abs(flags - world.offset) <= STEP_LIMIT
    # Every flag can be reached in time without the hint: no start is further than the limit away.
    return float(np.maximum(in_time.mean(axis=1), GUESS).mean())


def _best_on_grid(world: CarFlag2D) -> float:
    """Share of (goal, start) pairs, goals equally likely, that a detour by the region can make."""
    rows, columns = np.divmod(np.arange(world.size**2), world.size)
    steps = np.abs(rows[:, None] - rows) + np.abs(columns[:, None] - columns)
    inside = np.flatnonzero(world.info_mask)
    detour = (steps[:, inside, None] + steps[None, inside, :]).min(axis=1)  # start, goal
    shares = [
        (detour[world.start_cells[goal], goal] <= STEP_LIMIT).mean() for goal in world.goal_cells
    ]
    return float(np.mean(shares))
