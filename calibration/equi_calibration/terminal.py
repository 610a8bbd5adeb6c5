# SPDX-License-Identifier: MIT
"""What the commands show in the terminal: poses collected, verdict tables, delays."""

from __future__ import annotations

from contextlib import ExitStack

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn
from rich.table import Table

from equi_calibration.check.checks import Check
from equi_calibration.collect.latency import Delay, Latencies
from equi_calibration.collect.session import PoseReport
from equi_calibration.errors import CollectError
from equi_calibration.solve.solution import Solution


class LiveView:
    """Shows each stop of the arm: what was detected, what was refused and why."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._progress = Progress(SpinnerColumn(), TextColumn("{task.description}"))

    def __enter__(self) -> LiveView:
        self._stack.enter_context(self._progress)
        self._task = self._progress.add_task("", total=None)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def show(self, report: PoseReport) -> None:
        """Tell about one stop."""
        parts = []
        for name, detection in report.detections.items():
            if detection.accepted:
                parts.append(
                    f"{name}: {len(detection.corner_ids)} corners, {detection.tilt_deg:.0f} deg"
                )
            else:
                parts.append(f"{name}: {'; '.join(detection.rejections)}")
        if report.problem:
            parts.append(report.problem)
        line = " | ".join(parts)
        self._progress.update(
            self._task,
            completed=report.number + 1,
            total=report.total or None,
            description=f"pose {report.number + 1}" + (f"/{report.total}" if report.total else ""),
        )
        mark = "kept" if report.kept else "left out"
        self._progress.console.print(f"pose {report.number}: {mark}. {line}", highlight=False)


def print_checks(checks: tuple[Check, ...], passed: bool) -> None:
    """Every line of a verdict, then the verdict."""
    table = Table("", "quantity", "value", "limit", "", "")
    for item in checks:
        table.add_row(
            item.subject,
            item.name,
            item.value_text,
            item.limit_text,
            item.unit,
            "[green]pass[/]" if item.passed else "[bold red]FAIL[/]",
        )
    console = Console()
    console.print(table)
    console.print("[bold green]PASS[/]" if passed else "[bold red]FAIL[/]")


def print_solution(solution: Solution) -> None:
    """Camera poses, and which views were left out."""
    table = Table("camera", "x, y, z in base_link [m]", "95 % [mm]", "95 % [deg]", "px", "views")
    for name, camera in solution.cameras.items():
        x, y, z = camera.position_m
        table.add_row(
            name,
            f"{x:.4f}, {y:.4f}, {z:.4f}",
            f"{camera.position_uncertainty_mm:.2f}",
            f"{camera.rotation_uncertainty_deg:.3f}",
            f"{camera.reprojection_px:.3f}",
            str(camera.views),
        )
    console = Console()
    console.print(table)
    for file, reasons in solution.rejections.items():
        console.print(f"left out {file}: {'; '.join(reasons)}", highlight=False)


def print_delays(delays: Latencies) -> None:
    """Each delay with its standard error, and what the images' own stamps say."""
    table = Table("delay", "ms", "± ms", "by its stamps")
    for name, camera in delays.cameras.items():
        table.add_row(
            f"exposure to arrival, {name}", *_ms(camera.motion), f"{1000 * camera.stamped_s:.1f}"
        )
    table.add_row("command to motion", *_ms(delays.command_to_motion), "")
    Console().print(table)


def require_yes(question: str) -> None:
    """Ask before the arm moves; anything but yes ends the command."""
    if Console().input(f"{question} [yes/no] ").strip().lower() not in ("y", "yes"):
        raise CollectError("not confirmed; nothing moved")


def _ms(delay: Delay) -> tuple[str, str]:
    return f"{1000 * delay.delay_s:.1f}", f"{1000 * delay.sigma_s:.1f}"
