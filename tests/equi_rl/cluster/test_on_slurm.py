# SPDX-License-Identifier: MIT
"""The SLURM executor with submitit's own local queue in place of SLURM, which is not at hand."""

from __future__ import annotations

import os
import signal

import pytest

from equi_rl.sweep.job import Job
from equi_rl.sweep.runner import Sweep
from equi_rl.sweep.slurm_executor import SlurmExecutor
from equi_rl.sweep.table import view, write_jobs

pytest.importorskip("submitit", reason="submitit is not installed: make setup CLUSTER=1")


def a_job(seed: int, steps: int = 100) -> Job:
    return Job(
        f"seed{seed}",
        (
            *("carflag", "--domain", "carflag-1d", "--seeds", str(seed), "--steps", str(steps)),
            *("--evaluate-every", str(steps), "--evaluation-episodes", "2"),
            *("--a2c.envs", "2", "--a2c.rollout-steps", "5"),
        ),
    )


def a_sweep(jobs, folder) -> Sweep:
    sign = write_jobs(jobs, folder)
    return Sweep(folder, SlurmExecutor(sign, cluster="local"))


def test_jobs_are_submitted_and_run_to_their_end_and_a_failing_one_is_told(tmp_path, caplog):
    impossible = Job("impossible", ("carflag", "--domain", "carflag-1d", "--offset", "99"))
    jobs = [a_job(0), impossible]
    assert a_sweep(jobs, tmp_path).run(jobs) == 1
    assert [view(job, tmp_path).state for job in jobs] == ["finished", "waiting"]
    assert "impossible ended with status 2" in caplog.text
    assert "offset = 99" in (tmp_path / "impossible" / "log.txt").read_text()


def test_a_stopped_sweep_cancels_its_jobs(tmp_path):
    job = a_job(0, steps=10**8)

    def interrupt(_: Sweep) -> None:
        if view(job, tmp_path).state == "running":
            os.kill(os.getpid(), signal.SIGINT)

    assert a_sweep([job], tmp_path).run([job], interrupt) == 130
    assert view(job, tmp_path).state == "stopped"
