# SPDX-License-Identifier: MIT
"""A pool of workers whose answers do not depend on how many there are, or on which of them die.

Work is a function of (shared value, item), and results come in the order of the items. A worker
that dies gives its item back, is started again, and the item is done by whoever is free. One thread
per worker waits for it, so whoever has submitted work can do something else meanwhile.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections.abc import Sequence
from typing import Any

from equi_rl.cluster.work_server import Shared
from equi_rl.cluster.worker import Worker, WorkerBackend, WorkerDiedError, WorkFailedError

LOGGER = logging.getLogger(__name__)

DEATHS_PER_ITEM = 3
"""An item that has ended so many workers is given up: it would end the next one as well."""
FAILED_STARTS = 3
"""So many attempts in a row to start a worker, and its place stays empty."""


class PoolError(RuntimeError):
    """Work that cannot be done; carries what the worker said."""


class Batch:
    """Items that were submitted together, and their results."""

    def __init__(self, shared: Shared, items: Sequence[Any]) -> None:
        self.shared = shared
        self.items = tuple(items)
        self.results: list[Any] = [None] * len(self.items)
        self.missing = len(self.items)
        self.deaths = [0] * len(self.items)
        self.error: PoolError | None = None

    @property
    def is_over(self) -> bool:
        """Whether there is nothing to wait for."""
        return self.missing == 0 or self.error is not None


class WorkerPool:
    """`count` workers of a backend; `submit` returns at once, `wait` in order of the items."""

    def __init__(self, backend: WorkerBackend, count: int) -> None:
        if count < 1:
            raise PoolError(f"the number of workers is {count}; it must be at least 1")
        self._backend = backend
        self._changed = threading.Condition()
        self._queue: list[tuple[int, int, int, Batch]] = []
        self._sequence = itertools.count()
        self._keys = itertools.count(1)
        self._workers: dict[int, Worker] = {}
        self._closing = threading.Event()
        self._served_by = count
        self._gave_up = ""
        self.restarts = 0
        """Workers that died and were started again, so far."""
        self._threads = [
            threading.Thread(target=self._serve, args=(number,), name=f"worker {number}")
            for number in range(count)
        ]
        for thread in self._threads:
            thread.daemon = True
            thread.start()

    def submit(self, value: Any, items: Sequence[Any], *, later: bool = False) -> Batch:
        """Have every item done with a shared value; with `later`, after all other batches."""
        batch = Batch(Shared.of(next(self._keys), value), items)
        with self._changed:
            for index in range(len(batch.items)):
                entry = (int(later), next(self._sequence), index, batch)
                heapq.heappush(self._queue, entry)
            if not self._served_by:
                batch.error = PoolError(self._gave_up)
            self._changed.notify_all()
        return batch

    def wait(self, batch: Batch) -> list[Any]:
        """Results in the order of the items; raises PoolError."""
        with self._changed:
            while not batch.is_over:
                self._changed.wait()
        self._backend.forget(batch.shared)
        if batch.error is not None:
            raise batch.error
        return batch.results

    @property
    def workers(self) -> list[Worker]:
        """Those that are alive now."""
        with self._changed:
            return list(self._workers.values())

    def close(self) -> None:
        """End every worker; what is not done stays undone."""
        with self._changed:
            self._closing.set()
            workers = list(self._workers.values())
            self._changed.notify_all()
        self._backend.close()
        for worker in workers:
            worker.stop()
        for thread in self._threads:
            thread.join()

    # In the worker's thread -----------------------------------------------------------------------

    def _serve(self, number: int) -> None:
        """Keep one worker alive and busy until the pool closes."""
        failed_starts = 0
        worker: Worker | None = None
        while not self._closing.is_set():
            try:
                if worker is None:
                    worker = self._start(number)
                failed_starts = 0
                if (entry := self._next()) is None:
                    return
                self._do(worker, entry)
            except WorkerDiedError as error:
                worker = None
                failed_starts += 1
                with self._changed:
                    started = self._workers.pop(number, None)
                    self.restarts += started is not None
                if self._closing.is_set():
                    return
                LOGGER.warning("a worker died and is started again: %s", error)
                if failed_starts == FAILED_STARTS:
                    self._give_up(f"workers die as soon as they start: {error}")
                    return
            except WorkFailedError as error:  # of the setup: it would fail again
                self._give_up(str(error))
                return

    def _start(self, number: int) -> Worker:
        worker = self._backend.start(number)
        with self._changed:
            self._workers[number] = worker
            closing = self._closing.is_set()
        if closing:
            worker.stop()
        return worker

    def _next(self) -> tuple[int, int, int, Batch] | None:
        """The next item that somebody still waits for; None when the pool closes."""
        with self._changed:
            while not self._closing.is_set():
                while self._queue:
                    entry = heapq.heappop(self._queue)
                    if not entry[3].is_over:
                        return entry
                self._changed.wait()
            return None

    def _do(self, worker: Worker, entry: tuple[int, int, int, Batch]) -> None:
        index, batch = entry[2], entry[3]
        try:
            result = worker.run(batch.shared, batch.items[index])
        except WorkerDiedError:
            self._give_back(entry)
            raise
        except WorkFailedError as error:
            with self._changed:
                batch.error = PoolError(f"item {batch.items[index]!r} failed:\n{error}")
                self._changed.notify_all()
            return
        with self._changed:
            batch.results[index] = result
            batch.missing -= 1
            if not batch.missing:
                self._changed.notify_all()

    def _give_back(self, entry: tuple[int, int, int, Batch]) -> None:
        index, batch = entry[2], entry[3]
        with self._changed:
            batch.deaths[index] += 1
            if batch.deaths[index] == DEATHS_PER_ITEM and not self._closing.is_set():
                batch.error = PoolError(
                    f"item {batch.items[index]!r} has ended {DEATHS_PER_ITEM} workers, one after"
                    " the other"
                )
            else:
                heapq.heappush(self._queue, entry)
            self._changed.notify_all()

    def _give_up(self, why: str) -> None:
        """Leave this place empty; if it was the last one, nobody will do the work."""
        LOGGER.error("%s", why)
        with self._changed:
            self._served_by -= 1
            self._gave_up = why
            if not self._served_by:
                for *_, batch in self._queue:
                    batch.error = PoolError(why)
            self._changed.notify_all()
