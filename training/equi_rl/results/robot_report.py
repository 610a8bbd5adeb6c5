# SPDX-License-Identifier: MIT
"""Figures and a table of the runs on robot tasks.

One panel per task and one figure per preset, one curve per agent: mean over seeds and one standard
deviation, and at the end the 95 % interval of all seeds' episodes. Presets are never drawn
together: they do not use the same data. The controls of learning from reward are drawn with the
agents; runs with another setting that is not the preset's have a figure of their own: a small panel
each, with its agent as it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from equi_rl.results.plots import plot_success, save_figure, success_figure
from equi_rl.results.robot_curves import (
    AGENT_NAMES,
    PRESET_NAMES,
    EvaluatedRun,
    Panel,
    RobotCurve,
    robot_curves,
    write_robot_runs,
)
from equi_rl.training.config import Preset

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVES_NAME = "robot_curves.csv"
_COLOURS = dict(
    zip(
        AGENT_NAMES,
        ("#1b6ca8", "#d1791f", "#3a9a6d", "#8a5aa8", "#b5486b", "#7d7d7d", "#b8a13c", "#20807c"),
        strict=True,
    )
)
_VARIANT_COLOUR = "#c8385a"
_CONTROL_COLOUR = "#333333"
_CONTROL = "imitation alone (Equi-RSAC)"
CONTROLS = {
    "asymmetric reward scale 0": ("reward set to zero (Equi-RSAC)", ":"),
    "asymmetric teacher successes": ("own successes imitated (Equi-RSAC)", "-."),
}
"""Controls of every claim that reward teaches, by what differs from the preset: their name, and the
style of their line in the figure of the agents."""
_VARIANTS_PER_ROW = 5
_TASKS_PER_ROW = 2
"""Wide panels: a page shows the figure a hand's breadth wide."""


def write_robot_report(runs: Sequence[EvaluatedRun], out: Path) -> list[Path]:
    """Write `robot_curves.csv`, `robot_results.md` and figures per preset; returns the files."""
    (out / "images").mkdir(parents=True, exist_ok=True)
    written = [out / CURVES_NAME, out / "robot_results.md"]
    write_robot_runs(runs, written[0])
    panels = robot_curves(runs)
    written[1].write_text("\n".join(_table(panels)) + "\n")
    for preset in sorted({preset for _, preset in panels}):
        chosen = {task: curves for (task, of), curves in panels.items() if of == preset}
        agents = {t: [c for c in curves if not c.overrides] for t, curves in chosen.items()}
        agents = {task: curves for task, curves in agents.items() if curves}
        changed = [(t, c) for t, curves in chosen.items() for c in curves if c.overrides]
        controls: dict[str, list[RobotCurve]] = defaultdict(list)
        for task, curve in changed:
            if agents and curve.overrides in CONTROLS:
                controls[task].append(curve)
        variants = [(t, c) for t, c in changed if not (agents and c.overrides in CONTROLS)]
        if agents:
            written.append(out / "images" / f"robot_{preset}.png")
            _draw_agents(agents, controls, preset, written[-1])
        if variants:
            written.append(out / "images" / f"robot_{preset}_variants.png")
            _draw_variants(variants, agents, written[-1])
    return written


