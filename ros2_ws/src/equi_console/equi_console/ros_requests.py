# SPDX-License-Identifier: MIT
"""What a press asks of the nodes: services and actions of driver and policy, answered in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from action_msgs.srv import CancelGoal
from equi_interfaces.action import GoHome
from equi_interfaces.msg import FaultCode
from equi_interfaces.srv import ResetFault
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.action import ActionClient
from rclpy.node import Node
from std_srvs.srv import Trigger

from equi_console.desk import Action
from equi_console.desk_state import NODES, DeskState

Done = Callable[[bool, str], None]


class Requests:
    """Clients of one cell; every call returns at once."""

    def __init__(self, node: Node, state: DeskState) -> None:
        self._node, self._state = node, state
        self._hold = node.create_client(Trigger, "rtde_driver/hold")
        self._resume = node.create_client(Trigger, "rtde_driver/resume")
        self._stop_motion = node.create_client(Trigger, "rtde_driver/stop_motion")
        self._reset = node.create_client(ResetFault, "rtde_driver/reset_fault")
        self._activate = node.create_client(ChangeState, "rtde_driver/change_state")
        self._cancel = node.create_client(CancelGoal, "policy/run_episode/_action/cancel_goal")
        self._home = ActionClient(node, GoHome, "rtde_driver/go_home")
        self._get_state = {
            name: node.create_client(GetState, f"{name}/get_state") for name in NODES
        }
        self._pending: dict[str, Any] = {}

    def carry_out(self, action: Action, arguments: Mapping[str, Any], done: Done) -> None:
        """Carry out what needs the nodes alone."""
        if action is Action.PAUSE:
            self._trigger(self._hold, "the arm stands until resume", done)
        elif action is Action.RESUME:
            self._trigger(self._resume, "commands are accepted again", done)
        elif action is Action.ACTIVATE:
            request = ChangeState.Request()
            request.transition.id = Transition.TRANSITION_ACTIVATE
            said = "the driver holds the arm"
            why = "refused; the driver's log says why"
            self._call(self._activate, request, done, lambda a: (a.success, said, why))
        elif action is Action.RESET_FAULT:
            fault = 0 if self._state.safety is None else self._state.safety.fault
            request = ResetFault.Request(
                acknowledged=FaultCode(value=fault),
                fault_count=int(arguments["fault_count"]),
                operator_name=str(arguments["who"]),
            )
            said = "reset; activate the driver to go on"
            self._call(self._reset, request, done, lambda a: (a.success, said, a.message))
        elif action is Action.GO_HOME:
            self._go_home(done)
        elif action is Action.STOP:
            self._stop(done)

    def _stop(self, done: Done) -> None:
        """End the episode, and stop whatever moves even if nobody runs one."""
        if self._cancel.service_is_ready():
            self._cancel.call_async(CancelGoal.Request())  # goal id zero: all of them
        self._trigger(self._stop_motion, "stopped", done)

    def _trigger(self, client: Any, said: str, done: Done) -> None:
        self._call(client, Trigger.Request(), done, lambda a: (a.success, said, a.message))

    def _call(
        self, client: Any, request: Any, done: Done, read: Callable[[Any], tuple[bool, str, str]]
    ) -> None:
        if not client.service_is_ready():
            done(False, f"{client.srv_name} is not offered; is the driver up?")
            return

        def answered(future: Any) -> None:
            ok, said, why = read(future.result())
            done(ok, said if ok else f"refused: {why or 'no reason given'}")

        client.call_async(request).add_done_callback(answered)

    def _go_home(self, done: Done) -> None:
        if not self._home.server_is_ready():
            done(False, "go_home is not offered; is the driver up?")
            return

        def ended(future: Any) -> None:
            result = future.result().result
            done(result.success, "at home" if result.success else f"refused: {result.message}")

        def accepted(future: Any) -> None:
            handle = future.result()
            if not handle.accepted:
                done(False, "refused by the driver")
                return
            handle.get_result_async().add_done_callback(ended)

        self._home.send_goal_async(GoHome.Goal()).add_done_callback(accepted)

    def ask_lifecycle(self) -> None:
        """Ask every node for its state; one that does not answer until the next time is gone."""
        for name, client in self._get_state.items():
            waiting = self._pending.pop(name, None)
            if waiting is not None and not waiting.done():
                client.remove_pending_request(waiting)
                self._set_lifecycle(name, "unreachable")
            if not client.service_is_ready():
                self._set_lifecycle(name, "unreachable")
                continue
            future = client.call_async(GetState.Request())
            future.add_done_callback(
                lambda answer, name=name: self._set_lifecycle(
                    name, answer.result().current_state.label
                )
            )
            self._pending[name] = future

    def _set_lifecycle(self, name: str, label: str) -> None:
        self._state.lifecycle = {**self._state.lifecycle, name: label}
