# SPDX-License-Identifier: MIT
"""Tables of the searches in `carflag_search`.

    python -m equi_rl.results.carflag_search_report --runs runs/line --out docs
    python -m equi_rl.results.carflag_search_report --domain carflag-2d --runs runs/grid --out docs

The table says, for each setting, how many steps either agent needs.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro

from equi_rl.carflag.run import Domain
from equi_rl.results.carflag_curves import AGENT_NAMES, LEVELS, Case, Curves, collect
from equi_rl.results.carflag_search import (
    AGENTS,
    COMMON_DEFAULTS,
    COMMON_FOLDER,
    GRID,
    LINE,
    Search,
    search_folder,
)
from equi_rl.results.tables import CurvesError

LEVEL = LEVELS[-1]
SEARCHES: dict[str, Search] = {search.domain: search for search in (LINE, GRID)}
FILES = {"carflag-1d": "carflag_settings.md", "carflag-2d": "carflag_grid_settings.md"}


@dataclass(frozen=True)
class SettingsCommand:
    """Write what both agents need with each setting: carflag[_grid]_settings.md."""

    runs: Path
    """Folder of ``equi-sweep line-settings`` or ``grid-settings``."""
    out: Path
    """Folder for the table."""
    domain: Domain = "carflag-1d"
    """Which of the two searches the folder holds."""


@dataclass(frozen=True)
class Outcome:
    """Both agents in one world with one setting."""

    equivariant: float
    """Median steps to LEVEL; inf where not reached."""
    plain: float
    limit: int
    """Steps after which the runs ended."""
    equivariant_success: float = 0.0
    """Mean success at the end."""
    plain_success: float = 0.0

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


def outcome(search: Search, curves: dict[Case, Curves], size: int) -> Outcome:
    """What both agents needed in the world of a size."""
    ours, plain = (curves[Case(search.domain, size, 0, agent)] for agent in AGENTS)
    return Outcome(
        float(np.median(ours.steps_to(LEVEL))),
        float(np.median(plain.steps_to(LEVEL))),
        search.steps,
        float(ours.final().mean()),
        float(plain.final().mean()),
    )


def own_best(outcomes: Sequence[dict[int, Outcome]]) -> dict[str, int]:
    """For each agent the number of the setting with the fewest steps, all worlds together.

    Among settings that do not get there, the one with the highest success at the end.
    """

    def order(number: int, agent: str) -> tuple[float, float]:
        here = outcomes[number].values()
        if agent == "equi-ra2c":
            return sum(o.equivariant for o in here), -sum(o.equivariant_success for o in here)
        return sum(o.plain for o in here), -sum(o.plain_success for o in here)

    numbers = range(len(outcomes))
    return {agent: min(numbers, key=lambda number: order(number, agent)) for agent in AGENTS}


def arrivals(
    search: Search, sizes: Sequence[int], heading: str, curves: dict[Case, Curves]
) -> list[str]:
    """Markdown: what each agent needs in every world, and what it has reached in the end."""
    lines = [
        "",
        heading,
        "",
        "| world | agent | " + " | ".join(f"to {level}" for level in LEVELS) + " | at the end |",
        "|---|---|---|" + "---|" * len(LEVELS),
    ]
    for size in sizes:
        world = search.world_name.format(size)
        cases = {agent: curves[Case(search.domain, size, 0, agent)] for agent in AGENTS}
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
            lines.append(f"| {world} | {AGENT_NAMES[agent]} | {' | '.join(cells)} |")
        limit = int(cases["ra2c"].steps[-1])
        ratios = [
            Outcome(ours, plain, limit).ratio_text for ours, plain in zip(*medians, strict=True)
        ]
        lines.append(f"| {world} | **ratio** | {' | '.join(ratios)} | |")
    return lines


def table(search: Search, outcomes: Sequence[dict[int, Outcome]]) -> list[str]:
    """Markdown, one row per setting, then what follows from all of them."""
    names = {size: search.world_name.format(size) for size in search.sizes}
    heads = " | ".join(f"{name}: Equi-RA2C | RA2C | ratio" for name in names.values())
    lines = [
        "<!-- written by python -m equi_rl.results.carflag_search_report -->",
        f"Median steps of {len(search.seeds)} seeds to a success of {LEVEL}, within"
        f" {_thousands(search.steps)}.",
        "",
        f"| rate | entropy | value | lambda | forget | corrected | {heads} |",
        "|" + "---|" * (6 + 3 * len(names)),
    ]
    for a2c, by_size in zip(search.settings(), outcomes, strict=True):
        own = (a2c.learning_rate, a2c.entropy_weight, a2c.value_weight, a2c.gae_lambda)
        cells = [*(f"{value:g}" for value in own), f"{a2c.forget_bias:g}"]
        cells += ["yes" if a2c.rms_correction else "no", *(by_size[s].text for s in names)]
        lines.append(f"| {' | '.join(cells)} |")
    lines.append("")
    for size, name in names.items():
        here = [by_size[size] for by_size in outcomes]
        fewer = sum(o.equivariant < o.plain for o in here)
        more = sum(o.equivariant > o.plain for o in here)
        limit = search.steps
        best = Outcome(min(o.equivariant for o in here), min(o.plain for o in here), limit)
        middle = Outcome(
            float(np.median([o.equivariant for o in here])),
            float(np.median([o.plain for o in here])),
            limit,
        )
        lines.append(
            f"- {name}: Equi-RA2C needs fewer steps with {fewer} of {len(here)} settings and"
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


def report(search: Search, runs: Path) -> str:
    """The whole text. Raises CurvesError if a run is missing, or the own best is another one."""
    outcomes = []
    for number in range(search.settings_count):
        curves = _finished(runs / search_folder(number))
        outcomes.append({size: outcome(search, curves, size) for size in search.sizes})
    best = own_best(outcomes)
    if best != dict(search.own_best):
        raise CurvesError(
            f"the best settings are {best}, but own_best is {dict(search.own_best)}; change it and"
            " run the sweep again"
        )
    lines = table(search, outcomes)
    if search.common_seeds:
        lines += arrivals(
            search,
            search.sizes,
            f"Both with the common defaults (rollouts of {COMMON_DEFAULTS.rollout_steps}, rate"
            f" {COMMON_DEFAULTS.learning_rate:g}), {len(search.common_seeds)} seeds,"
            f" {search.common_steps / 1e6:g} million steps:",
            _finished(runs / COMMON_FOLDER),
        )
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    command = tyro.cli(SettingsCommand, description=__doc__, args=arguments)
    try:
        text = report(SEARCHES[command.domain], command.runs)
    except (CurvesError, KeyError) as error:
        sys.stderr.write(f"carflag_search_report: the sweep is not finished: {error}\n")
        return 2
    path = command.out / FILES[command.domain]
    path.write_text(text, encoding="utf-8")
    sys.stdout.write(f"wrote {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
