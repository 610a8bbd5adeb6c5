# SPDX-License-Identifier: MIT
"""lifecycle_manager: brings the lifecycle nodes of a cell up in order, and down on any error.

    ros2 run equi_ros lifecycle_manager_node --ros-args \
        -p node_names:="[depth_fusion, policy, rtde_driver]"

Uses lifecycle_msgs alone, so that Nav2's lifecycle manager (bond_timeout: 0.0) can take its place.
A node that dies, hangs, or falls back by an error brings all of them down, the last one first;
the process then ends with code 1. A node that somebody deactivates is left inactive.
`~/is_active` (std_srvs/Trigger) says whether everything is up, or what is missing.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

from lifecycle_msgs.msg import State, TransitionEvent
from rcl_interfaces.msg import Log
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Empty
from std_srvs.srv import Trigger

from equi_core.setting_fields import setting
from equi_ros import qos
from equi_ros.condition_waiter import ConditionWaiter
from equi_ros.lifecycle.bringup import ACTIVE, UNKNOWN, BringUpFailed, BringUpPlan
from equi_ros.lifecycle.bringup import bring_down as bring_down_nodes
from equi_ros.lifecycle.bringup import bring_up as bring_up_nodes
from equi_ros.lifecycle.managed_node import HEARTBEAT_TOPIC
from equi_ros.lifecycle.ros_node_control import RosNodeControl
from equi_ros.parameters import declare_settings
from equi_ros.run_node import run_node

_POLL_PERIOD_S = 0.05
_GRACE_S = 0.5
_FELL_BACK = (State.PRIMARY_STATE_UNCONFIGURED, State.PRIMARY_STATE_FINALIZED)
# A byte in the definition: bytes or a number, by the version of the generator.
_ERROR_LEVEL = Log.ERROR if isinstance(Log.ERROR, int) else int.from_bytes(Log.ERROR, "little")
_ROSOUT = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)


@dataclass(frozen=True)
class ManagerSettings:
    """Parameters of the lifecycle manager."""

    node_names: tuple[str, ...] = setting(
        ("depth_fusion", "policy", "rtde_driver"),
        "nodes in the order in which they are brought up; down in the reverse order",
    )
    manual_activation: tuple[str, ...] = setting(
        (), "nodes that are only configured; an operator activates them"
    )
    start_timeout_s: float = setting(
        120.0, "longest wait for a node to appear [s]", low=1.0, high=3600.0
    )
    transition_timeout_s: float = setting(
        120.0, "longest wait for a transition to end [s]", low=1.0, high=3600.0
    )


class LifecycleManagerNode(Node):
    """Watches the nodes; `equi_ros.lifecycle.bringup` decides the order."""

    def __init__(self) -> None:
        super().__init__("lifecycle_manager")
        self._settings = declare_settings(self, ManagerSettings())
        self._plan = BringUpPlan(self._settings.node_names, self._settings.manual_activation)
        self._waiter = ConditionWaiter()
        self._last_error: dict[str, str] = {}
        self._failure = ""
        self._fail_after: tuple[float, str] | None = None
        self._ready = False
        self.failed = False
        self.is_finalized = False
        self._control = RosNodeControl(
            self,
            self._plan.nodes,
            self._waiter,
            lambda: bool(self._failure),
            self._settings.start_timeout_s,
            self._settings.transition_timeout_s,
        )
        # By transition events, too.
        self._states = self._control.states
        for name in self._plan.nodes:
            self._connect(name)
        # With a few messages of the past: a node may have refused before this one listened.
        self.create_subscription(Log, "/rosout", self._on_log, _ROSOUT)
        self.create_service(Trigger, "~/is_active", self._on_is_active)
        self.create_timer(_POLL_PERIOD_S, self._poll)
        self._started = False

    def _connect(self, name: str) -> None:
        self.create_subscription(
            TransitionEvent, f"{name}/transition_event", partial(self._on_transition, name), 10
        )
        self.create_subscription(
            Empty,
            f"{name}/{HEARTBEAT_TOPIC}",
            lambda message: None,
            qos.HEARTBEAT,
            event_callbacks=SubscriptionEventCallbacks(
                liveliness=partial(self._on_liveliness, name)
            ),
        )

    # Bringing up and down ----------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            await bring_up_nodes(self._plan, self._control, lambda: not self._failure)
        except BringUpFailed as error:
            said = self._last_error.get(error.node, "")
            self._fail(f"{error}{f': {said}' if said else ''}")
        else:
            self._ready = not self._failure
        if self._ready:
            self.get_logger().info(f"every node is up: {', '.join(self._plan.automatic)}")
            for node in self._plan.manual_activation:
                self.get_logger().info(
                    f"{node} is left to the operator: ros2 lifecycle set "
                    f"{self._full_name(node)} activate"
                )
            await self._waiter.until(lambda: bool(self._failure), float("inf"))
        self._ready, self._control.going_down = False, True
        missing = await bring_down_nodes(self._plan.nodes, self._control)
        if missing:
            self.get_logger().error(f"could not be shut down: {', '.join(missing)}")
        self.failed = self.is_finalized = True

    def _fail(self, reason: str) -> None:
        if not self._failure:
            self._failure = reason
            self.get_logger().fatal(f"bringing every node down: {reason}")

    def _poll(self) -> None:
        if not self._started and self.executor is not None:
            self._started = True
            self.executor.create_task(self._run())
        if self._fail_after is not None and time.monotonic() > self._fail_after[0]:
            self._fail(self._fail_after[1])
        self._waiter.poll()

    # What the nodes tell -----------------------------------------------------------------------

    def _on_transition(self, name: str, event: TransitionEvent) -> None:
        before = self._states.get(name)
        self._states[name] = str(event.goal_state.label)
        fell = event.goal_state.id in _FELL_BACK
        if self._ready and fell:
            said = self._last_error.get(name, "")
            self._fail(f"{name} is {event.goal_state.label}{f': {said}' if said else ''}")
        elif self._ready and event.goal_state.label != before == ACTIVE:
            self.get_logger().warning(f"{name} was deactivated; the other nodes stay as they are")

    def _on_liveliness(self, name: str, event: Any) -> None:
        """A node has gone, or gave no sign of life.

        The second is normal while it loads or compiles: only an active node must not be silent.
        """
        if event.alive_count > 0 or name not in self._states or self._control.going_down:
            return
        gone = event.not_alive_count == 0
        silent = f"died, or hangs: it gave no sign of life for {qos.HEARTBEAT_LEASE_S:g} s"
        if gone:
            self._states[name] = UNKNOWN
            self._fail_soon(f"{name} has ended")
        elif self._states[name] == ACTIVE:
            self._states[name] = UNKNOWN
            self._fail(f"{name} {silent}")

    def _fail_soon(self, reason: str) -> None:
        """After a Ctrl-C every process ends, this one too: that is no failure."""
        if self._fail_after is None:
            self._fail_after = (time.monotonic() + _GRACE_S, reason)

    def _on_log(self, message: Log) -> None:
        if message.level < _ERROR_LEVEL or not message.msg:
            return
        # A library of the node logs as its child: namespace.node.library.
        for name in set(message.name.split(".")) & set(self._plan.nodes):
            self._last_error[name] = message.msg.splitlines()[0]

    def _on_is_active(
        self, request: Trigger.Request, response: Trigger.Response
    ) -> Trigger.Response:
        response.success = self._ready
        states = ", ".join(f"{name} {self._states.get(name, UNKNOWN)}" for name in self._plan.nodes)
        response.message = f"{self._failure}; {states}" if self._failure else states
        return response

    def _full_name(self, node: str) -> str:
        return f"{self.get_namespace().rstrip('/')}/{node}"


def main(args: list[str] | None = None) -> int:
    """Entry point of the node; code 1 if the nodes had to be brought down."""
    return run_node("lifecycle_manager", LifecycleManagerNode, args, refusals=(ValueError,))


if __name__ == "__main__":
    sys.exit(main())
