# SPDX-License-Identifier: MIT
"""A node that spins in a thread of its own, in a context of its own: ROS beside other work."""

from __future__ import annotations

import threading
from typing import TypeVar

import rclpy
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node

from equi_ros.shutdown_signal import POLL_PERIOD_S

_END_TIMEOUT_S = 5.0
Running = TypeVar("Running", bound="BackgroundNode")


class BackgroundNode:
    """A context manager; subscribe on `node`, callbacks run in the background thread."""

    def __init__(
        self, name: str, domain_id: int | None = None, namespace: str | None = None
    ) -> None:
        """Create the node; it spins once the context is entered.

        Args:
            name: of the node.
            domain_id: ROS domain; None: that of the environment.
            namespace: of a node beside another one in the same process, whose name and namespace
                on the command line are not meant for this one; None: as the command line says.
        """
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain_id)
        self.node = Node(
            name,
            context=self._context,
            namespace=namespace,
            use_global_arguments=namespace is None,
        )
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._spin, daemon=True)

    def __enter__(self: Running) -> Running:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # The thread leaves the executor before anything that it waits on is destroyed.
        self._stop.set()
        self._executor.wake()
        self._thread.join(timeout=_END_TIMEOUT_S)
        self._executor.shutdown(timeout_sec=_END_TIMEOUT_S)
        self.node.destroy_node()
        rclpy.try_shutdown(context=self._context)

    def _spin(self) -> None:
        try:
            while not self._stop.is_set():
                self._executor.spin_once(timeout_sec=POLL_PERIOD_S)
        except ExternalShutdownException:
            return
