# SPDX-License-Identifier: MIT
"""Both agents on the line with the same randomly drawn hyper-parameters: how far the lead holds.

    equi-sweep line-settings --folder runs/settings --workers 2
    python -m equi_rl.results.carflag_search --runs runs/settings --out training/docs

Every setting is drawn at random around the tuned one and given to both agents, on lines of both
lengths, with seeds that no published curve uses. The table says, for each, how many steps either
agent needs. Then each agent runs with its own best, found with equal effort, and with new seeds: a
setting that was found with one of them alone would favour it. Last, both run with the defaults that
are common in A2C implementations, and which the paper says it kept.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro

from equi_rl.carflag.a2c import A2CConfig
from equi_rl.carflag.run import Agent, CarFlagRun
from equi_rl.results.carflag_curves import AGENT_NAMES, LEVELS, Case, Curves, collect
from equi_rl.results.carflag_experiments import MAIN_1D_SIZE, OTHER_1D_SIZE
from equi_rl.results.tables import CurvesError

SETTINGS = 16
STEPS = 320_000
SEEDS = (200, 201, 202, 203)
LEVEL = LEVELS[-1]
_SIZES = (MAIN_1D_SIZE, OTHER_1D_SIZE)
_DRAWS_SEED = 20_23
OWN_BEST = {"equi-ra2c": 15, "ra2c": 9}
"""Number of the setting with which an agent needs the fewest steps, both lines together."""
FINAL_SEEDS = tuple(range(300, 316))
_FINALS_FOLDER = "own-best"
COMMON_DEFAULTS = A2CConfig(rollout_steps=5, learning_rate=7e-4)
COMMON_SEEDS = tuple(range(320, 328))
COMMON_STEPS = 2_000_000
_COMMON_FOLDER = "common-defaults"
_AGENTS: tuple[Agent, ...] = ("equi-ra2c", "ra2c")


def line_settings() -> list[A2CConfig]:
    """The settings that are tried, the tuned one first."""
    generator = np.random.default_rng(_DRAWS_SEED)

    def log_uniform(low: float, high: float) -> float:
        return float(f"{math.exp(generator.uniform(math.log(low), math.log(high))):.2g}")

    drawn = [
        A2CConfig(
            learning_rate=log_uniform(1.5e-3, 1e-2),
            entropy_weight=log_uniform(0.003, 0.03),
            value_weight=log_uniform(0.25, 2.0),
            gae_lambda=float(generator.choice((0.9, 0.95, 1.0))),
            forget_bias=float(generator.choice((1.0, 3.0))),
            rms_correction=bool(generator.integers(2)),
        )
        for _ in range(SETTINGS - 1)
    ]
    return [A2CConfig(), *drawn]


def settings_sweep() -> list[tuple[str, tuple[str, ...]]]:
    """Names and ``equi-train`` arguments of all runs: the search, then each agent's own best."""
    settings = line_settings()
    search = [
        _run(_search_folder(number), agent, size, SEEDS, a2c)
        for number, a2c in enumerate(settings)
        for size in _SIZES
        for agent in _AGENTS
    ]
    finals = [
        _run(_FINALS_FOLDER, agent, size, FINAL_SEEDS, settings[OWN_BEST[agent]])
        for size in _SIZES
        for agent in _AGENTS
    ]
    common = [
        _run(_COMMON_FOLDER, agent, size, COMMON_SEEDS, COMMON_DEFAULTS, COMMON_STEPS)
        for size in _SIZES
        for agent in _AGENTS
    ]
    return search + finals + common


