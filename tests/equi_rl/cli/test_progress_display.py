# SPDX-License-Identifier: MIT
"""Specification of the progress display: something is shown from the first demonstration on."""

from __future__ import annotations

import io
import logging

from rich.console import Console

from equi_rl.cli.progress_display import ProgressDisplay, Status
from equi_rl.cli.train import _pretraining
from equi_rl.training.presets import robot_run
from equi_rl.training.progress import Progress
from equi_rl.training.run_folder import RunFolder

NAN = float("nan")


def test_before_the_first_round_it_counts_demonstrations_then_updates_of_imitation():
    run = robot_run("block_picking", "reward")
    shown = [
        _pretraining(run, progress)
        for progress in (
            Progress(episodes=3),
            Progress(episodes=80, updates=7),
            Progress(episodes=90, updates=2000, rounds=1),
        )
    ]
    assert [status and status[:2] for status in shown] == [(3, 80), (7, 2000), None]
    assert [status and status.counted for status in shown] == [
        "demonstrations",
        "updates of imitation",
        None,
    ]


def test_without_imitation_the_steps_are_counted_at_once():
    run = robot_run("block_picking", "paper")
    assert _pretraining(run, Progress(episodes=80, updates=5, environment_steps=1100)) is None


def test_a_file_gets_a_line_at_every_tenth_of_every_phase(caplog):
    caplog.set_level(logging.INFO)
    with ProgressDisplay(Console(file=io.StringIO()), "pushing", "steps") as show:
        for number in range(1, 81):
            show(Status(number, 80, NAN, 0.0, "demonstrations"))
        show(Status(1000, 41_000, 0.5, 12.0))
    assert caplog.messages[0] == "pushing: 1 of 80 demonstrations"
    assert caplog.messages[1] == "pushing: 8 of 80 demonstrations"
    assert caplog.messages[-1] == "pushing: 1,000 of 41,000 steps, success 0.50, 12 steps/s"
    assert len(caplog.messages) == 12


def test_a_terminal_shows_what_is_counted():
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=120)
    with ProgressDisplay(console, "pushing", "steps") as show:
        show(Status(3, 80, NAN, 0.0, "demonstrations"))
        show(Status(2, 4, 0.25, 9.0))
    text = file.getvalue()
    assert "3 of 80 demonstrations" in text or "2 of 4 steps" in text
    assert "success 0.25, 9 steps/s" in text
    assert "nan" not in text


def test_a_watcher_reads_the_phase(tmp_path):
    folder = RunFolder(tmp_path)
    with ProgressDisplay(Console(file=io.StringIO()), "pushing", "steps", folder) as show:
        show(Status(3, 80, NAN, 0.0, "demonstrations"))
    status = folder.read_status()
    assert (status["done"], status["counted"], status["success"]) == (3, "demonstrations", None)
