# SPDX-License-Identifier: MIT
"""equi-sweep: run a whole sweep of experiments, on this machine or on a cluster.

    equi-sweep carflag --folder runs/carflag                   # start, or resume after being killed
    equi-sweep comparison --folder /shared/comparison --on ray --address auto
    equi-sweep reward --folder /shared/reward --on slurm --partition cpu --time-min 600
    equi-sweep status --folder runs/carflag                    # how far it is, from anywhere
    equi-sweep carflag --folder runs/carflag --list --json     # the jobs, for another engine

A sweep is a list of jobs, each of them plain data: a name, the `equi-train` arguments that make
it true, and what it needs of a machine. Finished jobs are skipped, jobs of a lost machine go on
elsewhere from their last checkpoint, and a job that somebody else works on is left alone. On a
cluster the folder lies on a disk that all machines share.
"""

from __future__ import annotations

import json
import logging
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import tyro
from rich.console import Console
from rich.live import Live
from rich.logging import RichHandler

from equi_rl.cluster.worker import ClusterError
from equi_rl.sweep.executor import Executor, LocalExecutor
from equi_rl.sweep.job import Job
from equi_rl.sweep.runner import Sweep
from equi_rl.sweep.table import read_jobs, summary, table, view, write_jobs

LOGGER = logging.getLogger(__name__)
_REDRAW_S = 2.0
ROBOT_JOB_CORES = 2
"""One learns, one plays."""
ROBOT_JOB_MEMORY_MIB = 4096
"""A full replay buffer of 100,000 transitions takes 2 GiB of it."""


def _robot_jobs(sweep: str) -> list[Job]:
    # Imported when asked for: `status` then needs neither torch nor the simulator.
    from equi_rl.results import robot_experiments

    runs = {
        "reward": robot_experiments.reward_runs,
        "learning-rates": robot_experiments.learning_rates,
        "comparison": robot_experiments.comparison,
        "ablations": robot_experiments.ablations,
    }[sweep]()
    return [Job(*run, ROBOT_JOB_CORES, ROBOT_JOB_MEMORY_MIB) for run in runs]


def _carflag_jobs() -> list[Job]:
    from equi_rl.results.carflag_experiments import carflag_sweep

    return [Job(run.name, run.arguments()) for run in carflag_sweep()]


def _dreamer_jobs() -> list[Job]:
    from equi_rl.results.carflag_experiments import dreamer_sweep

    return [Job(run.name, run.arguments()) for run in dreamer_sweep()]


def _settings_jobs(search: Literal["LINE", "GRID"]) -> list[Job]:
    from equi_rl.results import carflag_search

    return [Job(*run) for run in getattr(carflag_search, search).sweep()]


SWEEPS: dict[str, Callable[[], list[Job]]] = {
    "carflag": _carflag_jobs,
    "dreamer": _dreamer_jobs,
    "line-settings": lambda: _settings_jobs("LINE"),
    "grid-settings": lambda: _settings_jobs("GRID"),
    "reward": lambda: _robot_jobs("reward"),
    "learning-rates": lambda: _robot_jobs("learning-rates"),
    "comparison": lambda: _robot_jobs("comparison"),
    "ablations": lambda: _robot_jobs("ablations"),
}


