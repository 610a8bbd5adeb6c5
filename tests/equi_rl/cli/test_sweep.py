# SPDX-License-Identifier: MIT
"""Specification of equi-sweep: everything runs once, stopped sweeps resume, others stay alone."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

from equi_rl.carflag.run import CarFlagRun
from equi_rl.cli import sweep
from equi_rl.cli.sweep import main
from equi_rl.results.carflag_experiments import carflag_sweep
from equi_rl.sweep.executor import LocalExecutor
from equi_rl.sweep.job import ATTEMPTS_FILE, Job
from equi_rl.sweep.runner import Sweep
from equi_rl.sweep.table import JobView, table, view, write_jobs
from equi_rl.training.run_folder import RunFolder


def tiny_job(seed, steps=100):
    run = CarFlagRun(
        "carflag-1d", seeds=(seed,), steps=steps, evaluate_every=steps, evaluation_episodes=2
    )
    return Job(f"seed{seed}", (*run.arguments(), "--a2c.envs", "2", "--a2c.rollout-steps", "5"))


def run_jobs(jobs, folder, workers):
    return Sweep(folder, LocalExecutor(workers, niceness=0)).run(jobs)


def test_the_published_sweep_has_every_case_once_with_four_seeds_or_more():
    runs = carflag_sweep()
    assert len({run.name for run in runs}) == len(runs) == 26
    on_the_line = [run for run in runs if run.domain == "carflag-1d" and run.offset == 0]
    seeds = {(run.size, run.agent == "dpfrl"): len(run.seeds) for run in on_the_line}
    assert seeds == {(50, False): 16, (40, False): 16, (50, True): 4}
    seeds_of = {(run.size, run.offset, run.agent == "dpfrl"): len(run.seeds) for run in runs}
    assert seeds_of[9, 0, False] == 8
    assert seeds_of[9, 0, True] == seeds_of[11, 0, False] == 4
    assert {len(run.seeds) for run in runs if run.offset} == {4}
    offsets = {(run.domain, run.offset): run.steps for run in runs if run.offset}
    assert offsets[("carflag-1d", -10)] == 1_000_000
    assert offsets[("carflag-2d", 2)] == 2_000_000
    assert len(offsets) == 8


def test_jobs_run_to_the_end_and_finished_ones_are_skipped(tmp_path):
    jobs = [tiny_job(0), tiny_job(1)]
    assert run_jobs(jobs, tmp_path, workers=2) == 0
    stamps = [(tmp_path / job.name / "summary.json").stat().st_mtime_ns for job in jobs]
    assert run_jobs(jobs, tmp_path, workers=1) == 0
    assert stamps == [(tmp_path / job.name / "summary.json").stat().st_mtime_ns for job in jobs]


def test_a_failing_job_is_reported_and_does_not_stop_the_others(tmp_path, caplog):
    impossible = Job("impossible", ("carflag", "--domain", "carflag-1d", "--offset", "99"))
    assert run_jobs([impossible, tiny_job(0)], tmp_path, workers=1) == 1
    assert RunFolder(tmp_path / "seed0").is_finished
    assert "impossible ended with status 2" in caplog.text
    assert "offset = 99" in (tmp_path / "impossible" / "log.txt").read_text()


def test_a_job_taken_by_another_process_is_left_alone(tmp_path, caplog):
    job = tiny_job(0)
    config = {"whoever": "holds it"}
    with RunFolder(tmp_path / job.name).claim(config, resume=False):
        assert run_jobs([job], tmp_path, workers=1) == 1
    assert "in use" in (tmp_path / job.name / "log.txt").read_text()
    assert "was left alone" in caplog.text


def test_a_stopped_sweep_takes_its_jobs_along_and_goes_on_later(tmp_path):
    # Given a sweep of one long job, run by a process of its own
    program = (
        "import sys; from pathlib import Path; from equi_rl.sweep.job import Job\n"
        "from equi_rl.sweep.executor import LocalExecutor\n"
        "from equi_rl.sweep.runner import Sweep\n"
        f"job = Job('long', {tiny_job(0, steps=10**7).arguments!r})\n"
        f"sys.exit(Sweep(Path({str(tmp_path)!r}), LocalExecutor(1, 0)).run([job]))"
    )
    runner = subprocess.Popen([sys.executable, "-c", program], env=dict(os.environ))
    folder = RunFolder(tmp_path / "long")
    try:
        deadline = time.monotonic() + 600
        while not (folder.path / "config.json").exists():
            assert time.monotonic() < deadline
            assert runner.poll() is None
            time.sleep(0.01)
    finally:
        # When it is asked to stop
        runner.send_signal(signal.SIGTERM)
        status = runner.wait(timeout=300)
    assert status == 130
    # Then nobody holds the run folder any more, and the job counts as started
    config = folder.read_config()["config"]
    with folder.claim(config, resume=True):
        pass
    assert Job("long", ()).status(tmp_path) == "started"


def test_the_list_tells_other_engines_what_to_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sweep.SWEEPS, "carflag", lambda: [tiny_job(0), tiny_job(1)])
    arguments = ["carflag", "--folder", str(tmp_path), "--list", "--json"]
    assert main(arguments) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in listed] == ["seed0", "seed1"]
    assert {row["state"] for row in listed} == {"waiting"}
    subprocess.run(listed[1]["command"], shell=True, check=True, capture_output=True)
    main(arguments)
    states = [row["state"] for row in json.loads(capsys.readouterr().out)]
    assert states == ["waiting", "finished"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--only", "no such run"], "no job of sweep carflag contains 'no such run'"),
        (["--workers", "0"], "--workers is 0; it must be at least 1"),
        (["--job-cores", "4000"], "needs 4000 cores; this machine has"),
        (["--job-memory-mib", "900000000"], "needs 900000000 MiB of memory; this machine has"),
        (["--on", "ray", "--address", "127.0.0.1:9"], "no Ray cluster answers at 127.0.0.1:9"),
        (["--on", "ray", "--address", "nonsense"], "it must be 'auto' or host:port"),
        (["--on", "slurm"], "is not part of a SLURM cluster"),
    ],
)
def test_a_request_that_cannot_be_met_is_refused_in_one_sentence(more, words, tmp_path, capsys):
    pytest.importorskip("ray", reason="make setup CLUSTER=1")
    assert main(["carflag", "--folder", str(tmp_path), *more]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.glob("carflag*"))  # nothing was begun


def test_ray_that_is_not_installed_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)  # as if
    assert main(["carflag", "--folder", str(tmp_path), "--on", "ray"]) == 2
    assert "run `make setup CLUSTER=1`" in " ".join(capsys.readouterr().err.split())


def test_status_tells_how_far_a_sweep_is_from_its_folder_alone(tmp_path, capsys):
    jobs = [tiny_job(0), tiny_job(1), tiny_job(2)]
    write_jobs(jobs, tmp_path)
    assert run_jobs(jobs[:1], tmp_path, workers=1) == 0
    config = {"whoever": "holds it"}
    with RunFolder(tmp_path / jobs[1].name).claim(config, resume=False):
        assert main(["status", "--folder", str(tmp_path), "--json"]) == 0
        rows = json.loads(capsys.readouterr().out)
        main(["status", "--folder", str(tmp_path)])
    assert [row["state"] for row in rows] == ["finished", "running", "waiting"]
    assert rows[0]["attempts"] == 1
    assert rows[0]["share"] == 1.0
    assert rows[0]["steps_per_s"] > 0
    assert "1 finished, 1 running, 1 waiting" in capsys.readouterr().out


def test_a_job_that_was_ended_before_it_had_written_anything_has_stopped(tmp_path):
    job = tiny_job(0)
    assert view(job, tmp_path).state == "waiting"
    attempts = tmp_path / job.name / ATTEMPTS_FILE
    attempts.parent.mkdir(parents=True)
    attempts.write_text(json.dumps({"machine": "node", "pid": 1}) + "\n")
    assert view(job, tmp_path).state == "stopped"


def test_a_long_name_of_a_job_is_whole_on_a_narrow_screen():
    name = "block_pushing/equi-cnn-rsac/own_successes/seed-0"
    screen = Console(width=80, record=True, file=io.StringIO())
    screen.print(table([JobView(name, "finished", "machine", 1, 1.0, 26.0, 0.86)], "a sweep"))
    lines = [line.split("│") for line in screen.export_text().splitlines() if "│" in line]
    assert "".join(cells[1].strip() for cells in lines) == name


def test_status_of_a_folder_without_a_sweep_says_so(tmp_path, capsys):
    assert main(["status", "--folder", str(tmp_path)]) == 2
    assert "holds no sweep" in capsys.readouterr().err


def test_jobs_share_the_cores(tmp_path):
    executor = LocalExecutor(niceness=0)
    cores = os.cpu_count() or 1
    small, large = Job("small", (), cores=1), Job("large", (), cores=cores)
    assert executor.can_start(large)
    started = executor.start(small, tmp_path)
    try:
        assert not executor.can_start(large)
        assert executor.can_start(small) == (cores > 1)
    finally:
        started.join()
    assert executor.can_start(large)
