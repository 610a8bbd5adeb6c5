# SPDX-License-Identifier: MIT
"""Specification of the best possible success in a CarFlag world."""

from __future__ import annotations

import pytest

from equi_rl.carflag.bounds import best_success
from equi_rl.carflag.env import CarFlag1DEnv
from equi_rl.carflag.worlds import CarFlag1D, CarFlag2D


def played(world):
    """Success of fetching the hint and obeying it, or of guessing where that does better."""
    env = CarFlag1DEnv(world.size, world.offset)
    rates = []
    for start in world.start_cells:
        successes = 0
        for side in (-1, 1):
            env.reset(options={"cell": int(start), "goal_side": side})
            hint, over, info = 0, False, {"success": False}
            while not over:
                target = hint * world.half if hint else world.offset
                observation, _, ended, cut, info = env.step(int(env.cell < target))
                hint = hint or int(observation[1])
                over = ended or cut
            successes += info["success"]
        rates.append(max(successes / 2, 0.5))
    return sum(rates) / len(rates)


@pytest.mark.parametrize(
    "world", [CarFlag1D(), CarFlag1D(40), *(CarFlag1D(40, d) for d in (-10, 10, -5, 5))], ids=str
)
def test_playing_the_best_policy_on_the_line_gives_the_bound(world):
    assert best_success(world) == pytest.approx(played(world))


def test_a_hint_in_the_centre_can_always_be_used():
    assert best_success(CarFlag1D()) == 1.0
    assert best_success(CarFlag1D(40)) == 1.0


def test_a_distant_hint_costs_success_on_the_line_and_mirrored_worlds_cost_the_same():
    assert best_success(CarFlag1D(40, 10)) == best_success(CarFlag1D(40, -10)) < 0.95


@pytest.mark.parametrize("world", [CarFlag2D(), CarFlag2D(11), CarFlag2D(9, 2)], ids=str)
def test_on_a_grid_there_is_always_time_for_the_detour(world):
    # The longest detour is shorter than twice around: 4 * (size - 1) steps.
    assert best_success(world) == 1.0
