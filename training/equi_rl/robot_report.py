"""Learning curves and a table of the runs on robot tasks.

One panel per task and preset, one curve per agent: mean over seeds and one standard deviation, on
the steps that all seeds of the agent have reached. Presets are never drawn together: they do not
use the same data. Runs with a setting that is not the preset's have a figure of their own.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from equi_core.statistics import SuccessRate
from equi_rl.robot_config import RobotConfigError, robot_run
from equi_rl.run_folder import RunFolder

AGENT_STYLES = {
    "equi-rsac": ("Equi-RSAC", "#1b6ca8"),
    "rsac": ("RSAC", "#d1791f"),
    "equi-cnn-rsac": ("equivariant CNN, plain LSTM", "#3a9a6d"),
    "equi-actor-rsac": ("equivariant actor only", "#8a5aa8"),
    "equi-critic-rsac": ("equivariant critic only", "#b5486b"),
    "rad-crop-rsac": ("RAD-Crop-RSAC", "#7d7d7d"),
    "drq-shift-rsac": ("DrQ-Shift-RSAC", "#b8a13c"),
}
_VARIANT_COLOURS = ("#d1791f", "#3a9a6d", "#8a5aa8", "#b5486b", "#7d7d7d", "#b8a13c")
_UNNAMED = ("task", "agent", "preset", "seed", "rounds", "evaluate_every", "evaluation_episodes")
"""Settings in which runs of one curve may differ, or which stand elsewhere."""


@dataclass(frozen=True)
class RobotCurve:
    """Evaluations of all seeds of one agent on one task.

    Attributes:
        label: agent and what is special about it.
        agent: its name in `equi-train`.
        is_variant: whether a setting differs from the preset's.
        steps: (points,) mean environment steps of the seeds, demonstrations included.
        success: (seeds, points).
        seeds: in the order of the rows.
        updates: gradient steps of the longest run.
        seconds: wall time of the runs, one each [s].
        last: successes of the last evaluation, all seeds together.
    """

    label: str
    agent: str
    is_variant: bool
    steps: np.ndarray
    success: np.ndarray
    seeds: tuple[int, ...]
    updates: int
    seconds: tuple[float, ...]
    last: SuccessRate

    def success_at(self, steps: float) -> np.ndarray:
        """Success (seeds,) after so many environment steps, between evaluations on a line."""
        return np.array([np.interp(steps, self.steps, row) for row in self.success])


Panel = tuple[str, str]
"""Task and preset."""


def collect_robot_runs(folder: Path) -> dict[Panel, list[RobotCurve]]:
    """Every robot run below a folder that has an evaluation, by task and preset."""
    groups: dict[Panel, dict[str, list[tuple[dict[str, Any], list[dict[str, str]]]]]]
    groups = defaultdict(lambda: defaultdict(list))
    for path in sorted(folder.rglob("config.json")):
        run_folder = RunFolder(path.parent)
        config = run_folder.read_config().get("config", {})
        rows = run_folder.read_progress()
        if "task" in config and rows:
            groups[config["task"], config["preset"]][_label(config)].append((config, rows))
    return {
        panel: [_curve(label, runs) for label, runs in sorted(by_label.items(), key=_rank)]
        for panel, by_label in groups.items()
    }


def write_robot_report(panels: dict[Panel, list[RobotCurve]], out: Path) -> list[Path]:
    """Write `robot_results.md` and one figure per preset; returns the files."""
    (out / "images").mkdir(parents=True, exist_ok=True)
    table = out / "robot_results.md"
    table.write_text("\n".join(_table(panels)) + "\n")
    written = [table]
    for preset in sorted({preset for _, preset in panels}):
        chosen = {task: curves for (task, of), curves in panels.items() if of == preset}
        agents = {
            task: [curve for curve in curves if not curve.is_variant]
            for task, curves in chosen.items()
        }
        varied = {task: _beside_their_agent(curves) for task, curves in chosen.items()}
        for suffix, of_task in (("", agents), ("_variants", varied)):
            of_task = {task: curves for task, curves in of_task.items() if curves}
            if of_task:
                path = out / "images" / f"robot_{preset}{suffix}.png"
                _draw(of_task, preset, path)
                written.append(path)
    return written


def _label(config: dict[str, Any]) -> str:
    name = AGENT_STYLES.get(config["agent"], (config["agent"], ""))[0]
    return ", ".join([name, *_specialities(config)])


def _specialities(config: dict[str, Any]) -> list[str]:
    """Every setting that differs from the preset's, as text."""
    try:
        usual = robot_run(config["task"], config["preset"], agent=config["agent"]).to_mapping()
    except RobotConfigError:
        return []  # a run of an agent or task that no longer exists is shown as it is
    return [
        f"{name.rpartition('.')[2].replace('_', ' ')} {value}"
        for name, value in _flat(config)
        if name.partition(".")[0] not in _UNNAMED and dict(_flat(usual)).get(name, value) != value
    ]


