# SPDX-License-Identifier: MIT
"""Jobs on a SLURM cluster, submitted by `submitit`: one SLURM job each.

SLURM queues and places them. A job that lost its node, was preempted or ran out of its time is
handed over again and resumes from its checkpoint on the shared disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from equi_rl.cluster.worker import ClusterError
from equi_rl.sweep import launch
from equi_rl.sweep.executor import Ended, StartedJob
from equi_rl.sweep.job import LOG_FILE, Job

_LOST_STATES = ("NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "TIMEOUT", "REQUEUED")


class SlurmExecutor:
    """Jobs in a SLURM queue.

    Args:
        sign: file in the sweep's folder that every machine must see.
        time_min: time limit of a SLURM job; a run that takes longer is continued by another one.
        partition: of the cluster; empty: its default.
        cluster: `slurm`; submitit's `local` runs the same jobs here, for a test.
    """

    def __init__(
        self, sign: Path, time_min: int = 600, partition: str = "", cluster: str = "slurm"
    ) -> None:
        try:
            import submitit
        except ImportError:
            raise ClusterError(
                "submitit is not installed here; run `make setup CLUSTER=1`"
            ) from None
        try:
            self._executor = submitit.AutoExecutor(folder=sign.parent / ".slurm", cluster=cluster)
        except RuntimeError as error:
            raise ClusterError(
                f"this machine is not part of a SLURM cluster ({error}); run equi-sweep where"
                " `sbatch` works"
            ) from None
        self._sign = sign
        self._options: dict[str, Any] = {"timeout_min": time_min}
        if partition:
            self._options["slurm_partition"] = partition

    def require_room(self, jobs: Sequence[Job]) -> None:
        """SLURM refuses by itself what can never run, when it is submitted."""

    def can_start(self, job: Job) -> bool:
        """SLURM has a queue of its own."""
        return True

    def start(self, job: Job, folder: Path) -> StartedJob:
        """Submit it."""
        self._executor.update_parameters(
            name=job.name.replace("/", "-"),
            cpus_per_task=job.cores,
            mem_gb=max(1, round(job.memory_mib / 1024)),
            gpus_per_node=job.gpus,
            **self._options,
        )
        run = folder / job.name
        try:
            submitted = self._executor.submit(
                *(launch.run_to_end, job.command(folder), str(run), str(run / LOG_FILE)),
                *(0, str(self._sign)),
            )
        except Exception as error:  # submitit raises what sbatch said
            raise ClusterError(f"SLURM refuses job {job.name}: {error}") from error
        return _SlurmJob(submitted)


class _SlurmJob:
    def __init__(self, submitted: Any) -> None:
        self._submitted = submitted

    def poll(self) -> Ended | None:
        if not self._submitted.done():
            return None
        state = str(self._submitted.state).upper()
        if state in _LOST_STATES:
            return Ended(None, f"SLURM job {self._submitted.job_id} ended as {state}")
        error = self._submitted.exception()
        if error is not None:
            return Ended(1, f"SLURM job {self._submitted.job_id} ended as {state}: {error}")
        status, text = self._submitted.result()
        return Ended(2 if status is None else status, text)

    def stop(self) -> None:
        self._submitted.cancel()

    def join(self) -> None:
        self._submitted.wait()
