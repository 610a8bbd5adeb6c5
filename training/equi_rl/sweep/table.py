# SPDX-License-Identifier: MIT
"""How far the jobs of a sweep are, read from their folders: the same live and afterwards."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from equi_core.files.plain_data import PlainDataError, read_json
from equi_rl.cluster.worker import ClusterError
from equi_rl.data.atomic_file import write_atomically
from equi_rl.data.folder_lease import FolderLease
from equi_rl.sweep.job import Job
from equi_rl.training.run_folder import RunFolder

SWEEP_FILE = "sweep.json"
"""In a sweep's folder: its jobs. Also the sign by which other machines know the folder."""


@dataclass(frozen=True)
class JobView:
    """What is known of a job."""

    name: str
    state: str
    """waiting, running, stopped or finished."""
    machine: str
    attempts: int
    share: float | None
    """How much is done, 0 to 1."""
    steps_per_s: float | None
    success: float | None
    """Of the latest episodes."""

    def cells(self) -> tuple[str, ...]:
        """As a row of text."""
        return (
            self.name,
            self.state,
            self.machine,
            str(self.attempts),
            "" if self.share is None else f"{100 * self.share:.0f} %",
            "" if self.steps_per_s is None else f"{self.steps_per_s:,.0f}",
            "" if self.success is None else f"{self.success:.2f}",
        )


def view(job: Job, folder: Path) -> JobView:
    """A job as its run folder tells."""
    run = RunFolder(folder / job.name)
    status = run.read_status()
    attempts = job.attempts(folder)
    owner = FolderLease(run.path).alive_owner()
    # One that was ended before it had written its settings was started all the same.
    state = "stopped" if attempts or (run.path / "config.json").exists() else "waiting"
    if run.is_finished:
        state = "finished"
    elif owner is not None:
        state = "running"
    total = status.get("total")
    share = status["done"] / total if total else None
    return JobView(
        job.name,
        state,
        attempts[-1]["machine"] if attempts else "",
        len(attempts),
        1.0 if run.is_finished else share,
        status.get("steps_per_s"),
        status.get("success"),
    )


def table(views: Sequence[JobView], title: str) -> Table:
    """All jobs."""
    made = Table(title=title)
    made.add_column("job", overflow="fold")  # a name that is cut off on a narrow screen is no name
    made.add_column("state")
    for column in ("machine", "starts", "done", "steps/s", "success"):
        made.add_column(column, justify="right")
    for row in views:
        made.add_row(*row.cells())
    return made


def summary(views: Sequence[JobView]) -> str:
    """One line."""
    states = [row.state for row in views]
    counted = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
    return ", ".join(counted)


def write_jobs(jobs: Sequence[Job], folder: Path) -> Path:
    """Leave the jobs of a sweep in its folder, beside those that are there already."""
    known = {job.name: job for job in read_jobs(folder)} if (folder / SWEEP_FILE).exists() else {}
    known |= {job.name: job for job in jobs}
    content = {"jobs": [job.to_mapping() for job in known.values()]}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / SWEEP_FILE
    write_atomically(path, json.dumps(content, indent=1) + "\n")
    return path


def read_jobs(folder: Path) -> list[Job]:
    """The jobs of the sweep in a folder."""
    try:
        return [Job.from_mapping(entry) for entry in read_json(folder / SWEEP_FILE)["jobs"]]
    except (PlainDataError, KeyError, TypeError) as error:
        raise ClusterError(
            f"{folder} holds no sweep ({error}); start one with `equi-sweep NAME --folder {folder}`"
        ) from None
