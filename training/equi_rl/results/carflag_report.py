# SPDX-License-Identifier: MIT
"""Figures and tables of the CarFlag runs.

Success over steps of both agents, mean over seeds and one standard deviation; steps to a level of
success; the published table of imperfect symmetry beside ours; what the runs cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from equi_rl.carflag.bounds import best_success
from equi_rl.carflag.worlds import CarFlag1D, CarFlag2D, World
from equi_rl.results.carflag_curves import (
    AGENT_NAMES,
    LEVELS,
    Case,
    Cost,
    Curves,
    write_costs,
    write_csv,
)
from equi_rl.results.carflag_experiments import (
    MAIN_1D_SIZE,
    MAIN_2D_SIZE,
    OFFSETS_1D,
    OFFSETS_1D_SIZE,
    OFFSETS_2D,
)
from equi_rl.results.plots import plot_success, save_figure, success_figure

AGENT_COLOURS = {
    "equi-ra2c": "#1b6ca8",
    "ra2c": "#d1791f",
    "dpfrl": "#5a8f3c",
    "dreamer-v2": "#8c6bb1",
    "dreamer-v3": "#b0413e",
}
DOMAIN_NAMES = {"carflag-1d": "CarFlag-1D", "carflag-2d": "CarFlag-2D"}
COSTS_NAME = "carflag_costs.csv"

# Success (mean, standard deviation) after 1M (1-D) and 2M (2-D) steps as published.
PAPER_TABLE: dict[tuple[str, int], dict[str, tuple[float, float]]] = {
    ("carflag-1d", -10): {"equi-ra2c": (0.51, 0.06), "ra2c": (0.78, 0.08)},
    ("carflag-1d", 10): {"equi-ra2c": (0.44, 0.07), "ra2c": (0.70, 0.22)},
    ("carflag-1d", -5): {"equi-ra2c": (0.95, 0.03), "ra2c": (0.72, 0.33)},
    ("carflag-1d", 5): {"equi-ra2c": (0.99, 0.03), "ra2c": (0.76, 0.24)},
    ("carflag-2d", -2): {"equi-ra2c": (0.38, 0.11), "ra2c": (0.31, 0.04)},
    ("carflag-2d", 2): {"equi-ra2c": (0.41, 0.12), "ra2c": (0.28, 0.02)},
    ("carflag-2d", -1): {"equi-ra2c": (0.58, 0.24), "ra2c": (0.38, 0.13)},
    ("carflag-2d", 1): {"equi-ra2c": (0.71, 0.14), "ra2c": (0.30, 0.03)},
}


def write_carflag_report(
    curves: dict[Case, Curves], out: Path, costs: Sequence[Cost] = ()
) -> list[Path]:
    """Write table of curves, tables and figures; returns the files."""
    (out / "images").mkdir(parents=True, exist_ok=True)
    written = [out / "carflag_curves.csv", out / "carflag_results.md"]
    write_csv(curves, written[0])
    if costs:
        written.append(out / COSTS_NAME)
        write_costs(costs, written[-1])
    written[1].write_text("\n".join(_tables(curves) + _cost_table(costs)) + "\n")
    main_worlds = [("carflag-1d", MAIN_1D_SIZE, 0), ("carflag-2d", MAIN_2D_SIZE, 0)]
    symmetric = sorted({(c.domain, c.size, 0) for c in curves if c.offset == 0})
    figures = {
        "carflag_main.png": main_worlds,
        "carflag_sizes.png": [world for world in symmetric if world not in main_worlds],
        "carflag_offsets_1d.png": [
            ("carflag-1d", OFFSETS_1D_SIZE, offset) for offset in OFFSETS_1D
        ],
        "carflag_offsets_2d.png": [("carflag-2d", MAIN_2D_SIZE, offset) for offset in OFFSETS_2D],
    }
    for name, worlds in figures.items():
        present = [world for world in worlds if _cases(curves, world)]
        if present:
            written.append(out / "images" / name)
            _draw(curves, present, written[-1])
    return written


def _cases(curves: dict[Case, Curves], world: tuple[str, int, int]) -> dict[str, Curves]:
    """Curves by agent of one world, the equivariant agent first."""
    found = {agent: curves.get(Case(*world, agent)) for agent in AGENT_NAMES}
    return {agent: curve for agent, curve in found.items() if curve is not None}


def _draw(curves: dict[Case, Curves], worlds: list[tuple[str, int, int]], path: Path) -> None:
    figure, axes = success_figure(len(worlds), len(worlds), (3.6, 3.0))
    for axis, world in zip(axes, worlds, strict=True):
        for agent, curve in _cases(curves, world).items():
            colour, name = AGENT_COLOURS[agent], AGENT_NAMES[agent]
            plot_success(axis, curve.steps / 1e6, curve.success, colour, name)
        axis.set_title(_world_name(world), fontsize=10)
        axis.set_xlabel("environment steps of one learner [million]", fontsize=8)
        if lengths_differ_much(_cases(curves, world).values()):
            axis.set_xscale("log")  # a world model sees a hundredth of the steps
        else:
            axis.set_xlim(left=0)
        axis.legend(fontsize=7, loc="best")
    save_figure(figure, path)


def lengths_differ_much(curves: Iterable[Curves]) -> bool:
    """Whether the shortest would be invisible beside the longest on a linear axis."""
    lengths = [int(curve.steps[-1]) for curve in curves]
    return max(lengths) > 10 * min(lengths)


def _world_name(world: tuple[str, int, int]) -> str:
    domain, size, offset = world
    extent = f"{size} apart" if domain == "carflag-1d" else f"{size} x {size}"
    shift = f", offset {offset:+d}" if offset else ""
    return f"{DOMAIN_NAMES[domain]}, {extent}{shift}"


def _tables(curves: dict[Case, Curves]) -> list[str]:
    complete = sum(len(c.seeds) for c in curves.values() if c.is_complete)
    total = sum(len(c.seeds) for c in curves.values())
    lines = [
        "<!-- written by equi-report; edit the text around it in carflag.md instead -->",
        f"{complete} of the {total} runs below reached their planned end; the others are",
        "marked `*` and stand as far as they got. Success is the mean of the last five evaluations",
        "(100 greedy episodes each; Dreamer: the training episodes of the last five points), then",
        "mean ± one standard deviation over seeds.",
        "",
        "### Symmetric worlds",
        "",
        "| world | agent | seeds | steps | final success | "
        + " | ".join(f"steps to {level}" for level in LEVELS)
        + " |",
        "|---|---|---|---|---|" + "---|" * len(LEVELS),
    ]
    symmetric = sorted({(c.domain, c.size, 0) for c in curves if c.offset == 0})
    for world in symmetric:
        cases = _cases(curves, world)
        for agent, curve in cases.items():
            cells = [_steps_text(curve.steps_to(level), curve) for level in LEVELS]
            lines.append(_row(_world_name(world), agent, curve, *cells))
        if {"equi-ra2c", "ra2c"} <= cases.keys():
            ratios = [_ratio_text(cases, level) for level in LEVELS]
            lines.append(f"| {_world_name(world)} | **ratio** |  |  |  | {' | '.join(ratios)} |")
    lines += [
        "",
        "Steps to a level: median over seeds of the first evaluation at which the mean of three",
        "evaluations reaches it; `(k of n)` says how many seeds did, if not all. Ratio: RA2C's",
        "median over Equi-RA2C's; `>` where RA2C's median seed never got there and the steps it",
        "took stand for it.",
        "",
        "### Imperfect symmetry",
        "",
        "| world | agent | seeds | steps | success here | success in the paper | best possible |",
        "|---|---|---|---|---|---|---|",
    ]
    for (domain, offset), paper in PAPER_TABLE.items():
        size = OFFSETS_1D_SIZE if domain == "carflag-1d" else MAIN_2D_SIZE
        for agent, curve in _cases(curves, (domain, size, offset)).items():
            if agent not in paper:
                continue
            mean, deviation = paper[agent]
            published = f"{mean:.2f} ± {deviation:.2f}"
            best = f"{best_success(_world(domain, size, offset)):.2f}"
            lines.append(_row(_world_name((domain, size, offset)), agent, curve, published, best))
    return lines


def _cost_table(costs: Sequence[Cost]) -> list[str]:
    """Speed by domain, size and agent, and the cost of everything."""
    if not costs:
        return []
    lines = [
        "",
        "### Cost",
        "",
        "| world | agent | runs | parameters | steps of a run | processor minutes of a run |"
        " steps/s of a processor core | steps/s of wall time |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for cost in sorted(costs, key=lambda cost: cost.kind):
        world, agent = _world_name((cost.domain, cost.size, 0)), AGENT_NAMES[cost.agent]
        # Times are kept to a tenth of a second; a run of a test may take less.
        cpu, wall = (cost.steps / max(seconds, 0.1) for seconds in (cost.cpu_s, cost.wall_s))
        each = f"{cost.steps / cost.learners:,.0f} | {cost.cpu_s / 60 / cost.learners:.1f}"
        size = f"{cost.parameters:,}" if cost.parameters else "not recorded"
        lines.append(
            f"| {world} | {agent} | {cost.learners} | {size} | {each} | {cpu:,.0f} | {wall:,.0f} |"
        )
    steps, runs = sum(c.steps for c in costs), sum(c.learners for c in costs)
    cpu_min, wall_min = (sum(getattr(c, n) for c in costs) / 60 for n in ("cpu_s", "wall_s"))
    return [
        *lines,
        "",
        f"The {runs} finished runs took {steps / 1e6:.0f} million steps, {cpu_min:.0f} minutes of",
        f"processor time, and {wall_min:.0f} minutes of wall time if one job ran after the other.",
        "Evaluations are included; seeds of one world and agent train side by side on one core.",
    ]


def _world(domain: str, size: int, offset: int) -> World:
    return CarFlag1D(size, offset) if domain == "carflag-1d" else CarFlag2D(size, offset)


def _row(world: str, agent: str, curve: Curves, *more: str) -> str:
    final = curve.final()
    star = "" if curve.is_complete else " *"
    success = f"{final.mean():.2f} ± {final.std():.2f}"
    steps = f"{curve.steps[-1] / 1e6:.2f}M{star}"
    cells = (world, AGENT_NAMES[agent], str(len(curve.seeds)), steps, success, *more)
    return f"| {' | '.join(cells)} |"


def _steps_text(reached: np.ndarray, curve: Curves) -> str:
    count = int(np.isfinite(reached).sum())
    median = float(np.median(reached))
    share = "" if count == len(curve.seeds) else f" ({count} of {len(curve.seeds)})"
    return (f"{median / 1e3:.0f}k" if np.isfinite(median) else "not reached") + share


def _ratio_text(cases: dict[str, Curves], level: float) -> str:
    ours = float(np.median(cases["equi-ra2c"].steps_to(level)))
    plain = float(np.median(cases["ra2c"].steps_to(level)))
    if not np.isfinite(ours):
        return "-"
    if np.isfinite(plain):
        return f"{plain / ours:.1f}"
    # A run that was cut short may yet get there: it bounds nothing.
    return f"> {cases['ra2c'].steps[-1] / ours:.1f}" if cases["ra2c"].is_complete else "-"
