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

    done: int  # of what is counted
    total: int
    success: float  # of the latest episodes; NaN before the first
    steps_per_s: float  # environment steps per second
    counted: str = ""  # what is counted now; "": what the display counts


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
            TextColumn("{task.completed:,.0f} of {task.total:,.0f} {task.fields[counted]}"),
            TextColumn("{task.fields[rates]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._tenth = (counted, -1)
        self._folder = folder
        self._written_s = -math.inf

    def __enter__(self) -> Callable[[Status], None]:
        self._progress.start()
        self._task = self._progress.add_task(self._title, total=1, counted=self._counted, rates="")
        return self._show

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def _show(self, now: Status) -> None:
        counted = now.counted or self._counted
        shown = [] if math.isnan(now.success) else [f"success {now.success:.2f}"]
        shown += [f"{now.steps_per_s:,.0f} steps/s"] if now.steps_per_s else []
        rates = ", ".join(shown)
        self._progress.update(
            self._task, completed=now.done, total=now.total, counted=counted, rates=rates
        )
        self._write(now)
        tenth = (counted, 10 * now.done // now.total)
        if not self._console.is_terminal and tenth != self._tenth:
            self._tenth = tenth
            LOGGER.info(
                "%s: %s of %s %s%s",
                self._title,
                f"{now.done:,}",
                f"{now.total:,}",
                counted,
                f", {rates}" if rates else "",
            )

    def _write(self, now: Status) -> None:
        """Tell `equi-sweep` and other watchers, not more often than they look."""
        if self._folder is None or time.monotonic() - self._written_s < _WRITE_EVERY_S:
            return
        self._written_s = time.monotonic()
        success = None if math.isnan(now.success) else round(now.success, 3)
        counted = now.counted or self._counted
        self._folder.write_status({**now._asdict(), "counted": counted, "success": success})
