# SPDX-License-Identifier: MIT
"""Evaluations of runs on robot tasks: read from run folders, kept as one table, joined to curves.

A curve is one agent on one task with one preset: mean over seeds on the evaluations that all of
them have. A run with a setting that is not the preset's makes a curve of its own, named after it.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from equi_core.statistics import SuccessRate
from equi_rl.results.tables import read_table, runs_below, write_table
from equi_rl.slac.config import AGENT, SlacConfigError, SlacRun
from equi_rl.training.config import RobotConfigError
from equi_rl.training.presets import robot_run
from equi_rl.training.renames import flatten, setting_in_words

AGENT_NAMES = {
    "equi-rsac": "Equi-RSAC",
    "rsac": "RSAC",
    "equi-cnn-rsac": "equivariant CNN, plain LSTM",
    "equi-actor-rsac": "equivariant actor only",
    "equi-critic-rsac": "equivariant critic only",
    "rad-crop-rsac": "RAD-Crop-RSAC",
    "drq-shift-rsac": "DrQ-Shift-RSAC",
    AGENT: "SLAC",
}
"""Names in figures, in the order in which agents are listed."""
PRESET_NAMES = {
    "reward": "reward (asymmetric critic)",
    "brief": "brief (reward, asymmetric critic)",
}
"""Presets that figures and tables name otherwise than the command line."""
_ELSEWHERE = (
    *("task", "agent", "preset", "seed", "rounds", "environment_steps"),
    *("evaluate_every", "evaluation_episodes", "evaluation_share", "evaluations"),
)
"""Settings in which runs of one curve may differ, or which have a column of their own."""
_OWN_COLUMNS = ("task", "preset", "agent", "overrides", "seed")

Panel = tuple[str, str]
"""Task and preset."""


class Evaluation(NamedTuple):
    """One evaluation of a run, and what the run had taken by then."""

    updates: int
    environment_steps: int  # demonstrations included
    seconds: float  # wall time
    successes: int
    episodes: int

    @staticmethod
    def from_row(row: dict[str, str]) -> Evaluation:
        """From a line of a run's `progress.csv`, or of the table of curves."""
        return Evaluation(
            int(row["updates"]),
            int(row["environment_steps"]),
            float(row["seconds"]),
            int(row["successes"]),
            int(row["episodes"]),
        )


