# SPDX-License-Identifier: MIT
"""Sees and changes the states of lifecycle nodes through their services, whose answers may be lost.

On a busy machine a request or an answer of a service gets lost now and then: the other side is not
discovered completely yet, or answers to somebody else push ours out of the queue. So a question is
repeated, and after a silence the state of the node says whether a transition was made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.node import Node

from equi_ros.condition_waiter import ConditionWaiter
from equi_ros.lifecycle.bringup import ACTIVE, FINALIZED, INACTIVE, LEADS_TO, UNCONFIGURED, UNKNOWN

_SETTLED = (UNCONFIGURED, INACTIVE, ACTIVE, FINALIZED)
_REPEAT_S = 2.0
"""A question without an answer is repeated after this time [s]."""
_DOWN_TIMEOUT_S = 5.0
"""Longest wait for anything while the nodes are brought down [s]."""


class RosNodeControl:
    """Clients of the nodes' lifecycle services; a `NodeControl`."""

    def __init__(
        self,
        node: Node,
        names: Sequence[str],
        waiter: ConditionWaiter,
        has_failed: Callable[[], bool],
        start_timeout_s: float,
        transition_timeout_s: float,
    ) -> None:
        """`has_failed` ends every wait of bringing up; bringing down goes on regardless."""
        self._node, self._waiter, self._has_failed = node, waiter, has_failed
        self._start_timeout_s = start_timeout_s
        self._transition_timeout_s = transition_timeout_s
        self._get = {name: node.create_client(GetState, f"{name}/get_state") for name in names}
        self._change = {
            name: node.create_client(ChangeState, f"{name}/change_state") for name in names
        }
        self.going_down = False
        self.states: dict[str, str] = {}
        """Newest known state of each node."""

    async def get_state(self, node: str) -> str:
        """Label of the node's state; waits for the node to appear."""
        return await self._state_within(
            node, _DOWN_TIMEOUT_S if self.going_down else self._start_timeout_s
        )

    async def change_state(self, node: str, transition: str) -> bool:
        """Make a transition by its label."""
        client = self._change[node]
        timeout_s = _DOWN_TIMEOUT_S if self.going_down else self._transition_timeout_s
        deadline_s = time.monotonic() + timeout_s
        before = self.states.get(node, UNKNOWN)
        request = ChangeState.Request(transition=Transition(label=transition))
        self._node.get_logger().info(f"{node}: {transition}")
        over = self._over()
        await self._waiter.until(lambda: client.service_is_ready() or over(), timeout_s)
        if not client.service_is_ready():
            return False
        calls = [client.call_async(request)]
        while not over() and time.monotonic() < deadline_s:
            left_s = deadline_s - time.monotonic()
            done = await self._waiter.until(
                lambda: calls[-1].done() or over(), min(_REPEAT_S, left_s)
            )
            if done and not over() and len(calls) == 1:
                return bool(calls[0].result().success)
            state = await self._state_within(node, min(_REPEAT_S, left_s))
            if state == LEADS_TO[transition]:
                return True
            if calls[-1].done():
                return bool(calls[-1].result().success)
            if state == before:
                calls.append(client.call_async(request))
            elif state in _SETTLED:
                return False  # an error has led it elsewhere
        return False

    async def _state_within(self, node: str, timeout_s: float) -> str:
        answer = await self._ask(self._get[node], GetState.Request(), timeout_s)
        state = UNKNOWN if answer is None else str(answer.current_state.label)
        self.states[node] = state
        return state

    async def _ask(self, client: Any, question: Any, timeout_s: float) -> Any:
        """The answer to a question that may be repeated; None if there is none in time."""
        deadline_s = time.monotonic() + timeout_s
        over = self._over()
        await self._waiter.until(lambda: client.service_is_ready() or over(), timeout_s)
        while client.service_is_ready() and not over() and time.monotonic() < deadline_s:
            future = client.call_async(question)
            left_s = deadline_s - time.monotonic()
            await self._waiter.until(_either(future.done, over), min(_REPEAT_S, left_s))
            if future.done():
                return future.result()
            client.remove_pending_request(future)
        return None

    def _over(self) -> Callable[[], bool]:
        going_down = self.going_down
        return lambda: self._has_failed() and not going_down


def _either(one: Callable[[], bool], other: Callable[[], bool]) -> Callable[[], bool]:
    return lambda: one() or other()
