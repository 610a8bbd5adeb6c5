# SPDX-License-Identifier: MIT
"""The soak test tells a process that grows from one that does not."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable
from multiprocessing.shared_memory import SharedMemory

import pytest

from equi_system_tests.studies import soak
from equi_system_tests.studies.soak import Sample, Usage, descendants, problems_of, usage

STILL = Usage(resident_mb=200.0, threads=12, files=40)


def samples(
    change: Callable[[float, Usage], Usage] = lambda _, held: held,
    segments: Callable[[float], int] = lambda _: 20,
) -> list[Sample]:
    """Twelve minutes, one sample in ten seconds; `change` gets the time [s]."""
    times_s = [10.0 * number for number in range(73)]
    return [
        Sample(time_s, {"driver (7)": change(time_s, STILL)}, segments(time_s), 100.0)
        for time_s in times_s
    ]


def test_a_process_that_stays_as_it_is_is_no_problem() -> None:
    assert problems_of(samples(), 120.0) == []


def test_what_grows_while_warming_up_is_no_problem() -> None:
    warming = samples(
        lambda time_s, held: dataclasses.replace(held, resident_mb=min(150 + time_s, 260.0))
    )
    assert problems_of(warming, 120.0) == []


@pytest.mark.parametrize(
    ("field", "per_s", "words"),
    [
        ("resident_mb", 0.1, "driver (7): memory grew by 30.5 MB, at most 20 is allowed"),
        ("threads", 0.02, "driver (7): threads grew from"),
        ("files", 0.02, "driver (7): open files grew from"),
    ],
)
def test_what_goes_on_growing_is_named(field: str, per_s: float, words: str) -> None:
    growing = samples(
        lambda time_s, held: dataclasses.replace(
            held, **{field: type(getattr(held, field))(getattr(held, field) + per_s * time_s)}
        )
    )
    (problem,) = problems_of(growing, 120.0)
    assert problem.startswith(words)


def test_shared_memory_that_is_left_behind_is_named() -> None:
    leaving = samples(segments=lambda time_s: 20 + int(time_s / 60))
    assert problems_of(leaving, 120.0) == ["shared-memory segments grew from 26 to 32"]


def test_a_launch_without_processes_is_no_success() -> None:
    empty = [dataclasses.replace(sample, processes={}) for sample in samples()]
    assert problems_of(empty, 120.0) == ["no process lived long enough to be judged"]


def test_it_finds_the_processes_of_a_process_and_what_they_hold() -> None:
    program = "import sys, time; held = bytearray(50_000_000); print(1, flush=True); time.sleep(60)"
    with subprocess.Popen(
        [sys.executable, "-c", program, "__node:=greedy"], stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert descendants(os.getpid())[child.pid] == "greedy"
        held = usage(child.pid)
        assert held is not None
        assert held.resident_mb > 50.0
        assert held.threads == 1
        assert held.files >= 3
        child.kill()
    assert usage(child.pid) is None


@pytest.mark.slow
@pytest.mark.ros
@pytest.mark.timeout(1200)
def test_ten_minutes_of_episodes_through_all_nodes_grow_nothing(
    ros_domain_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", str(ros_domain_id))
    assert soak.main(["--minutes", "10"]) == 0


def test_shared_memory_of_others_is_not_counted() -> None:
    program = (
        "from multiprocessing.shared_memory import SharedMemory\n"
        "mine = SharedMemory(create=True, size=5_000_000)\n"
        "print(mine.name, flush=True)\n"
        "input()\n"
        "mine.unlink()\n"
    )
    others = SharedMemory(create=True, size=1_000_000)
    try:
        with subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as child:
            assert child.stdout is not None
            name = child.stdout.readline().strip()
            sample = soak.take_sample(os.getpid(), 0.0)
            held = soak.mapped_segments(child.pid)
            child.communicate("\n")
    finally:
        others.close()
        others.unlink()

    assert list(held) == [f"/dev/shm/{name}"]
    assert held[f"/dev/shm/{name}"] == pytest.approx(5e6, abs=4096)
    assert sample.segments == 1
    assert sample.segments_mb == pytest.approx(5.0, abs=0.01)
