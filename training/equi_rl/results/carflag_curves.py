# SPDX-License-Identifier: MIT
"""Learning curves of finished and unfinished runs as one table, and what they tell."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from equi_rl.carflag.dreamer.run import DREAMER_AGENTS, DreamerRun
from equi_rl.carflag.run import CarFlagRun
from equi_rl.results.tables import CurvesError, read_table, runs_below, write_table

_COLUMNS = ("domain", "size", "offset", "agent", "planned_steps", "seed", "steps", "success")
AGENT_NAMES = {
    "equi-ra2c": "Equi-RA2C",
    "ra2c": "RA2C",
    "dpfrl": "DPFRL",
    "dreamer-v2": "DreamerV2",
    "dreamer-v3": "DreamerV3",
}
"""Names in tables and figures, the equivariant agent first."""
LEVELS = (0.6, 0.8, 0.95)
"""Success rates to which steps are counted."""
SMOOTHING = 3  # evaluations averaged before a level counts as reached


@dataclass(frozen=True)
class Case:
    """One curve of a figure: a world and an agent."""

    domain: str
    size: int
    offset: int
    agent: str


@dataclass(frozen=True)
class Curves:
    """Evaluations of all seeds of one case.

    Attributes:
        steps: (points,) environment steps of each learner.
        success: (seeds, points) success rate; every seed has every point.
        seeds: the seeds, in the order of the rows.
        planned_steps: how long the runs were meant to be.
    """

    steps: np.ndarray
    success: np.ndarray
    seeds: tuple[int, ...]
    planned_steps: int

    @property
    def is_complete(self) -> bool:
        """Whether every seed came to the planned end."""
        return bool(len(self.steps)) and int(self.steps[-1]) >= self.planned_steps

    def final(self, last: int = 5) -> np.ndarray:
        """(seeds,) mean of the last evaluations: one of them alone is a small sample."""
        return self.success[:, -last:].mean(axis=1)

    def steps_to(self, level: float) -> np.ndarray:
        """(seeds,) steps after which the smoothed success first reaches the level; inf if never."""
        smooth = np.stack([_running_mean(row, SMOOTHING) for row in self.success])
        reached = smooth >= level - 1e-9
        first = np.where(reached.any(axis=1), reached.argmax(axis=1), -1)
        return np.array([self.steps[i] if i >= 0 else math.inf for i in first])


def collect(folder: Path) -> dict[Case, Curves]:
    """Read every CarFlag run below a folder; runs in progress count as far as they are."""
    rows: list[dict[str, str]] = []
    for run_folder, config in runs_below(folder, "domain"):
        run = _run(config)
        own = {
            "domain": run.domain,
            "size": str(run.size),
            "offset": str(run.offset),
            "agent": run.agent,
            "planned_steps": str(run.steps),
        }
        rows += [{**own, **row} for row in run_folder.read_progress()]
    if not rows:
        raise CurvesError(f"{folder} holds no run with an evaluation; train something first")
    return _group(rows)


@dataclass(frozen=True)
class Cost:
    """What the finished runs of one agent took in worlds of one size."""

    domain: str
    size: int
    agent: str
    learners: int
    steps: int  # of all learners together
    wall_s: float
    cpu_s: float
    parameters: int = 0
    """Trained numbers of one learner; 0: not known."""

    @property
    def kind(self) -> tuple[str, int, str]:
        """What its runs have in common."""
        return self.domain, self.size, self.agent


def collect_costs(folder: Path) -> list[Cost]:
    """Costs of all finished CarFlag runs below a folder, summed by kind."""
    costs: dict[tuple[str, int, str], Cost] = {}
    for run_folder, config in runs_below(folder, "domain"):
        if not run_folder.is_finished:
            continue
        run, summary = _run(config), run_folder.read_summary()
        kind = (run.domain, run.size, run.agent)
        before = costs.get(kind, Cost(*kind, learners=0, steps=0, wall_s=0.0, cpu_s=0.0))
        learners = len(run.seeds) if isinstance(run, CarFlagRun) else 1
        costs[kind] = Cost(
            *kind,
            learners=before.learners + learners,
            steps=before.steps + learners * summary["steps"],
            wall_s=before.wall_s + summary["seconds"],
            cpu_s=before.cpu_s + summary["cpu_seconds"],
            parameters=summary["parameters"],
        )
    return list(costs.values())


def write_costs(costs: Sequence[Cost], path: Path) -> None:
    """One row per kind of run."""
    rows = [
        (
            *(*cost.kind, cost.learners, cost.steps),
            *(f"{cost.wall_s:.0f}", f"{cost.cpu_s:.0f}", cost.parameters),
        )
        for cost in sorted(costs, key=lambda cost: cost.kind)
    ]
    write_table(path, [field.name for field in dataclasses.fields(Cost)], rows)


def read_costs(path: Path) -> list[Cost]:
    """The inverse of ``write_costs``; nothing where there is no such file."""
    if not path.exists():
        return []

    def cost(row: dict[str, str]) -> Cost:
        kind = (row["domain"], int(row["size"]), row["agent"])
        counts = (int(row["learners"]), int(row["steps"]))
        spent = (float(row["wall_s"]), float(row["cpu_s"]))
        return Cost(*kind, *counts, *spent, int(row["parameters"]))

    return read_table(path, "costs", lambda rows: [cost(row) for row in rows])


def write_csv(curves: dict[Case, Curves], path: Path) -> None:
    """One row per evaluation, enough to redraw every figure."""
    rows = [
        (
            *(case.domain, case.size, case.offset, case.agent, curve.planned_steps),
            *(seed, int(steps), f"{success:.2f}"),
        )
        for case, curve in curves.items()
        for seed, of_seed in zip(curve.seeds, curve.success, strict=True)
        for steps, success in zip(curve.steps, of_seed, strict=True)
    ]
    write_table(path, _COLUMNS, rows)


def read_csv(path: Path) -> dict[Case, Curves]:
    """The inverse of ``write_csv``."""
    return read_table(path, "curves", _group)


def _run(config: dict[str, Any]) -> CarFlagRun | DreamerRun:
    is_dreamer = config["agent"] in DREAMER_AGENTS
    return DreamerRun(**config) if is_dreamer else CarFlagRun.from_json(config)


def _group(rows: Iterable[dict[str, str]]) -> dict[Case, Curves]:
    points: dict[Case, dict[int, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    planned: dict[Case, int] = {}
    for row in rows:
        case = Case(row["domain"], int(row["size"]), int(row["offset"]), row["agent"])
        planned[case] = int(row["planned_steps"])
        points[case][int(row["seed"])][int(row["steps"])] = float(row["success"])
    curves = {}
    for case, by_seed in points.items():
        seeds = tuple(sorted(by_seed))
        # Seeds of one process advance together; with separate runs, keep what all of them have.
        steps = sorted(set.intersection(*(set(by_seed[seed]) for seed in seeds)))
        success = np.array([[by_seed[seed][step] for step in steps] for seed in seeds])
        curves[case] = Curves(np.array(steps), success, seeds, planned[case])
    return curves


def _running_mean(values: Sequence[float] | np.ndarray, width: int) -> np.ndarray:
    """Mean of each value and up to ``width - 1`` before it."""
    total = np.cumsum(np.concatenate(([0.0], values)))
    ends = np.arange(1, len(total))
    starts = np.maximum(ends - width, 0)
    means: np.ndarray = (total[ends] - total[starts]) / (ends - starts)
    return means
