# SPDX-License-Identifier: MIT
"""What a sweep needs of the place where its jobs run, and the place that is always there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from equi_rl.cluster.worker import ClusterError
from equi_rl.sweep import launch
from equi_rl.sweep.job import LOG_FILE, Job


@dataclass(frozen=True)
class Ended:
    """How a started job ended."""

    status: int | None
    """Exit status; None: the machine was lost, and the job can go on on another one."""
    why: str = ""


class StartedJob(Protocol):
    """A job that was handed to an executor."""

    def poll(self) -> Ended | None:
        """None while it waits or runs."""

    def stop(self) -> None:
        """Ask it to end; returns at once."""

    def join(self) -> None:
        """Wait until nothing of it runs any more."""


class Executor(Protocol):
    """Runs commands somewhere."""

    def require_room(self, jobs: Sequence[Job]) -> None:
        """Raise ClusterError if a job can never run here."""

    def can_start(self, job: Job) -> bool:
        """Whether it can be handed over now."""

    def start(self, job: Job, folder: Path) -> StartedJob:
        """Hand a job over."""


class LocalExecutor:
    """Processes of this machine, as many at a time as the cores allow."""

    def __init__(self, workers: int | None = None, niceness: int = 19) -> None:
        self._workers, self._niceness = workers, niceness
        self._cores = os.cpu_count() or 1
        self._running: list[tuple[Job, _LocalJob]] = []

    def require_room(self, jobs: Sequence[Job]) -> None:
        """Every job fits the whole machine, unless the number of workers was given."""
        if self._workers is not None:
            return
        memory_mib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20
        require_fitting(jobs, self._cores, memory_mib, gpus=None, place="this machine")

    def can_start(self, job: Job) -> bool:
        """Whether enough cores are free, or a worker is."""
        self._running = [entry for entry in self._running if entry[1].poll() is None]
        if self._workers is not None:
            return len(self._running) < self._workers
        used = sum(entry[0].cores for entry in self._running)
        return used + job.cores <= self._cores

    def start(self, job: Job, folder: Path) -> StartedJob:
        """Start its process."""
        run = folder / job.name
        started = _LocalJob(launch.start(job.command(folder), run, run / LOG_FILE, self._niceness))
        self._running.append((job, started))
        return started


class _LocalJob:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def poll(self) -> Ended | None:
        status = self._process.poll()
        return None if status is None else Ended(status)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()

    def join(self) -> None:
        launch.end(self._process)


def require_fitting(
    jobs: Sequence[Job], cores: float, memory_mib: float, gpus: float | None, place: str
) -> None:
    """Raise ClusterError naming the first job that needs more than there is."""
    for job in jobs:
        for what, needed, there in (
            ("cores", job.cores, cores),
            ("MiB of memory", job.memory_mib, memory_mib),
            ("GPUs", job.gpus, gpus),
        ):
            if there is not None and needed > there:
                raise ClusterError(
                    f"job {job.name} needs {needed} {what}; {place} has {there:.0f}; nothing was"
                    " started. Ask for less with --job-cores, --job-memory-mib or --job-gpus, or"
                    " add a larger machine"
                )
