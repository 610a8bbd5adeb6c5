# SPDX-License-Identifier: MIT
"""Who takes part in an episode besides the policy, and how they are brought to its start.

Each participant is a service name in the node's parameters, so that the simulated and the real cell
differ in nothing else: the scene and the referee exist only where something offers them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from equi_interfaces.action import RunEpisode
from equi_interfaces.msg import DriverState
from equi_interfaces.srv import ResetEpisode
from rclpy.task import Future
from std_srvs.srv import Trigger

from equi_ros.condition_waiter import ConditionWaiter
from equi_ros.stamps import nanoseconds

if TYPE_CHECKING:
    from equi_policy.policy_node import PolicyNode

_STATE_MARGIN_S = 0.15
"""A robot state must be this much younger than a request before it can show its effect."""
_ANSWER_TIMEOUT_S = 10.0


class NotStarted(RuntimeError):
    """The episode could not begin; says which participant refused and why."""


class Participants:
    """Clients of driver, perception, scene and referee."""

    def __init__(self, node: PolicyNode, waiter: ConditionWaiter) -> None:
        self._node = node
        self._waiter = waiter

        def client(kind: Any, parameter: str, default: str) -> Any:
            name = str(node.declare_parameter(parameter, default).value)
            return node.create_client(kind, name) if name else None

        self._activate = client(Trigger, "activate_service", "rtde_driver/activate")
        self._home = client(Trigger, "home_service", "rtde_driver/go_home")
        self._open = client(Trigger, "open_service", "rtde_driver/open_gripper")
        self._hold = client(Trigger, "hold_service", "rtde_driver/hold")
        self._driver = client(ResetEpisode, "driver_reset_service", "rtde_driver/reset_episode")
        self._perception = client(
            ResetEpisode, "perception_reset_service", "depth_fusion/reset_episode"
        )
        self._scene = client(ResetEpisode, "scene_reset_service", "")
        self.referee = client(Trigger, "success_service", "")
        self._cancelled: Callable[[], bool] = lambda: False

    async def start(
        self,
        episode_id: str,
        goal: RunEpisode.Goal,
        cancelled: Callable[[], bool],
        set_phase: Callable[[str], None],
    ) -> None:
        """Bring arm, scene, perception and driver to the start of an episode.

        Raises:
            NotStarted: a participant is missing or refused, or the request was cancelled.
        """
        node, self._cancelled = self._node, cancelled
        await self._require(
            lambda: node.robot is not None, 10.0, "no robot state: is the driver up?"
        )
        if node.fault:
            raise NotStarted(f"the driver has a fault: {node.fault}; reset it first")
        if node.robot is not None and node.robot.state.value == DriverState.IDLE:
            set_phase("activating")
            await self._trigger(self._activate, "activate")
            await self._at_rest("the driver did not take over the arm", 20.0)
        set_phase("going home")
        await self._trigger(self._home, "go_home")
        await self._at_rest("the arm did not come home", 30.0)
        await self._trigger(self._open, "open_gripper")
        await self._at_rest("the gripper did not open", 10.0)
        set_phase("resetting")
        if self._scene is not None:
            # A drawn scene brings its own goal, which perception must know.
            answer = await self._reset(self._scene, "scene", episode_id, goal)
            drawn = _goal_of(answer)
            if drawn is not None:
                goal.has_goal = True
                goal.goal_position.x, goal.goal_position.y = drawn
        for client, who in ((self._driver, "driver"), (self._perception, "perception")):
            if client is not None:
                await self._reset(client, who, episode_id, goal)

    async def stop_arm(self) -> None:
        """Ask the driver to hold; an answer is waited for, but not required."""
        if self._hold is not None and self._hold.service_is_ready():
            await self._answer(self._hold.call_async(Trigger.Request()), 2.0)

    async def _reset(self, client: Any, who: str, episode_id: str, goal: RunEpisode.Goal) -> str:
        request = ResetEpisode.Request(
            episode_id=episode_id,
            has_goal=goal.has_goal,
            goal_position=goal.goal_position,
            task=self._node.policy.contract.task,
            seed=goal.seed,
        )
        answer = await self._call(client, request, who)
        if not answer.accepted:
            raise NotStarted(f"{who} refused the reset: {answer.message}")
        return str(answer.message)

    async def _trigger(self, client: Any, what: str) -> None:
        if client is None:
            return
        answer = await self._call(client, Trigger.Request(), what)
        if not answer.success:
            raise NotStarted(f"{what} was refused: {answer.message}")

    async def _at_rest(self, problem: str, timeout_s: float) -> None:
        """Wait for a robot state, younger than this call, that shows the arm at rest."""
        node = self._node
        asked_ns = node.now_ns() + round(_STATE_MARGIN_S * 1e9)

        def at_rest() -> bool:
            robot = node.robot
            if robot is None or node.fault:
                return bool(node.fault)
            return (
                nanoseconds(robot.header.stamp) > asked_ns
                and robot.state.value == DriverState.HOLD
                and not robot.moving
            )

        await self._require(at_rest, timeout_s, problem)
        if node.fault:
            raise NotStarted(f"{problem}: {node.fault}")

    async def _call(self, client: Any, request: Any, who: str) -> Any:
        timeout_s = _ANSWER_TIMEOUT_S
        await self._require(
            client.service_is_ready, timeout_s, f"{who}: {client.srv_name} is not offered"
        )
        answer = await self._answer(client.call_async(request), timeout_s)
        if answer is None:
            raise NotStarted(f"{who}: {client.srv_name} did not answer within {timeout_s:g} s")
        return answer

    async def _answer(self, future: Future, timeout_s: float) -> Any:
        await self._waiter.until(future.done, timeout_s)
        return future.result() if future.done() else None

    async def _require(self, condition: Callable[[], bool], timeout_s: float, text: str) -> None:
        met = await self._waiter.until(lambda: condition() or self._cancelled(), timeout_s)
        if self._cancelled():
            raise NotStarted("stopped by request before the episode began")
        if not met:
            raise NotStarted(f"{text} (waited {timeout_s:g} s)")


def _goal_of(message: str) -> tuple[float, float] | None:
    """Goal on the table [m] in the scene's answer to a reset: `{"goal_xy_m": [x, y]}`."""
    try:
        goal = json.loads(message).get("goal_xy_m")
        return None if goal is None else (float(goal[0]), float(goal[1]))
    except (ValueError, TypeError, AttributeError):
        return None
