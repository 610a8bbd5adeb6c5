# SPDX-License-Identifier: MIT
"""Sees every job of a sweep through: once, in order, resumed after a kill, moved off lost machines.

Jobs share nothing but the file system: each claims its own run folder, resumes from its checkpoint
and leaves `summary.json` when it is finished. So it does not matter where the jobs of a sweep run,
or whether several sweeps work on one folder.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from equi_rl.data.folder_lease import DEAD_AFTER_S
from equi_rl.sweep.executor import Ended, Executor, StartedJob
from equi_rl.sweep.job import LOG_FILE, Job

LOGGER = logging.getLogger(__name__)
_POLL_S = 0.3
MAX_LOSSES = 5
"""A job that has lost so many machines is given up."""
RETRY_AFTER_S = 2.0
"""A lost job waits so long before it is handed over again, and twice as long each further time: a
cluster takes up to half a minute to notice that a machine is gone, and places jobs there until
then."""
IN_USE = os.EX_TEMPFAIL
"""Exit status of equi-train when another process or machine works in the run folder."""
STOPPED = 130


@dataclass
class Tracked:
    """A job, and what has become of it so far in this sweep."""

    job: Job
    started: StartedJob | None = None
    losses: int = 0
    not_before_s: float = 0.0
    result: str = ""
    """`finished` or why it is not; empty while it waits or runs."""


@dataclass
class Sweep:
    """Jobs in order of their importance, in a folder."""

    folder: Path
    executor: Executor
    tracked: list[Tracked] = field(default_factory=list)

    def run(self, jobs: Sequence[Job], show: Callable[[Sweep], None] = lambda _: None) -> int:
        """Bring every job to its end; 0 if all are finished, 130 if stopped by Ctrl-C or SIGTERM.

        When this process is asked to stop it ends its jobs; they resume next time.
        """
        began_s = time.monotonic()
        self.tracked = [Tracked(job) for job in jobs]
        for entry in self.tracked:
            if entry.job.status(self.folder) == "finished":
                entry.result = "finished"
        self.executor.require_room([entry.job for entry in self.tracked if not entry.result])
        earlier_handler = signal.signal(signal.SIGTERM, _interrupt)
        try:
            while any(not entry.result for entry in self.tracked):
                self._start_what_fits()
                for entry in self.tracked:
                    self._look_at(entry)
                show(self)
                time.sleep(_POLL_S)
        except KeyboardInterrupt:
            self._stop()
            return STOPPED
        except BaseException:
            self._stop()
            raise
        finally:
            signal.signal(signal.SIGTERM, earlier_handler)
        hours = (time.monotonic() - began_s) / 3600
        LOGGER.info("%d of %d jobs finished; %.2f h this time", *self.counts, hours)
        return 0 if self.counts[0] == self.counts[1] else 1

    @property
    def counts(self) -> tuple[int, int]:
        """Finished jobs, and all."""
        return sum(entry.result == "finished" for entry in self.tracked), len(self.tracked)

    def _start_what_fits(self) -> None:
        for entry in self.tracked:
            if entry.result or entry.started or time.monotonic() < entry.not_before_s:
                continue
            if not self.executor.can_start(entry.job):
                return  # in order: a small job does not overtake a large one for ever
            (self.folder / entry.job.name).mkdir(parents=True, exist_ok=True)
            entry.started = self.executor.start(entry.job, self.folder)
            LOGGER.info("started %s", entry.job.name)

    def _look_at(self, entry: Tracked) -> None:
        ended = entry.started.poll() if entry.started else None
        if ended is None:
            return
        entry.started = None
        name = entry.job.name
        if entry.job.status(self.folder) == "finished":
            entry.result = "finished"
            LOGGER.info("finished %s (%d of %d)", name, *self.counts)
        elif ended.status is None and entry.losses < MAX_LOSSES:
            entry.not_before_s = time.monotonic() + RETRY_AFTER_S * 2**entry.losses
            entry.losses += 1
            LOGGER.warning("%s lost its machine and continues on another: %s", name, ended.why)
        elif ended.status == IN_USE and entry.losses:
            # Its lost machine may not be known as dead on the shared disk yet.
            entry.not_before_s = time.monotonic() + DEAD_AFTER_S / 4
            LOGGER.info("%s waits until its lost machine counts as dead", name)
        else:
            entry.result = self._failure(ended)
            log = self.folder / name / LOG_FILE
            LOGGER.error("%s %s; see %s", name, entry.result, log)

    def _failure(self, ended: Ended) -> str:
        if ended.status is None:
            return f"lost its machine {MAX_LOSSES + 1} times, lastly: {ended.why}"
        if ended.status == IN_USE:
            return "is in use by another process or machine and was left alone"
        return f"ended with status {ended.status}" + (f" ({ended.why})" if ended.why else "")

    def _stop(self) -> None:
        running = [entry.started for entry in self.tracked if entry.started]
        LOGGER.info("stopping %d jobs; the same command resumes them", len(running))
        for started in running:
            started.stop()
        for started in running:
            started.join()


def _interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt
