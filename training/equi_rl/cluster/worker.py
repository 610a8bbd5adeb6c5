# SPDX-License-Identifier: MIT
"""What a pool needs of the place where its workers are: start one, hand it work, end it."""

from __future__ import annotations

from typing import Any, Protocol

from equi_rl.cluster.work_server import Shared


class ClusterError(RuntimeError):
    """A cluster that cannot be used as asked; says why and what to do."""


class WorkerDiedError(RuntimeError):
    """The worker is gone; its item can be done by another one."""


class WorkFailedError(RuntimeError):
    """The function raised an error; it would raise it on any worker."""


class Worker(Protocol):
    """One process somewhere that does one item at a time."""

    bytes_sent: int
    """Of shared values, so far."""
    bytes_received: int
    """Of results, so far."""

    @property
    def where(self) -> str:
        """Machine and process, for people."""

    def run(self, shared: Shared, item: Any) -> Any:
        """Do one item; raises WorkerDiedError or WorkFailedError."""

    def stop(self) -> None:
        """End it at once; `run` in another thread then raises WorkerDiedError."""


class WorkerBackend(Protocol):
    """Where workers are started."""

    def start(self, number: int) -> Worker:
        """A worker that is ready to work; raises WorkerDiedError if it does not come up."""

    def forget(self, shared: Shared) -> None:
        """A shared value that nobody will ask for again."""

    def close(self) -> None:
        """No worker will be asked for again; a `start` under way may give up."""
