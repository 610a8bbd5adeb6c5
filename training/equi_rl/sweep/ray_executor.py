# SPDX-License-Identifier: MIT
"""Jobs on a Ray cluster: one task each, which runs the job's command on any node with room.

Ray queues and places the tasks; it does not retry them. A task whose node is lost is reported as
such, and the sweep hands the job over again: it resumes from its checkpoint on the shared disk. A
job's process ends with its task, and a task with its node or its sweep.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from equi_rl.cluster.ray_cluster import connect, nodes
from equi_rl.cluster.worker import ClusterError
from equi_rl.sweep import launch
from equi_rl.sweep.executor import Ended, StartedJob, require_fitting
from equi_rl.sweep.job import LOG_FILE, Job

_JOIN_LIMIT_S = 30.0


class RayExecutor:
    """Tasks on the cluster at an address."""

    def __init__(self, sign: Path, address: str = "auto", niceness: int = 19) -> None:
        self._ray = connect(address)
        self._sign, self._niceness = sign, niceness

    def require_room(self, jobs: Sequence[Job]) -> None:
        """Every job fits the largest node there is."""
        alive = nodes(self._ray)
        if not alive:
            raise ClusterError("the Ray cluster has no node that is alive; start one")
        require_fitting(
            jobs,
            max(node.cores for node in alive),
            max(node.memory_mib for node in alive),
            max(node.gpus for node in alive),
            f"the largest of the {len(alive)} nodes",
        )

    def can_start(self, job: Job) -> bool:
        """Ray has a queue of its own."""
        return True

    def start(self, job: Job, folder: Path) -> StartedJob:
        """Hand a task to Ray."""
        run = folder / job.name
        task = self._ray.remote(_run_on_node).options(
            name=job.name,
            num_cpus=job.cores,
            num_gpus=job.gpus,
            memory=job.memory_mib * 2**20,
            max_retries=0,
            scheduling_strategy="SPREAD",
        )
        reference = task.remote(
            job.command(folder), str(run), str(run / LOG_FILE), self._niceness, str(self._sign)
        )
        return _RayJob(self._ray, reference)


def _run_on_node(
    command: list[str], run_folder: str, log: str, niceness: int, sign: str
) -> tuple[int | None, str]:
    """Body of a task: `launch.run_to_end`, with the node's short name as `nodes` gives it."""
    import ray

    os.environ[launch.NODE_VARIABLE] = ray.get_runtime_context().get_node_id()[:6]
    return launch.run_to_end(command, run_folder, log, niceness, sign)


class _RayJob:
    def __init__(self, ray: Any, reference: Any) -> None:
        self._ray, self._reference = ray, reference

    def poll(self) -> Ended | None:
        ready, _ = self._ray.wait([self._reference], timeout=0)
        return self._result() if ready else None

    def stop(self) -> None:
        self._ray.cancel(self._reference)  # the task ends its process

    def join(self) -> None:
        ready, _ = self._ray.wait([self._reference], timeout=_JOIN_LIMIT_S)
        if not ready:
            self._ray.cancel(self._reference, force=True)  # the kernel ends its process

    def _result(self) -> Ended:
        errors = self._ray.exceptions
        try:
            status, text = self._ray.get(self._reference)
        except (errors.TaskCancelledError, errors.RayTaskError) as error:
            return Ended(1, f"the task failed: {error}")
        except errors.RayError as error:  # the node, its worker or its memory
            return Ended(None, str(error).strip().splitlines()[0])
        return Ended(2 if status is None else status, text)
