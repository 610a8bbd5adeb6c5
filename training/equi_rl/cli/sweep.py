# SPDX-License-Identifier: MIT
"""The ``equi-sweep`` command: run a whole sweep of experiments on the local cores.

    equi-sweep carflag --folder runs/carflag --workers 2       # start, or resume after being killed
    equi-sweep carflag --folder runs/carflag --list            # what there is and how far it is

A sweep is a list of jobs, each of them plain data: a name and the ``equi-train`` arguments that
make it true. Jobs share nothing but the file system, lock their own run folder, resume from their
checkpoint, and leave ``summary.json`` when finished. So any engine that can run a command (a
cluster queue, another machine on the same disk) can take jobs from ``--list --json`` beside this
runner; finished jobs are skipped, and a job taken by somebody else is left alone.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro
from rich.console import Console
from rich.table import Table

from equi_rl.results.carflag_experiments import carflag_sweep
from equi_rl.results.carflag_search import settings_sweep
from equi_rl.results.robot_experiments import ablations, comparison, fast_choices, reward_runs
from equi_rl.training.run_folder import RunFolder

LOGGER = logging.getLogger(__name__)
_POLL_S = 0.5


@dataclass(frozen=True)
class Job:
    """One run of a sweep: its folder below the sweep's, and the arguments of ``equi-train``."""

    name: str
    arguments: tuple[str, ...]

    def command(self, folder: Path) -> list[str]:
        """The command line that brings this job to its end, however often it has been stopped."""
        return [
            *(sys.executable, "-m", "equi_rl.cli.train", *self.arguments),
            *("--folder", str(folder / self.name), "--resume"),
        ]

    def status(self, folder: Path) -> str:
        """``finished``, ``started`` or ``waiting``."""
        run = RunFolder(folder / self.name)
        if run.is_finished:
            return "finished"
        return "started" if run.path.exists() else "waiting"


SWEEPS: dict[str, Callable[[], list[Job]]] = {
    "carflag": lambda: [Job(run.name, run.arguments()) for run in carflag_sweep()],
    "line-settings": lambda: [Job(*run) for run in settings_sweep()],
    "reward": lambda: [Job(*run) for run in reward_runs()],
    "fast-choices": lambda: [Job(*run) for run in fast_choices()],
    "comparison": lambda: [Job(*run) for run in comparison()],
    "ablations": lambda: [Job(*run) for run in ablations()],
}


@dataclass(frozen=True)
class SweepCommand:
    """Run every unfinished job of a sweep on the local cores; killing it loses nothing.

    Example: equi-sweep carflag --folder runs/carflag --workers 2
    """

    sweep: tyro.conf.Positional[
        Literal["carflag", "line-settings", "reward", "fast-choices", "comparison", "ablations"]
    ]
    """carflag: the paper's grid worlds. line-settings: both agents on the line with
    hyper-parameters drawn at random. On robot tasks: reward, learning from reward and its
    controls; fast-choices, what each choice of the preset fast brings; comparison of agents;
    ablations."""
    folder: Path
    """Folder of all runs of the sweep."""
    workers: int = 2
    """Jobs at a time; a CarFlag job uses one core, a robot job two."""
    niceness: int = 19
    """Scheduling priority of the jobs, 19 yields to everything else."""
    only: str = ""
    """Run only jobs whose name contains this text."""
    list: bool = False
    """Show the jobs and their state instead of running them."""
    json: bool = False
    """With --list: print name, state and command of each job as JSON."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    command = tyro.cli(SweepCommand, prog="equi-sweep", description=__doc__, args=arguments)
    jobs = [job for job in SWEEPS[command.sweep]() if command.only in job.name]
    if not jobs:
        LOGGER.error("no job of sweep %s contains %r in its name", command.sweep, command.only)
        return 2
    if command.workers < 1:
        LOGGER.error("workers = %d must be at least 1", command.workers)
        return 2
    if command.list:
        _show(jobs, command.folder, as_json=command.json)
        return 0
    command.folder.mkdir(parents=True, exist_ok=True)
    return run_jobs(jobs, command.folder, command.workers, command.niceness)


def run_jobs(jobs: Sequence[Job], folder: Path, workers: int, niceness: int) -> int:
    """Run unfinished jobs, ``workers`` at a time, in order; returns 0 if all are finished.

    When this process is asked to stop (Ctrl-C, SIGTERM) it stops its jobs; they resume next time.
    """
    started = time.monotonic()
    earlier_handler = signal.signal(signal.SIGTERM, _interrupt)
    waiting = iter([job for job in jobs if job.status(folder) != "finished"])
    running: dict[Job, subprocess.Popen[bytes]] = {}
    try:
        while _start(waiting, running, folder, workers, niceness) or running:
            time.sleep(_POLL_S)
            for job, process in list(running.items()):
                if process.poll() is not None:
                    del running[job]
                    _log_end(job, process.returncode, jobs, folder)
    except KeyboardInterrupt:
        LOGGER.info("stopping %d jobs; the same command resumes them", len(running))
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()
        return 130
    finally:
        signal.signal(signal.SIGTERM, earlier_handler)
    finished = sum(job.status(folder) == "finished" for job in jobs)
    hours = (time.monotonic() - started) / 3600
    LOGGER.info("%d of %d jobs finished; %.2f h this time", finished, len(jobs), hours)
    return 0 if finished == len(jobs) else 1


def _start(
    waiting: Iterator[Job],
    running: dict[Job, subprocess.Popen[bytes]],
    folder: Path,
    workers: int,
    niceness: int,
) -> bool:
    """Fill the free workers; returns whether any job was started."""
    before = len(running)
    while len(running) < workers and (job := next(waiting, None)) is not None:
        (folder / job.name).mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # one core per process
        with open(folder / job.name / "log.txt", "ab") as log:
            running[job] = subprocess.Popen(
                ["nice", "-n", str(niceness), *job.command(folder)],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
            )
        LOGGER.info("started %s", job.name)
    return len(running) > before


def _log_end(job: Job, status: int, jobs: Sequence[Job], folder: Path) -> None:
    done = sum(other.status(folder) == "finished" for other in jobs)
    if status == 0:
        LOGGER.info("finished %s (%d of %d)", job.name, done, len(jobs))
    else:
        LOGGER.error(
            "%s ended with status %d; see %s", job.name, status, folder / job.name / "log.txt"
        )


def _interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _show(jobs: Sequence[Job], folder: Path, *, as_json: bool) -> None:
    if as_json:
        rows = [
            {"name": j.name, "state": j.status(folder), "command": shlex.join(j.command(folder))}
            for j in jobs
        ]
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return
    table = Table("job", "state", title=str(folder))
    for job in jobs:
        table.add_row(job.name, job.status(folder))
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
