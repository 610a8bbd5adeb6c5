# SPDX-License-Identifier: MIT
"""Diagnostics of a node: one updater, one array a second, a status per task.

A task is a function that says how its part is. The status of a node's main task is called like the
node, further ones `<node>: <task>`, as diagnostic_updater does it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node
from std_msgs.msg import Header

from equi_ros import qos

PERIOD_S = 1.0
"""How often a node publishes its diagnostics [s]."""


@dataclass(frozen=True)
class Health:
    """How something is: in a sentence, as a level, and in named values."""

    message: str
    values: Mapping[str, str] = field(default_factory=dict)
    level: bytes = DiagnosticStatus.OK


Task = Callable[[], Health | None]
"""Says how its part is; None while there is nothing to say."""


class DiagnosticsUpdater:
    """Publishes the health of a node on `diagnostics`, once a second and on demand."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._tasks: list[tuple[str, Task]] = []
        self.hardware_id = "none"
        """Which device the node stands for, such as a serial number or an address."""
        self._publisher = Node.create_publisher(
            node, DiagnosticArray, "diagnostics", qos.DIAGNOSTICS
        )
        node.create_timer(PERIOD_S, self.update)

    def add(self, task: Task, name: str = "") -> None:
        """Add a task; the main one of the node has no name of its own."""
        node = self._node.get_name()
        self._tasks.append((f"{node}: {name}" if name else node, task))

    def update(self) -> None:
        """Ask every task and publish the answers."""
        found = [(name, task()) for name, task in self._tasks]
        statuses = [
            status(name, health, self.hardware_id) for name, health in found if health is not None
        ]
        if statuses:
            stamp = self._node.get_clock().now().to_msg()
            self._publisher.publish(diagnostics(stamp, statuses))


def status(name: str, health: Health, hardware_id: str) -> DiagnosticStatus:
    """The message of one task's answer."""
    return DiagnosticStatus(
        level=health.level,
        name=name,
        message=health.message,
        hardware_id=hardware_id,
        values=[KeyValue(key=key, value=value) for key, value in health.values.items()],
    )


def diagnostics(stamp: Time, statuses: Sequence[DiagnosticStatus]) -> DiagnosticArray:
    """The message of several statuses."""
    return DiagnosticArray(header=Header(stamp=stamp), status=list(statuses))