def _run(
    folder: str,
    agent: Agent,
    size: int,
    seeds: tuple[int, ...],
    a2c: A2CConfig,
    steps: int = STEPS,
) -> tuple[str, tuple[str, ...]]:
    run = CarFlagRun("carflag-1d", agent, size, 0, seeds, steps, steps // 40, a2c=a2c)
    return f"{folder}/{run.name}", run.arguments()


def _search_folder(number: int) -> str:
    return f"setting-{number:02d}"


@dataclass(frozen=True)
class SettingsCommand:
    """Write carflag_settings.md: what both agents need with each setting."""

    runs: Path
    """Folder of ``equi-sweep line-settings``."""
    out: Path
    """Folder for the table."""


@dataclass(frozen=True)
class Outcome:
    """Median steps to LEVEL of both agents in one world with one setting; inf where not reached."""

    equivariant: float
    plain: float
    limit: int = STEPS

    @property
    def text(self) -> str:
        """Three cells of a table."""
        return f"{_thousands(self.equivariant)} | {_thousands(self.plain)} | {self.ratio_text}"

    @property
    def sentence(self) -> str:
        """Both and their ratio in words."""
        both = f"{_thousands(self.equivariant)} against {_thousands(self.plain)}"
        return f"{both} (ratio {self.ratio_text})"

    @property
    def ratio_text(self) -> str:
        """Plain over equivariant; a bound where one of them did not get there."""
        if math.isinf(self.equivariant) and math.isinf(self.plain):
            return "-"
        ratio = min(self.plain, self.limit) / min(self.equivariant, self.limit)
        sign = "> " if math.isinf(self.plain) else "< " if math.isinf(self.equivariant) else ""
        return f"{sign}{ratio:.1f}"


def outcome(curves: dict[Case, Curves], size: int) -> Outcome:
    """What both agents needed on the line of a size."""
    ours, plain = (
        float(np.median(curves[Case("carflag-1d", size, 0, agent)].steps_to(LEVEL)))
        for agent in _AGENTS
    )
    return Outcome(ours, plain)


def own_best(outcomes: Sequence[dict[int, Outcome]]) -> dict[str, int]:
    """For each agent the number of the setting with the fewest steps, both lines together."""

    def needed(number: int, agent: str) -> float:
        here = outcomes[number].values()
        return sum(o.equivariant if agent == "equi-ra2c" else o.plain for o in here)

    numbers = range(len(outcomes))
    return {agent: min(numbers, key=lambda number: needed(number, agent)) for agent in _AGENTS}


def arrivals(heading: str, curves: dict[Case, Curves]) -> list[str]:
    """Markdown: what each agent needs on both lines, and what it has reached in the end."""
    lines = [
        "",
        heading,
        "",
        "| line | agent | " + " | ".join(f"to {level}" for level in LEVELS) + " | at the end |",
        "|---|---|---|" + "---|" * len(LEVELS),
    ]
    for size in _SIZES:
        cases = {agent: curves[Case("carflag-1d", size, 0, agent)] for agent in _AGENTS}
        medians = []
        for agent, case in cases.items():
            reached = [case.steps_to(level) for level in LEVELS]
            medians.append([float(np.median(steps)) for steps in reached])
            cells = [
                f"{_thousands(median)} ({np.isfinite(steps).sum()})"
                for median, steps in zip(medians[-1], reached, strict=True)
            ]
            last = case.final()
            cells.append(f"{last.mean():.2f} ± {last.std():.2f}")
            lines.append(f"| {size} apart | {AGENT_NAMES[agent]} | {' | '.join(cells)} |")
        limit = int(cases["ra2c"].steps[-1])
        ratios = [
            Outcome(ours, plain, limit).ratio_text for ours, plain in zip(*medians, strict=True)
        ]
        lines.append(f"| {size} apart | **ratio** | {' | '.join(ratios)} | |")
    return lines


def table(outcomes: Sequence[dict[int, Outcome]]) -> list[str]:
    """Markdown, one row per setting, then what follows from all of them."""
    heads = " | ".join(f"{s} apart: Equi-RA2C | RA2C | ratio" for s in _SIZES)
    lines = [
        "<!-- written by python -m equi_rl.results.carflag_search -->",
        f"Median steps of {len(SEEDS)} seeds to a success of {LEVEL}, within {_thousands(STEPS)}.",
        "",
        f"| rate | entropy | value | lambda | forget | corrected | {heads} |",
        "|" + "---|" * (6 + 3 * len(_SIZES)),
    ]
    for a2c, by_size in zip(line_settings(), outcomes, strict=True):
        own = (a2c.learning_rate, a2c.entropy_weight, a2c.value_weight, a2c.gae_lambda)
        cells = [*(f"{value:g}" for value in own), f"{a2c.forget_bias:g}"]
        cells += ["yes" if a2c.rms_correction else "no", *(by_size[s].text for s in _SIZES)]
        lines.append(f"| {' | '.join(cells)} |")
    lines.append("")
    for size in _SIZES:
        here = [by_size[size] for by_size in outcomes]
        fewer = sum(o.equivariant < o.plain for o in here)
        more = sum(o.equivariant > o.plain for o in here)
        best = Outcome(min(o.equivariant for o in here), min(o.plain for o in here))
        middle = Outcome(
            float(np.median([o.equivariant for o in here])),
            float(np.median([o.plain for o in here])),
        )
        lines.append(
            f"- {size} apart: Equi-RA2C needs fewer steps with {fewer} of {len(here)} settings and"
            f" more with {more}. Each agent at its own best: {best.sentence}. At the median of all"
            f" settings: {middle.sentence}."
        )
    return lines


def _thousands(steps: float) -> str:
    return "not reached" if math.isinf(steps) else f"{steps / 1000:.0f}k"


def _finished(folder: Path) -> dict[Case, Curves]:
    """Curves of a folder's runs; raises CurvesError while one of them is still on its way."""
    curves = collect(folder)
    for case, curve in curves.items():
        if not curve.is_complete:
            raise CurvesError(
                f"{folder}: {case.agent} on {case.size} cells has not come to its end"
            )
    return curves


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    command = tyro.cli(SettingsCommand, description=__doc__, args=arguments)
    try:
        outcomes = []
        for number in range(SETTINGS):
            curves = _finished(command.runs / _search_folder(number))
            outcomes.append({size: outcome(curves, size) for size in _SIZES})
        finals = arrivals(
            f"Each agent with its own best setting, both lines together, and {len(FINAL_SEEDS)} new"
            " seeds; median steps to a success, in brackets how many seeds got there:",
            _finished(command.runs / _FINALS_FOLDER),
        )
        common = arrivals(
            f"Both with the common defaults (rollouts of {COMMON_DEFAULTS.rollout_steps}, rate"
            f" {COMMON_DEFAULTS.learning_rate:g}), {len(COMMON_SEEDS)} seeds,"
            f" {COMMON_STEPS / 1e6:g} million steps:",
            _finished(command.runs / _COMMON_FOLDER),
        )
    except (CurvesError, KeyError) as error:
        sys.stderr.write(f"carflag_settings: the sweep is not finished: {error}\n")
        return 2
    if own_best(outcomes) != OWN_BEST:
        sys.stderr.write(
            f"carflag_settings: the best settings are {own_best(outcomes)}, but OWN_BEST is"
            f" {OWN_BEST}; change it and run the sweep again\n"
        )
        return 2
    path = command.out / "carflag_settings.md"
    path.write_text("\n".join(table(outcomes) + finals + common) + "\n")
    sys.stdout.write(f"wrote {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