@dataclass(frozen=True)
class EvaluatedRun:
    """What a figure needs of one run."""

    task: str
    preset: str
    agent: str
    overrides: str  # every setting that differs from the preset's; "" if none does
    seed: int
    evaluations: tuple[Evaluation, ...]

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What no two runs of a report have in common."""
        return self.task, self.preset, self.agent, self.overrides, self.seed


@dataclass(frozen=True)
class RobotCurve:
    """Evaluations of all seeds of one agent on one task.

    Attributes:
        agent: its name in `equi-train`.
        overrides: settings that differ from the preset's, as text.
        steps: (points,) mean environment steps of the seeds, demonstrations included.
        success: (seeds, points).
        seeds: in the order of the rows.
        updates: gradient steps of the longest run.
        seconds: wall time of the runs, one each [s].
        first: successes of the first evaluation, all seeds together: imitation alone, where a
            preset starts with it.
        last: of the last one.
    """

    agent: str
    overrides: str
    steps: np.ndarray
    success: np.ndarray
    seeds: tuple[int, ...]
    updates: int
    seconds: tuple[float, ...]
    first: SuccessRate
    last: SuccessRate

    @property
    def label(self) -> str:
        """Agent and its overrides."""
        name = AGENT_NAMES.get(self.agent, self.agent)
        return f"{name}, {self.overrides}" if self.overrides else name

    def of_seeds(self, seeds: Sequence[int]) -> RobotCurve:
        """The curve with its success of these seeds only, or as it is if it has none of them."""
        kept = [row for row, seed in enumerate(self.seeds) if seed in seeds]
        if not kept:
            return self
        own = tuple(self.seeds[row] for row in kept)
        return dataclasses.replace(self, success=self.success[kept], seeds=own)

    def success_at(self, steps: float) -> np.ndarray:
        """Success (seeds,) after so many environment steps, between evaluations on a line."""
        return np.array([np.interp(steps, self.steps, row) for row in self.success])


def collect_robot_runs(folder: Path) -> list[EvaluatedRun]:
    """Every robot run below a folder that has an evaluation."""
    runs = []
    for run_folder, config in runs_below(folder, "task"):
        own = (config["task"], config["preset"], config["agent"], _overrides(config))
        evaluations = tuple(Evaluation.from_row(row) for row in run_folder.read_progress())
        if evaluations:
            runs.append(EvaluatedRun(*own, config["seed"], evaluations))
    return runs


def robot_curves(runs: Iterable[EvaluatedRun]) -> dict[Panel, list[RobotCurve]]:
    """Curves by task and preset; agents in the order of `AGENT_NAMES`, variants last."""
    groups: dict[Panel, dict[tuple[str, str], list[EvaluatedRun]]]
    groups = defaultdict(lambda: defaultdict(list))
    for run in runs:
        groups[run.task, run.preset][run.agent, run.overrides].append(run)
    order = list(AGENT_NAMES)

    def rank(agent_and_speciality: tuple[str, str]) -> tuple[int, str, str]:
        agent, overrides = agent_and_speciality
        return order.index(agent) if agent in order else len(order), agent, overrides

    return {
        panel: [_curve(by_agent[key]) for key in sorted(by_agent, key=rank)]
        for panel, by_agent in sorted(groups.items())
    }


def join_runs(earlier: Sequence[EvaluatedRun], newer: Sequence[EvaluatedRun]) -> list[EvaluatedRun]:
    """Both; where they hold the same run, the newer takes its place."""
    return list({run.key: run for run in (*earlier, *newer)}.values())


def write_robot_runs(runs: Sequence[EvaluatedRun], path: Path) -> None:
    """One line per evaluation, enough to redraw every figure."""
    rows = [
        (*run.key, *evaluation)
        for run in sorted(runs, key=lambda run: run.key)
        for evaluation in run.evaluations
    ]
    write_table(path, (*_OWN_COLUMNS, *Evaluation._fields), rows)


def read_robot_runs(path: Path) -> list[EvaluatedRun]:
    """The inverse of ``write_robot_runs``."""
    return read_table(path, "curves", _runs_of_rows)


def _runs_of_rows(rows: Iterable[dict[str, str]]) -> list[EvaluatedRun]:
    found: dict[tuple[str, str, str, str, int], list[Evaluation]] = defaultdict(list)
    for row in rows:
        task, preset, agent, overrides, seed = (row[name] for name in _OWN_COLUMNS)
        found[task, preset, agent, overrides, int(seed)].append(Evaluation.from_row(row))
    return [EvaluatedRun(*key, tuple(evaluations)) for key, evaluations in found.items()]


def _overrides(config: dict[str, Any]) -> str:
    """Every setting that differs from the preset's, as text."""
    try:
        if config["agent"] == AGENT:
            usual = SlacRun(config["task"]).to_mapping()
        else:
            usual = robot_run(config["task"], config["preset"], agent=config["agent"]).to_mapping()
    except (RobotConfigError, SlacConfigError):
        return ""  # a run of an agent or task that no longer exists is shown as it is
    stored = flatten(config)
    return ", ".join(
        f"{setting_in_words(name)} {_value_in_words(stored[name])}"
        for name, value in flatten(usual).items()
        if name not in _ELSEWHERE and stored.get(name, value) != value
    )


def _value_in_words(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else "free" if value is None else str(value)


def _curve(runs: Sequence[EvaluatedRun]) -> RobotCurve:
    runs = sorted(runs, key=lambda run: run.seed)
    points = min(len(run.evaluations) for run in runs)
    steps = [[e.environment_steps for e in run.evaluations[:points]] for run in runs]
    success = [[e.successes / e.episodes for e in run.evaluations[:points]] for run in runs]
    first = [run.evaluations[0] for run in runs]
    last = [run.evaluations[points - 1] for run in runs]
    return RobotCurve(
        runs[0].agent,
        runs[0].overrides,
        np.mean(steps, axis=0),
        np.array(success),
        tuple(run.seed for run in runs),
        max(evaluation.updates for evaluation in last),
        tuple(evaluation.seconds for evaluation in last),
        _together(first),
        _together(last),
    )


def _together(evaluations: Sequence[Evaluation]) -> SuccessRate:
    return SuccessRate(sum(e.successes for e in evaluations), sum(e.episodes for e in evaluations))