def _table(panels: dict[Panel, list[RobotCurve]]) -> list[str]:
    lines = [
        "<!-- written by equi-report; edit the text around it elsewhere -->",
        "Success of the policy's mean, on scenes that no run trains on; intervals are Wilson's",
        "over all seeds' episodes. The first evaluation is that of imitation alone, where a preset",
        "starts with it. Steps include the demonstrations. At equal steps: read off the curves,",
        "mean ± one standard deviation over seeds, where the agent of this task and preset with",
        "the fewest steps ends (runs with the preset's own settings).",
        "",
        "| task | preset | agent | seeds | environment steps | updates | first evaluation |"
        " success at the end | at equal steps | wall time of a run [min] |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (task, preset), curves in panels.items():
        compared = [curve for curve in curves if not curve.overrides] or curves
        common = min(float(curve.steps[-1]) for curve in compared)
        for curve in curves:
            minutes = ", ".join(f"{seconds / 60:.0f}" for seconds in curve.seconds)
            lines.append(
                f"| {task} | {PRESET_NAMES.get(preset, preset)} | {curve.label} |"
                f" {len(curve.seeds)} | {curve.steps[-1]:,.0f} | {curve.updates:,} |"
                f" {curve.first} |"
                f" {curve.last} | {_at_equal_steps(curve, common)} | {minutes} |"
            )
    return lines


def _at_equal_steps(curve: RobotCurve, common: float) -> str:
    if curve.steps[-1] < common:
        return f"ends at {curve.steps[-1]:,.0f}"
    equal = curve.success_at(common)
    spread = f" ± {equal.std():.2f}" if len(equal) > 1 else ""
    return f"{equal.mean():.2f}{spread} ({common:,.0f})"


def _draw_agents(
    tasks: dict[str, list[RobotCurve]],
    controls: dict[str, list[RobotCurve]],
    preset: str,
    path: Path,
) -> None:
    """A panel per task with all agents, and what they must be above."""
    figure, axes = success_figure(len(tasks), _TASKS_PER_ROW, (4.6, 3.0))
    for axis, (task, curves) in zip(axes, sorted(tasks.items()), strict=True):
        end = max(float(curve.steps[-1]) for curve in curves) / 1e3
        for number, curve in enumerate(curves):
            colour = _COLOURS.get(curve.agent, "#444444")
            _plot(axis, curve, colour, curve.label)
            _draw_interval(axis, curve, colour, end * (1.02 + 0.012 * number))
        if preset in (Preset.REWARD.value, Preset.BRIEF.value):
            _draw_imitation(axis, curves)
        for control in controls.get(task, []):
            label, style = CONTROLS[control.overrides]
            steps, mean = control.steps / 1e3, control.success.mean(axis=0)
            axis.plot(steps, mean, color=_CONTROL_COLOUR, ls=style, lw=1.2, label=label)
        axis.set_title(task.replace("_", " "), fontsize=10)
    fullest = max(axes, key=lambda axis: len(axis.lines))
    handles, labels = fullest.get_legend_handles_labels()
    of_controls = {_CONTROL, *(label for label, _ in CONTROLS.values())}
    names = [label if label in of_controls else label.rpartition(" (")[0] for label in labels]
    figure.legend(handles, names, fontsize=8, loc="lower center", ncols=4, frameon=False)
    rows_of_names, rows = -(-len(names) // 4), -(-len(tasks) // _TASKS_PER_ROW)
    bottom = (0.05 + 0.06 * rows_of_names) / rows
    save_figure(figure, path, bottom, f"preset {PRESET_NAMES.get(preset, preset)}")


def _draw_interval(axis: Axes, curve: RobotCurve, colour: str, at: float) -> None:
    """Wilson's interval of the last evaluation."""
    axis.vlines(at, *curve.last.interval, color=colour, lw=1.6)


def _draw_imitation(axis: Axes, curves: Sequence[RobotCurve]) -> None:
    """What the same demonstrations teach without reward: the first evaluation, with its interval.

    "Learned" is what lies above this line.
    """
    for curve in curves:
        if curve.agent == "equi-rsac":
            axis.axhline(curve.first.rate, color=_CONTROL_COLOUR, ls="--", lw=1, label=_CONTROL)
            axis.axhspan(*curve.first.interval, color=_CONTROL_COLOUR, alpha=0.1, lw=0)


def _draw_variants(
    variants: list[tuple[str, RobotCurve]], agents: dict[str, list[RobotCurve]], path: Path
) -> None:
    """A small panel per variant: the agent as it is, and with the one thing changed."""
    figure, axes = success_figure(len(variants), _VARIANTS_PER_ROW, (2.6, 2.3))
    for axis, (task, curve) in zip(axes, variants, strict=False):
        for usual in agents.get(task, []):
            if usual.agent == curve.agent:
                usual = usual.of_seeds(curve.seeds)
                _plot(axis, usual, _COLOURS.get(curve.agent, "#444444"), "as it is")
        _plot(axis, curve, _VARIANT_COLOUR, "changed")
        axis.set_title(fill(f"{task.replace('_', ' ')}: {curve.label}", 38), fontsize=7)
        axis.legend(fontsize=6, loc="best")
    save_figure(figure, path)


def _plot(axis: Axes, curve: RobotCurve, colour: str, label: str) -> None:
    plot_success(axis, curve.steps / 1e3, curve.success, colour, label, marker=".")
    axis.set_xlabel("environment steps [thousand]", fontsize=7)
