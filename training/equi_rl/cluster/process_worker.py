# SPDX-License-Identifier: MIT
"""Workers on this machine: one process each, spoken to through a socket pair.

Started as a fresh interpreter, not forked (a copy of a process with running threads may hang) and
not by `multiprocessing` (which would import the caller's main module again). A worker ends when the
process that started it does, however that ends.

    python -m equi_rl.cluster.process_worker FD PARENT      # how a pool starts it
"""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
from multiprocessing.connection import Connection
from typing import Any

from equi_rl.cluster.work_server import Build, Shared, WorkServer, die_with_parent
from equi_rl.cluster.worker import WorkerDiedError, WorkFailedError

_END_LIMIT_S = 5.0


class ProcessBackend:
    """Starts processes that serve `build(settings)`."""

    def __init__(self, build: Build, settings: Any) -> None:
        self._build, self._settings = build, settings

    def start(self, number: int) -> ProcessWorker:
        """A process whose function is built."""
        return ProcessWorker(self._build, self._settings)

    def forget(self, shared: Shared) -> None:
        """Nothing is kept here."""

    def close(self) -> None:
        """A process comes up or ends by itself."""


class ProcessWorker:
    """One process; use it from one thread, except `stop`."""

    def __init__(self, build: Build, settings: Any) -> None:
        ours, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno()), str(os.getpid())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C reaches whoever owns the worker, who ends it
            )
        finally:
            theirs.close()
        self._connection = Connection(ours.detach())
        self._sent_key: int | None = None
        self.bytes_sent = 0
        self.bytes_received = 0
        try:
            self._connection.send((build, settings))
            answer = self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._died() from error
        if answer is not None:
            self.stop()
            raise WorkFailedError(f"a worker could not be set up:\n{answer}")

    @property
    def where(self) -> str:
        """Process id."""
        return f"process {self._process.pid}"

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def run(self, shared: Shared, item: Any) -> Any:
        """Do one item; the shared value is sent with the first that needs it."""
        payload = None if shared.key == self._sent_key else shared.payload
        try:
            self._connection.send((shared.key, payload, item))
            succeeded, result = self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._died() from error
        self._sent_key = shared.key
        self.bytes_sent += len(payload or b"")
        self.bytes_received += len(result)
        if not succeeded:
            raise WorkFailedError(result.decode())
        return pickle.loads(result)

    def stop(self) -> None:
        """End the process and take note of its end."""
        self._process.terminate()
        try:
            self._process.wait(timeout=_END_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _died(self) -> WorkerDiedError:
        self.stop()
        return WorkerDiedError(f"process {self.pid} ended with status {self._process.returncode}")


def serve(connection: Connection) -> None:
    """Body of the process: do items until the other end closes."""
    build, settings = connection.recv()
    try:
        server = WorkServer(build, settings)
    except Exception:  # told to whoever wants the worker
        import traceback

        connection.send(traceback.format_exc())
        return
    connection.send(None)
    try:
        while True:
            key, payload, item = connection.recv()
            if payload is not None:
                server.remember(key, payload)
            connection.send(server.run(item))
    except (EOFError, OSError):
        pass  # the owner has gone
    finally:
        server.close()


def main() -> None:
    """Entry point of the process."""
    die_with_parent(int(sys.argv[2]))
    serve(Connection(int(sys.argv[1])))


if __name__ == "__main__":
    main()