@dataclass(frozen=True)
class SweepCommand:
    """Run every unfinished job of a sweep; killing it loses nothing.

    Example: equi-sweep carflag --folder runs/carflag
    """

    sweep: tyro.conf.Positional[
        Literal[
            "status",
            "carflag",
            "dreamer",
            "line-settings",
            "grid-settings",
            "reward",
            "learning-rates",
            "comparison",
            "ablations",
        ]
    ]
    """status: show how far the sweep in the folder is. carflag: the paper's grid worlds.
    dreamer: DreamerV2 and V3 on two of them (needs `make baselines`). line-settings and
    grid-settings: both recurrent A2C agents with hyper-parameters drawn at random. On robot tasks:
    reward, learning from reward and its controls; learning-rates of imitation and of learning from
    values, for each kind of network; comparison of agents; ablations."""
    folder: Path
    """Folder of all runs of the sweep; with --on ray or slurm on a disk that all machines share."""
    on: Literal["local", "ray", "slurm"] = "local"
    """Where jobs run. local: processes of this machine. ray: tasks of a Ray cluster. slurm: jobs of
    a SLURM cluster. The last two need `make setup CLUSTER=1`."""
    address: str = "auto"
    """With ray: of the cluster's head, host:port. auto: the one on this machine, or RAY_ADDRESS."""
    workers: int | None = None
    """With local: jobs at a time. Default: as many as the cores allow."""
    job_cores: int = 0
    """Cores of a job; 0: what it needs, a CarFlag job one, a robot job two."""
    job_memory_mib: int = 0
    """Memory of a job [MiB]; 0: what it needs."""
    job_gpus: int = 0
    """GPUs of a job."""
    partition: str = ""
    """With slurm: the partition; default: that of the cluster."""
    time_min: int = 600
    """With slurm: time limit of a SLURM job [min]; a longer run is continued by another one."""
    niceness: int = 19
    """Scheduling priority of the jobs, 19 yields to everything else."""
    only: str = ""
    """Run only jobs whose name contains this text."""
    list: bool = False
    """Show the jobs and their state instead of running them."""
    json: bool = False
    """With --list or status: print name, state and command of each job as JSON."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    command = tyro.cli(SweepCommand, prog="equi-sweep", description=__doc__, args=arguments)
    console = Console(stderr=True)
    logging.basicConfig(
        level=logging.INFO,
        format="%(message)s",
        datefmt="%H:%M:%S",
        handlers=[RichHandler(console=console, show_path=False, show_level=False, markup=False)],
    )
    try:
        jobs = _jobs(command)
        if command.list or command.sweep == "status":
            _show(jobs, command.folder, as_json=command.json)
            return 0
        return _run(command, jobs, console)
    except ClusterError as error:
        console.print(f"equi-sweep: {error}", markup=False, style="red", soft_wrap=True)
        return 2


def _jobs(command: SweepCommand) -> list[Job]:
    """The jobs that are meant, with what they need."""
    known = read_jobs(command.folder) if command.sweep == "status" else SWEEPS[command.sweep]()
    jobs = [job for job in known if command.only in job.name]
    if not jobs:
        raise ClusterError(
            f"no job of sweep {command.sweep} contains '{command.only}' in its name; --list shows"
            " the names"
        )
    for name in ("workers", "job_cores", "job_memory_mib", "job_gpus"):
        value = getattr(command, name)
        least = 1 if name == "workers" else 0
        if value is not None and value < least:
            flag = name.replace("_", "-")
            raise ClusterError(f"--{flag} is {value}; it must be at least {least}")
    needs: dict[str, Any] = {
        name: value
        for name, value in (
            ("cores", command.job_cores),
            ("memory_mib", command.job_memory_mib),
            ("gpus", command.job_gpus),
        )
        if value
    }
    return [replace(job, **needs) for job in jobs]


def _run(command: SweepCommand, jobs: Sequence[Job], console: Console) -> int:
    folder = command.folder.resolve()
    sign = write_jobs(jobs, folder)
    sweep = Sweep(folder, _executor(command, sign))
    if not console.is_terminal:
        return sweep.run(jobs)
    with Live(console=console, refresh_per_second=2, transient=True) as live:
        drawn_s = 0.0

        def show(_: Sweep) -> None:
            nonlocal drawn_s
            if time.monotonic() - drawn_s > _REDRAW_S:
                live.update(table([view(job, folder) for job in jobs], str(folder)))
                drawn_s = time.monotonic()

        status = sweep.run(jobs, show)
    _show(jobs, folder, as_json=False)
    return status


def _executor(command: SweepCommand, sign: Path) -> Executor:
    """The place that was asked for; a cluster's library is imported only then."""
    if command.on == "ray":
        from equi_rl.sweep.ray_executor import RayExecutor

        return RayExecutor(sign, command.address, command.niceness)
    if command.on == "slurm":
        from equi_rl.sweep.slurm_executor import SlurmExecutor

        return SlurmExecutor(sign, command.time_min, command.partition)
    return LocalExecutor(command.workers, command.niceness)


def _show(jobs: Sequence[Job], folder: Path, *, as_json: bool) -> None:
    views = [view(job, folder) for job in jobs]
    if as_json:
        rows: list[dict[str, Any]] = [
            {**vars(row), "command": shlex.join(job.command(folder))}
            for job, row in zip(jobs, views, strict=True)
        ]
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return
    console = Console()
    console.print(table(views, str(folder)))
    console.print(summary(views))


if __name__ == "__main__":
    sys.exit(main())
