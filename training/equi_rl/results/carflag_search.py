# SPDX-License-Identifier: MIT
"""Both agents of CarFlag with the same randomly drawn hyper-parameters: how far the lead holds.

    equi-sweep line-settings --folder runs/line --workers 2
    equi-sweep grid-settings --folder runs/grid --workers 2

Every setting is drawn at random around the tuned one and given to both agents, with seeds that no
published curve uses: a setting that was found with one of them alone would favour it. The curves
(`carflag_experiments`) then show each agent with its own best. On the line, both also run with the
defaults that are common in A2C implementations, and which the paper says it kept.
`carflag_search_report` writes the tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from equi_rl.carflag.a2c import A2CConfig
from equi_rl.carflag.run import TUNED_A2C, Agent, CarFlagRun, Domain

MAIN_1D_SIZE, OTHER_1D_SIZE = 50, 40
MAIN_2D_SIZE, OTHER_2D_SIZE = 9, 11
AGENTS: tuple[Agent, ...] = ("equi-ra2c", "ra2c")
COMMON_FOLDER = "common-defaults"
COMMON_DEFAULTS = A2CConfig(rollout_steps=5, learning_rate=7e-4)
_EVALUATIONS = 40


@dataclass(frozen=True)
class Ranges:
    """From what settings are drawn: logarithmically uniform between two numbers."""

    learning_rate: tuple[float, float]
    entropy_weight: tuple[float, float]
    value_weight: tuple[float, float]


@dataclass(frozen=True)
class Search:
    """An equal-effort search for both agents in one domain."""

    domain: Domain
    world_name: str
    """In a table, with the size in it."""
    sizes: tuple[int, ...]
    """Worlds of the search."""
    ranges: Ranges
    draws_seed: int
    steps: int
    """Environment steps of a learner in the search."""
    seeds: tuple[int, ...]
    own_best: Mapping[str, int]
    """Number of the setting with which an agent needs the fewest steps, all worlds together. Where
    none of an agent's settings gets there, the one with the highest success at the end."""
    common_seeds: tuple[int, ...] = ()
    common_steps: int = 0
    settings_count: int = 16

    def settings(self) -> list[A2CConfig]:
        """The settings that are tried, the tuned one first."""
        generator = np.random.default_rng(self.draws_seed)
        tuned = TUNED_A2C[self.domain]

        def log_uniform(low: float, high: float) -> float:
            return float(f"{math.exp(generator.uniform(math.log(low), math.log(high))):.2g}")

        drawn = [
            replace(
                tuned,
                learning_rate=log_uniform(*self.ranges.learning_rate),
                entropy_weight=log_uniform(*self.ranges.entropy_weight),
                value_weight=log_uniform(*self.ranges.value_weight),
                gae_lambda=float(generator.choice((0.9, 0.95, 1.0))),
                forget_bias=float(generator.choice((1.0, 3.0))),
                rms_correction=bool(generator.integers(2)),
            )
            for _ in range(self.settings_count - 1)
        ]
        return [tuned, *drawn]

    def sweep(self) -> list[tuple[str, tuple[str, ...]]]:
        """Names and ``equi-train`` arguments of all runs: the search, then the common defaults."""
        settings = self.settings()
        search = [
            self._run(search_folder(number), agent, size, self.seeds, a2c, self.steps)
            for number, a2c in enumerate(settings)
            for size in self.sizes
            for agent in AGENTS
        ]
        common = [
            self._run(
                COMMON_FOLDER, agent, size, self.common_seeds, COMMON_DEFAULTS, self.common_steps
            )
            for size in self.sizes
            for agent in AGENTS
            if self.common_seeds
        ]
        return search + common

    def best_of(self, agent: Agent) -> A2CConfig:
        """What the search found for an agent; the tuned setting for one that was not searched."""
        return (
            self.settings()[self.own_best[agent]] if agent in self.own_best else self.settings()[0]
        )

    def _run(
        self,
        folder: str,
        agent: Agent,
        size: int,
        seeds: tuple[int, ...],
        a2c: A2CConfig,
        steps: int,
    ) -> tuple[str, tuple[str, ...]]:
        run = CarFlagRun(self.domain, agent, size, 0, seeds, steps, steps // _EVALUATIONS, a2c=a2c)
        return f"{folder}/{run.name}", run.arguments()


def search_folder(number: int) -> str:
    """Where the runs of a drawn setting lie."""
    return f"setting-{number:02d}"


LINE = Search(
    domain="carflag-1d",
    world_name="{} apart",
    sizes=(MAIN_1D_SIZE, OTHER_1D_SIZE),
    ranges=Ranges((1.5e-3, 1e-2), (0.003, 0.03), (0.25, 2.0)),
    draws_seed=20_23,
    steps=320_000,
    seeds=(200, 201, 202, 203),
    own_best={"equi-ra2c": 15, "ra2c": 9},
    common_seeds=tuple(range(320, 328)),
    common_steps=2_000_000,
)
GRID = Search(
    domain="carflag-2d",
    world_name="{0} x {0}",
    sizes=(MAIN_2D_SIZE,),
    ranges=Ranges((1e-3, 1e-2), (0.01, 0.1), (0.5, 10.0)),
    draws_seed=20_26,
    steps=800_000,
    seeds=(400, 401, 402, 403),
    own_best={"equi-ra2c": 9, "ra2c": 4},
)
