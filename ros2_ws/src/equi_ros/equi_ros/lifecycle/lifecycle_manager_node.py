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

from lifecycle_msgs.msg import State, Transition, TransitionEvent
from lifecycle_msgs.srv import ChangeState, GetState
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
from equi_ros.parameters import declare_settings
from equi_ros.run_node import run_node

_POLL_PERIOD_S = 0.05
_ANSWER_TIMEOUT_S = 5.0
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
    """Clients of the nodes' lifecycle services; `equi_ros.lifecycle.bringup` decides the order."""

    def __init__(self) -> None:
        super().__init__("lifecycle_manager")
        self._settings = declare_settings(self, ManagerSettings())
        self._plan = BringUpPlan(self._settings.node_names, self._settings.manual_activation)
        self._waiter = ConditionWaiter()
        self._states: dict[str, str] = {}
        """Newest known state of each node, by its transition events and answers."""
        self._last_error: dict[str, str] = {}
        self._failure = ""
        self._ready = False
        self._going_down = False
        self._answer_timeout_s = self._settings.start_timeout_s
        self.failed = False
        self.is_finalized = False
        self._change: dict[str, Any] = {}
        self._get: dict[str, Any] = {}
        for name in self._plan.nodes:
            self._connect(name)
        # With a few messages of the past: a node may have refused before this one listened.
        self.create_subscription(Log, "/rosout", self._on_log, _ROSOUT)
        self.create_service(Trigger, "~/is_active", self._on_is_active)
        self.create_timer(_POLL_PERIOD_S, self._poll)
        self._started = False

    def _connect(self, name: str) -> None:
        self._change[name] = self.create_client(ChangeState, f"{name}/change_state")
        self._get[name] = self.create_client(GetState, f"{name}/get_state")
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

    # NodeControl -------------------------------------------------------------------------------

    async def get_state(self, node: str) -> str:
        """Label of the node's state; waits for the node to appear."""
        client = self._get[node]
        answer = await self._ask(client, GetState.Request(), self._answer_timeout_s)
        state = UNKNOWN if answer is None else str(answer.current_state.label)
        self._states[node] = state
        return state

    async def change_state(self, node: str, transition: str) -> bool:
        """Make a transition by its label."""
        request = ChangeState.Request(transition=Transition(label=transition))
        timeout_s = _ANSWER_TIMEOUT_S if self._going_down else self._settings.transition_timeout_s
        self.get_logger().info(f"{node}: {transition}")
        answer = await self._ask(self._change[node], request, timeout_s)
        return answer is not None and bool(answer.success)

    async def _ask(self, client: Any, request: Any, timeout_s: float) -> Any:
        deadline_s = time.monotonic() + timeout_s
        going_down = self._going_down

        def over() -> bool:
            return bool(self._failure) and not going_down

        await self._waiter.until(lambda: client.service_is_ready() or over(), timeout_s)
        if not client.service_is_ready() or over():
            return None
        future = client.call_async(request)
        left_s = max(deadline_s - time.monotonic(), 0.0)
        await self._waiter.until(lambda: future.done() or over(), left_s)
        return future.result() if future.done() else None

    # Bringing up and down ----------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            await bring_up_nodes(self._plan, self, lambda: not self._failure)
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
        self._ready, self._going_down = False, True
        self._answer_timeout_s = _ANSWER_TIMEOUT_S
        missing = await bring_down_nodes(self._plan.nodes, self)
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
        if event.alive_count > 0 or name not in self._states or self._going_down:
            return
        gone = event.not_alive_count == 0
        silent = f"died, or hangs: it gave no sign of life for {qos.HEARTBEAT_LEASE_S:g} s"
        if gone and self.executor is not None:
            self._states[name] = UNKNOWN
            self.executor.create_task(self._fail_soon(f"{name} has ended"))
        elif self._states[name] == ACTIVE:
            self._states[name] = UNKNOWN
            self._fail(f"{name} {silent}")

    async def _fail_soon(self, reason: str) -> None:
        """After a Ctrl-C every process ends, this one too: that is no failure."""
        await self._waiter.until(lambda: False, _GRACE_S)
        self._fail(reason)

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