def _flat(settings: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Nested settings as (dotted name, value)."""
    found: list[tuple[str, Any]] = []
    for name, value in settings.items():
        if isinstance(value, dict):
            found += _flat(value, f"{prefix}{name}.")
        else:
            found.append((prefix + name, value))
    return found


def _beside_their_agent(curves: list[RobotCurve]) -> list[RobotCurve]:
    """Curves of varied agents, and those of the same agents as they are."""
    varied = {curve.agent for curve in curves if curve.is_variant}
    return [curve for curve in curves if curve.agent in varied]


def _rank(item: tuple[str, list[Any]]) -> tuple[int, str]:
    names = list(AGENT_STYLES)
    agent = item[1][0][0]["agent"]
    return (names.index(agent) if agent in names else len(names), item[0])


def _curve(label: str, runs: list[tuple[dict[str, Any], list[dict[str, str]]]]) -> RobotCurve:
    points = min(len(rows) for _, rows in runs)
    steps = [[int(row["environment_steps"]) for row in rows[:points]] for _, rows in runs]
    success = [
        [int(row["successes"]) / int(row["episodes"]) for row in rows[:points]] for _, rows in runs
    ]
    last = [rows[points - 1] for _, rows in runs]
    return RobotCurve(
        label,
        runs[0][0]["agent"],
        bool(_specialities(runs[0][0])),
        np.mean(steps, axis=0),
        np.array(success),
        tuple(config["seed"] for config, _ in runs),
        max(int(row["updates"]) for row in last),
        tuple(float(row["seconds"]) for row in last),
        SuccessRate(
            sum(int(row["successes"]) for row in last), sum(int(row["episodes"]) for row in last)
        ),
    )


def _table(panels: dict[Panel, list[RobotCurve]]) -> list[str]:
    lines = [
        "<!-- written by equi-report; edit the text around it elsewhere -->",
        "Success of the policy's mean in the last evaluation, on scenes that no run trains on; the",
        "interval is Wilson's over all seeds' episodes. Steps include the demonstrations. At equal",
        "steps: read off the curves, mean ± one standard deviation over seeds, where the agent of",
        "this task and preset with the fewest steps ends.",
        "",
        "| task | preset | agent | seeds | environment steps | updates | success at the end |"
        " at equal steps | best evaluation, mean | wall time of a run [min] |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (task, preset), curves in panels.items():
        common = min(float(curve.steps[-1]) for curve in curves)
        for curve in curves:
            equal = curve.success_at(common)
            spread = f" ± {equal.std():.2f}" if len(equal) > 1 else ""
            minutes = ", ".join(f"{seconds / 60:.0f}" for seconds in curve.seconds)
            lines.append(
                f"| {task} | {preset} | {curve.label} | {len(curve.seeds)} |"
                f" {curve.steps[-1]:,.0f} | {curve.updates:,} | {curve.last} |"
                f" {equal.mean():.2f}{spread} ({common:,.0f}) |"
                f" {curve.success.max(axis=1).mean():.2f} | {minutes} |"
            )
    return lines


def _draw(tasks: dict[str, list[RobotCurve]], preset: str, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        1, len(tasks), figsize=(4.0 * len(tasks) + 0.6, 3.1), squeeze=False, sharey=True
    )
    for axis, (task, curves) in zip(axes[0], sorted(tasks.items()), strict=True):
        taken = {AGENT_STYLES[c.agent][1] for c in curves if c.agent in AGENT_STYLES}
        spare = cycle(colour for colour in _VARIANT_COLOURS if colour not in taken)
        for curve in curves:
            colour = AGENT_STYLES.get(curve.agent, ("", "#444444"))[1]
            colour = next(spare) if curve.is_variant else colour
            mean, deviation = curve.success.mean(axis=0), curve.success.std(axis=0)
            count = len(curve.seeds)
            label = f"{curve.label} ({count} {'seed' if count == 1 else 'seeds'})"
            thousands = curve.steps / 1e3
            axis.plot(thousands, mean, color=colour, label=label, linewidth=1.6)
            axis.fill_between(
                thousands,
                np.clip(mean - deviation, 0, 1),
                np.clip(mean + deviation, 0, 1),
                color=colour,
                alpha=0.18,
                linewidth=0,
            )
        axis.set_title(f"{task.replace('_', ' ')}, preset {preset}", fontsize=10)
        axis.set_xlabel("environment steps [thousand]", fontsize=8)
        axis.set_ylim(-0.02, 1.02)
        axis.grid(alpha=0.3)
        axis.tick_params(labelsize=8)
        axis.legend(fontsize=7, loc="best")
    axes[0][0].set_ylabel("success, greedy evaluation", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
