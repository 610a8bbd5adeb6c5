# SPDX-License-Identifier: MIT
"""Specification of a pool of workers: results in order, whoever did them and whoever died."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from equi_rl.cluster.pool import DEATHS_PER_ITEM, PoolError, WorkerPool
from equi_rl.cluster.process_worker import ProcessBackend


class Multiply:
    """Multiplies; some items do something else instead."""

    def __init__(self, settings: dict[str, object]) -> None:
        if settings.get("broken"):
            raise ValueError("this cannot be built")
        self._settings = settings

    def __call__(self, shared: int, item: Any) -> object:
        if item == "pid":
            return os.getpid()
        if item == "raise":
            raise ValueError("no such number")
        if item == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if item == "die once":
            marker = Path(str(self._settings["marker"]))
            if not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return "done by another"
        if isinstance(item, tuple):
            Path(item[0]).touch()
            time.sleep(60)
        return shared * item


def a_pool(workers: int, **settings: object) -> WorkerPool:
    # Workers find this module as tests do: by its folder.
    return WorkerPool(ProcessBackend(Multiply, settings), workers)


@pytest.fixture(autouse=True)
def importable_by_workers(monkeypatch):
    folder = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setattr(Multiply, "__module__", Path(__file__).stem)
    monkeypatch.setitem(sys.modules, Path(__file__).stem, sys.modules[__name__])


@pytest.mark.parametrize("workers", [1, 3])
def test_results_come_in_the_order_of_the_items(workers):
    with closing(a_pool(workers)) as pool:
        first = pool.submit(10, list(range(20)))
        second = pool.submit(100, [3, 1, 2])
        assert pool.wait(second) == [300, 100, 200]
        assert pool.wait(first) == [10 * number for number in range(20)]


def test_a_shared_value_is_sent_once_to_each_worker():
    with closing(a_pool(1)) as pool:
        pool.wait(pool.submit(7, [1, 2, 3, 4]))
        (worker,) = pool.workers
        sent = worker.bytes_sent
        assert 0 < sent < 20
        pool.wait(pool.submit(8, [1]))
        assert worker.bytes_sent == 2 * sent


def test_what_a_dead_worker_had_is_done_by_another_one(tmp_path):
    with closing(a_pool(2, marker=str(tmp_path / "marker"))) as pool:
        results = pool.wait(pool.submit(10, [1, "die once", 2, 3]))
        assert results == [10, "done by another", 20, 30]
        assert pool.restarts == 1


def test_an_item_that_ends_every_worker_is_given_up():
    with closing(a_pool(1)) as pool:
        with pytest.raises(PoolError, match=rf"'die' has ended {DEATHS_PER_ITEM} workers"):
            pool.wait(pool.submit(1, ["die"]))
        assert pool.wait(pool.submit(2, [4])) == [8]


def test_an_error_in_the_work_is_told_and_the_pool_goes_on():
    with closing(a_pool(1)) as pool:
        with pytest.raises(PoolError, match=r"(?s)'raise' failed.*ValueError: no such number"):
            pool.wait(pool.submit(1, ["raise", 2]))
        assert pool.wait(pool.submit(2, [4])) == [8]


def test_workers_that_cannot_be_set_up_are_not_waited_for():
    with closing(a_pool(2, broken=True)) as pool:
        for _ in range(2):
            with pytest.raises(PoolError, match="this cannot be built"):
                pool.wait(pool.submit(1, [1]))


def test_what_may_come_later_does():
    with closing(a_pool(1)) as pool:
        (pid,) = pool.wait(pool.submit(0, ["pid"]))
        os.kill(pid, signal.SIGSTOP)  # until everything is submitted
        occupied = pool.submit(1, [0])
        later = pool.submit(1, list(range(50)), later=True)
        urgent = pool.submit(2, [5])
        os.kill(pid, signal.SIGCONT)
        assert pool.wait(urgent) == [10]
        assert later.missing > 40
        assert pool.wait(occupied) == [0]
        assert pool.wait(later) == list(range(50))


def is_alive(pid: int) -> bool:
    with suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z"
    return False


def test_closing_ends_a_busy_worker(tmp_path):
    pool = a_pool(1)
    (pid,) = pool.wait(pool.submit(0, ["pid"]))
    busy = tmp_path / "busy"
    pool.submit(0, [(str(busy),)])
    while not busy.exists():
        assert is_alive(pid)
    started = time.monotonic()
    pool.close()
    assert time.monotonic() - started < 10
    assert not is_alive(pid)


def test_workers_end_with_a_process_that_is_killed(tmp_path):
    program = (
        "import sys; from pathlib import Path; from test_pool import Multiply\n"
        "from equi_rl.cluster.pool import WorkerPool\n"
        "from equi_rl.cluster.process_worker import ProcessBackend\n"
        "pool = WorkerPool(ProcessBackend(Multiply, {}), 1)\n"
        "print(*pool.wait(pool.submit(0, ['pid'])), flush=True)\n"
        f"pool.wait(pool.submit(0, [({str(tmp_path / 'busy')!r},)]))\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    while not (tmp_path / "busy").exists():
        assert owner.poll() is None
    owner.kill()
    owner.wait()
    deadline = time.monotonic() + 30
    while is_alive(pid):
        assert time.monotonic() < deadline


def test_a_pool_of_nobody_is_refused():
    with pytest.raises(PoolError, match="at least 1"):
        a_pool(0)
