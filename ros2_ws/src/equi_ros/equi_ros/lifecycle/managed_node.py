# SPDX-License-Identifier: MIT
"""A lifecycle node (managed node) whose transitions may take time and say why they are refused.

The states, services and topics are ROS's own (`ros2 lifecycle get|set|list|nodes`, lifecycle_msgs).
Added to rclpy.lifecycle.LifecycleNode, as it is in Jazzy:

- A hook may be a coroutine. While it waits, the node answers and its timers run: a driver that
  takes over an arm for ten seconds must still hear `hold`. The state is `activating` meanwhile.
- A request that is impossible in the present state is refused. In rclpy it ends the process.
- Why a transition failed is logged, and shown by the diagnostics until the next one succeeds.
- `~/heartbeat` carries DDS liveliness: whoever subscribes learns that the process died or hangs.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.lifecycle import LifecycleNodeMixin, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node
from std_msgs.msg import Empty

from equi_ros import qos
from equi_ros.condition_waiter import ConditionWaiter
from equi_ros.diagnostics import DiagnosticsUpdater, Health
from equi_ros.parameters import refuse_changes

HEARTBEAT_TOPIC = "heartbeat"
_HEARTBEAT_PERIOD_S = 0.5
_WAITER_PERIOD_S = 0.02
_SUCCESS = TransitionCallbackReturn.SUCCESS
_FAILURE = TransitionCallbackReturn.FAILURE
_ERROR = TransitionCallbackReturn.ERROR
_VERBS = {
    State.TRANSITION_STATE_CONFIGURING: "configure",
    State.TRANSITION_STATE_ACTIVATING: "activate",
    State.TRANSITION_STATE_DEACTIVATING: "deactivate",
    State.TRANSITION_STATE_CLEANINGUP: "clean up",
    State.TRANSITION_STATE_SHUTTINGDOWN: "shut down",
    State.TRANSITION_STATE_ERRORPROCESSING: "process the error",
}
_REFUSABLE = (State.TRANSITION_STATE_CONFIGURING, State.TRANSITION_STATE_ACTIVATING)

Hook = Callable[[], Awaitable[None] | None]


class TransitionRefused(RuntimeError):
    """A transition that cannot be made now; says why and what to do."""


class ManagedNode(LifecycleNodeMixin, Node):
    """Subclasses fill in the hooks; each may be a coroutine function.

    A hook refuses by raising `TransitionRefused` or one of `refusals`: the state stays as it was.
    Only configuring and activating can be refused. Any other exception, or a refusal elsewhere, is
    an error: everything is released, and the node is unconfigured (finalized if that fails too).
    """

    refusals: tuple[type[Exception], ...] = (ValueError,)

    def __init__(self, name: str) -> None:
        Node.__init__(self, name)
        # A group of its own: a transition that waits must not lock out the other callbacks.
        LifecycleNodeMixin.__init__(self, callback_group=ReentrantCallbackGroup())
        answer: Any = self._on_change_state
        self._service_change_state.callback = answer
        self.refusal = ""
        """Why the last transition failed; empty if it succeeded."""
        self.failed = False
        """Whether the node was finalized because of an error."""
        refuse_changes(self, self._why_locked)
        self.waiter = ConditionWaiter()
        # Real time: with use_sim_time the node lives on while a record is paused.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(_WAITER_PERIOD_S, self.waiter.poll, clock=steady)
        self.diagnostics = DiagnosticsUpdater(self)
        self.diagnostics.add(self._lifecycle_health, "lifecycle")
        self._heartbeat = Node.create_publisher(self, Empty, f"~/{HEARTBEAT_TOPIC}", qos.HEARTBEAT)
        self.create_timer(
            _HEARTBEAT_PERIOD_S, lambda: self._heartbeat.publish(Empty()), clock=steady
        )

    # Hooks -------------------------------------------------------------------------------------

    def configure(self) -> Awaitable[None] | None:
        """Load, check and connect; nothing is published that others act on."""
        return None

    def activate(self) -> Awaitable[None] | None:
        """Start to work."""
        return None

    def deactivate(self) -> Awaitable[None] | None:
        """Stop to work; must leave everything at rest."""
        return None

    def cleanup(self) -> Awaitable[None] | None:
        """Undo `configure`; also after a `configure` that was refused half way."""
        return None

    # State -------------------------------------------------------------------------------------

    @property
    def state_id(self) -> int:
        """The present state, a constant of lifecycle_msgs/State."""
        return int(self._state_machine.current_state[0])

    @property
    def state_label(self) -> str:
        """The present state in a word, as `ros2 lifecycle get` prints it."""
        return str(self._state_machine.current_state[1])

    @property
    def is_active(self) -> bool:
        """Whether the node is active."""
        return bool(self.state_id == State.PRIMARY_STATE_ACTIVE)

    @property
    def is_finalized(self) -> bool:
        """Whether nothing more can happen: the process should end."""
        return bool(self.state_id == State.PRIMARY_STATE_FINALIZED)

    def _lifecycle_health(self) -> Health:
        level = DiagnosticStatus.ERROR if self.refusal else DiagnosticStatus.OK
        return Health(self.refusal or self.state_label, {"state": self.state_label}, level)

    def _why_locked(self) -> str:
        if self.state_id == State.PRIMARY_STATE_UNCONFIGURED:
            return ""
        return (
            f"the node is {self.state_label}; its parameters can be changed while it is "
            f"unconfigured: ros2 lifecycle set {self.get_fully_qualified_name()} cleanup"
        )

    async def change_state(self, transition: int) -> bool:
        """Make a transition (a constant of lifecycle_msgs/Transition); whether it succeeded."""
        machine = self._state_machine
        state_id, label = machine.current_state
        before = LifecycleState(label=label, state_id=state_id)
        try:
            machine.trigger_transition_by_id(transition, True)
        except _rclpy.RCLError:
            self.get_logger().error(f"transition {transition} is impossible in state '{label}'")
            return False
        result = await self._run_hook(before)
        machine.trigger_transition_by_label(result.to_label(), True)
        if result is _ERROR:
            processed = await self._run_hook(before)
            machine.trigger_transition_by_label(processed.to_label(), True)
            self.failed = self.is_finalized
        if result is _SUCCESS:
            self.refusal = ""
            self.get_logger().info(self.state_label)
        return bool(result is _SUCCESS)

    # rclpy's callbacks -------------------------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> Any:
        """Run the hook; after a refusal undo what it had done."""
        return self._after(self.configure, super().on_configure, state)

    def on_activate(self, state: LifecycleState) -> Any:
        """Run the hook, then open the lifecycle publishers."""
        return self._after(self.activate, super().on_activate, state)

    def on_deactivate(self, state: LifecycleState) -> Any:
        """Run the hook, then close the lifecycle publishers."""
        return self._after(self.deactivate, super().on_deactivate, state)

    def on_cleanup(self, state: LifecycleState) -> Any:
        """Run the hook."""
        return self._after(self.cleanup, super().on_cleanup, state)

    def on_shutdown(self, state: LifecycleState) -> Any:
        """Deactivate if need be, then clean up."""
        return self._after(self._release(state), super().on_shutdown, state)

    def on_error(self, state: LifecycleState) -> Any:
        """Release everything; unconfigured if that works, else finalized."""
        return self._after(self._release(state), super().on_error, state)

    def _release(self, state: LifecycleState) -> Hook:
        async def release() -> None:
            if state.state_id == State.PRIMARY_STATE_ACTIVE:
                try:
                    await _finish(self.deactivate())
                except Exception as error:  # cleaning up stops everything, too
                    self.get_logger().error(f"while deactivating: {error}")
            if state.state_id != State.PRIMARY_STATE_UNCONFIGURED or self.refusal:
                await _finish(self.cleanup())

        return release

    async def _after(self, hook: Hook, then: Callable[[Any], Any], state: LifecycleState) -> Any:
        await _finish(hook())
        return then(state)

    async def _run_hook(self, before: LifecycleState) -> Any:
        """The callback of the transition state that the machine is in; never raises."""
        current = self.state_id
        verb = _VERBS.get(current, str(current))
        callback: Any = self._callbacks[current]
        refusals: tuple[type[Exception], ...] = (TransitionRefused, *self.refusals)
        try:
            return await callback(before)
        except refusals as error:
            self.refusal = f"refused to {verb}: {error}"
            self.get_logger().error(self.refusal)
            if current == State.TRANSITION_STATE_CONFIGURING:
                try:
                    await _finish(self.cleanup())
                except Exception as second:
                    self.get_logger().error(f"while undoing it: {second}")
            return _FAILURE if current in _REFUSABLE else _ERROR
        except Exception as error:
            self.refusal = f"failed to {verb}: {type(error).__name__}: {error}"
            self.get_logger().error(f"{self.refusal}\n{traceback.format_exc()}")
            return _ERROR

    async def _on_change_state(
        self, request: ChangeState.Request, response: ChangeState.Response
    ) -> ChangeState.Response:
        wanted = self._transition_id(request.transition)
        if wanted is None:
            possible = ", ".join(item[1] for item in self._state_machine.available_transitions)
            self.get_logger().error(
                f"no transition '{request.transition.label or request.transition.id}' from state "
                f"'{self.state_label}'; possible: {possible or 'none'}"
            )
            return response
        response.success = await self.change_state(wanted)
        return response

    def _transition_id(self, wanted: Transition) -> int | None:
        """Id of a requested transition if it is possible now; a label goes before the id.

        `shutdown` has one id per state, and every one of them is understood.
        """
        possible = {
            int(number): str(label)
            for number, label, *_ in self._state_machine.available_transitions
        }
        if wanted.label:
            return next((key for key, label in possible.items() if label == wanted.label), None)
        if wanted.id in _SHUTDOWNS:
            return next((key for key, label in possible.items() if label == "shutdown"), None)
        return int(wanted.id) if wanted.id in possible else None


_SHUTDOWNS = (
    Transition.TRANSITION_UNCONFIGURED_SHUTDOWN,
    Transition.TRANSITION_INACTIVE_SHUTDOWN,
    Transition.TRANSITION_ACTIVE_SHUTDOWN,
)


async def _finish(work: Any) -> None:
    """Await what a hook returned, if it is a coroutine."""
    if inspect.isawaitable(work):
        await work
