# SPDX-License-Identifier: MIT
"""Benchmark: training steps per second of both agents on the CarFlag worlds, on one core.

    equi-bench carflag --seconds 3 --seeds 4

All cases are measured in turns, several rounds each, so that their ratios hold on a busy machine
too; the best round counts. Besides training, it measures the vectorised environments alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from equi_rl.carflag.a2c import A2CConfig, A2CLearners
from equi_rl.carflag.run import AGENTS, DOMAINS, Agent, CarFlagRun, Domain
from equi_rl.carflag.vector import make_vector

ROUNDS = 4
WORLDS_ALONE = 4096


def run(options: list[str]) -> dict[str, object]:
    """Measure, print a table, return steps per second by case."""
    parser = argparse.ArgumentParser(prog="equi-bench carflag", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="time for each case")
    parser.add_argument("--seeds", type=int, default=4, help="learners side by side")
    arguments = parser.parse_args(options)
    torch.set_num_threads(1)
    cases: dict[str, tuple[Callable[[], object], int]] = {}
    for domain in DOMAINS:
        for agent in AGENTS:
            cases[f"{domain} {agent}"] = _training_case(domain, agent, arguments.seeds)
        cases[f"{domain} environment alone"] = _environment_case(domain)
    speeds = _measure(cases, arguments.seconds)
    table = Table("case", "steps/s", title="CarFlag, one core")
    for name, speed in speeds.items():
        table.add_row(name, f"{speed:,.0f}")
    Console().print(table)
    return {"seeds_side_by_side": arguments.seeds, "steps_per_s": speeds}


def _training_case(domain: str, agent: Agent, seeds: int) -> tuple[Callable[[], object], int]:
    """One update of all learners, and how many environment steps it makes."""
    kind: Domain = "carflag-1d" if domain == "carflag-1d" else "carflag-2d"
    config = A2CConfig()
    run = CarFlagRun(kind, agent)
    learners = A2CLearners(
        run.world(),
        equivariant=run.is_equivariant,
        config=config,
        seeds=tuple(range(seeds)),
        memory=run.memory(),
    )
    return learners.update, seeds * config.steps_per_update


def _environment_case(domain: str) -> tuple[Callable[[], object], int]:
    """One step of many worlds with random actions."""
    kind: Domain = "carflag-1d" if domain == "carflag-1d" else "carflag-2d"
    world = CarFlagRun(kind).world()
    generator = np.random.default_rng(0)
    envs = make_vector(world, WORLDS_ALONE, [generator])
    envs.reset()
    return lambda: envs.step(generator.integers(world.NUM_ACTIONS, size=envs.shape)), WORLDS_ALONE


def _measure(
    cases: dict[str, tuple[Callable[[], object], int]], seconds: float
) -> dict[str, float]:
    best = dict.fromkeys(cases, 0.0)
    for call, _ in cases.values():
        call()  # caches and lazy initialisation
    for _ in range(ROUNDS):
        for name, (call, steps) in cases.items():
            calls, started = 0, time.perf_counter()
            while (spent := time.perf_counter() - started) < seconds / ROUNDS or calls == 0:
                call()
                calls += 1
            best[name] = max(best[name], calls * steps / spent)
    return {name: round(speed, 1) for name, speed in best.items()}
