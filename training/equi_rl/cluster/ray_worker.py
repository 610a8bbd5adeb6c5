# SPDX-License-Identifier: MIT
"""Workers on a Ray cluster: one actor each, on any node that has a free core.

The shared value is put into the object store once, whoever fetches it how often. Results come back
as bytes and are unpickled here, so that nothing stays in the object store.
"""

from __future__ import annotations

import pickle
import threading
import time
from typing import Any

from equi_rl.cluster.ray_cluster import connect
from equi_rl.cluster.work_server import Build, Shared, WorkServer
from equi_rl.cluster.worker import WorkerDiedError, WorkFailedError

START_LIMIT_S = 180.0
"""An actor that has not come up by then has no room in the cluster."""
_LOOK_S = 0.5


class _Actor:
    """Runs on a node; Ray makes it an actor."""

    def __init__(self, build: Build, settings: Any) -> None:
        self._server = WorkServer(build, settings)

    def where(self) -> str:
        """Machine, node of the cluster and process."""
        import os
        import socket

        import ray

        node = ray.get_runtime_context().get_node_id()[:6]
        return f"{socket.gethostname()}/{node} process {os.getpid()}"

    def run(self, key: int, payload: Any, item: Any) -> tuple[bool, bytes]:
        """As `WorkServer.run`; `payload` is a reference in a list, fetched only if it is new."""
        if not self._server.has(key):
            import ray

            self._server.remember(key, ray.get(payload[0]))
        return self._server.run(item)


class RayBackend:
    """Starts actors that serve `build(settings)`."""

    def __init__(self, build: Build, settings: Any, address: str = "auto") -> None:
        self._ray = connect(address)
        self._build, self._settings = build, settings
        self._references: dict[int, Any] = {}
        self._closing = threading.Event()

    def start(self, number: int) -> RayWorker:
        """An actor whose function is built, on a node with a free core."""
        ray = self._ray
        actor = (
            ray.remote(_Actor)
            .options(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD")
            .remote(self._build, self._settings)
        )
        where = actor.where.remote()
        waited_until_s = time.monotonic() + START_LIMIT_S
        while not ray.wait([where], timeout=_LOOK_S)[0]:
            if self._closing.is_set() or time.monotonic() > waited_until_s:
                ray.kill(actor)
                raise WorkerDiedError(f"no node has had a free core for {START_LIMIT_S:.0f} s")
        try:
            return RayWorker(self, actor, ray.get(where))
        except ray.exceptions.RayActorError as error:
            if "creation task" in str(error):  # the function could not be built
                raise WorkFailedError(f"a worker could not be set up:\n{error}") from error
            raise WorkerDiedError(str(error)) from error

    def reference(self, shared: Shared) -> Any:
        """The shared value in the object store, put there by the first who asks."""
        found = self._references.get(shared.key)
        if found is None:
            found = self._references.setdefault(shared.key, self._ray.put(shared.payload))
        return found

    def forget(self, shared: Shared) -> None:
        """Let the object store drop a value."""
        self._references.pop(shared.key, None)

    def close(self) -> None:
        """Wait for no free core any more."""
        self._closing.set()

    @property
    def ray(self) -> Any:
        """The connected module."""
        return self._ray


class RayWorker:
    """One actor."""

    def __init__(self, backend: RayBackend, actor: Any, where: str) -> None:
        self._backend, self._actor, self._where = backend, actor, where
        self._sent_key: int | None = None
        self.bytes_sent = 0
        self.bytes_received = 0

    @property
    def where(self) -> str:
        """Machine, node and process id."""
        return self._where

    def run(self, shared: Shared, item: Any) -> Any:
        """Do one item."""
        ray = self._backend.ray
        try:
            reference = self._backend.reference(shared)
            # In a list, a reference is handed over as it is and not fetched again for every item.
            answer = self._actor.run.remote(shared.key, [reference], item)
            succeeded, result = ray.get(answer)
        except (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError) as error:
            self.stop()  # it may only be out of reach
            raise WorkerDiedError(f"{self._where}: {error}") from error
        except ray.exceptions.RayTaskError as error:
            raise WorkFailedError(str(error)) from error
        self.bytes_sent += 0 if shared.key == self._sent_key else len(shared.payload)
        self._sent_key = shared.key
        self.bytes_received += len(result)
        if not succeeded:
            raise WorkFailedError(result.decode())
        return pickle.loads(result)

    def stop(self) -> None:
        """End the actor."""
        try:
            self._backend.ray.kill(self._actor)
        except Exception:  # the cluster itself may be gone
            return
