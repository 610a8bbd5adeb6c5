# SPDX-License-Identifier: MIT
"""How far a training run is: a progress bar on a terminal, log lines on a pipe or in a file."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from equi_rl.training.run_folder import RunFolder

LOGGER = logging.getLogger(__name__)
_WRITE_EVERY_S = 2.0


class Status(NamedTuple):
    """What is shown."""

    done: int  # steps or rounds
    total: int
    success: float  # of the latest episodes; NaN before the first
    steps_per_s: float  # environment steps per second


class ProgressDisplay:
    """A context manager that gives a function to show a `Status` with.

    Args:
        console: where to show it.
        title: name of the run.
        counted: what `Status.done` counts, e.g. rounds.
        folder: of the run, where others can read how far it is; None: it is only shown.
    """

    def __init__(
        self, console: Console, title: str, counted: str, folder: RunFolder | None = None
    ) -> None:
        self._console = console
        self._title = title
        self._counted = counted
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn(f"{{task.completed:,.0f}} of {{task.total:,.0f}} {counted}"),
            TextColumn("success {task.fields[success]:.2f}  {task.fields[speed]:,.0f} steps/s"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._tenth = -1
        self._folder = folder
        self._written_s = -math.inf

    def __enter__(self) -> Callable[[Status], None]:
        self._progress.start()
        self._task = self._progress.add_task(self._title, total=1, success=float("nan"), speed=0.0)
        return self._show

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def _show(self, now: Status) -> None:
        self._progress.update(
            self._task,
            completed=now.done,
            total=now.total,
            success=now.success,
            speed=now.steps_per_s,
        )
        self._write(now)
        tenth = 10 * now.done // now.total
        if not self._console.is_terminal and tenth > self._tenth:
            self._tenth = tenth
            LOGGER.info(
                "%s: %s of %s %s, success %.2f, %.0f steps/s",
                self._title,
                f"{now.done:,}",
                f"{now.total:,}",
                self._counted,
                now.success,
                now.steps_per_s,
            )

    def _write(self, now: Status) -> None:
        """Tell `equi-sweep` and other watchers, not more often than they look."""
        if self._folder is None or time.monotonic() - self._written_s < _WRITE_EVERY_S:
            return
        self._written_s = time.monotonic()
        success = None if math.isnan(now.success) else round(now.success, 3)
        self._folder.write_status({**now._asdict(), "counted": self._counted, "success": success})
