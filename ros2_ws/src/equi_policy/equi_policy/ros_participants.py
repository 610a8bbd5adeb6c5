# SPDX-License-Identifier: MIT
"""Who takes part in an episode besides the policy, and how they are brought to its start.

Each participant is the name of a service or action in the node's parameters, so that the simulated
and the real cell differ in nothing else: the scene and the referee exist only where something
offers them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from equi_interfaces.action import GoHome, RunEpisode
from equi_interfaces.msg import DriverState
from equi_interfaces.srv import ResetEpisode
from rclpy.action import ActionClient
from rclpy.task import Future
from std_srvs.srv import Trigger

from equi_ros.condition_waiter import ConditionWaiter
from equi_ros.parameters import declare
from equi_ros.stamps import nanoseconds

if TYPE_CHECKING:
    from equi_policy.policy_node import PolicyNode

_STATE_MARGIN_S = 0.15
"""A robot state must be this much younger than a request before it can show its effect."""
_ANSWER_TIMEOUT_S = 10.0
_HOME_TIMEOUT_S = 60.0


class NotStarted(RuntimeError):
    """The episode could not begin; says which participant refused and why."""


class Participants:
    """Clients of driver, perception, scene and referee."""

    def __init__(self, node: PolicyNode, waiter: ConditionWaiter) -> None:
        self._node = node
        self._waiter = waiter

        def named(parameter: str, default: str, what: str) -> str:
            return str(declare(node, parameter, default, f"{what}; empty: there is none"))

        def client(kind: Any, parameter: str, default: str, what: str) -> Any:
            name = named(parameter, default, f"service that {what}")
            return node.create_client(kind, name) if name else None

        home = named("home_action", "rtde_driver/go_home", "action that brings the arm home")
        self._home = ActionClient(node, GoHome, home) if home else None
        self._open = client(
            Trigger, "open_service", "rtde_driver/open_gripper", "opens the gripper"
        )
        self._stop = client(Trigger, "stop_service", "rtde_driver/stop_motion", "stops the arm")
        self._driver = client(
            ResetEpisode,
            "driver_reset_service",
            "rtde_driver/reset_episode",
            "begins an episode of the driver",
        )
        self._perception = client(
            ResetEpisode,
            "perception_reset_service",
            "depth_fusion/reset_episode",
            "begins an episode of perception",
        )
        self._scene = client(ResetEpisode, "scene_reset_service", "", "arranges the scene")
        self.referee = client(Trigger, "success_service", "", "says whether the task is done")
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
        if node.driver_refuses:
            raise NotStarted(node.driver_refuses)
        if self._scene is None:
            self._require_goal(goal)  # nobody will bring one: say so before anything moves
        set_phase("going home")
        await self._go_home()
        await self._at_rest("the arm did not come home", 30.0)
        await self._trigger(self._open, "open_gripper")
        await self._at_rest("the gripper did not open", 10.0)
        set_phase("resetting")
        if self._scene is not None:
            # A drawn scene brings its own goal, which perception must know.
            answer = await self._reset(self._scene, "scene", episode_id, goal)
            if answer.has_goal:
                goal.has_goal, goal.goal_position = True, answer.goal_position
        self._require_goal(goal)
        for client, who in ((self._driver, "driver"), (self._perception, "perception")):
            if client is not None:
                await self._reset(client, who, episode_id, goal)

    def _require_goal(self, goal: RunEpisode.Goal) -> None:
        contract = self._node.policy.contract
        if contract.has_goal and not goal.has_goal:
            raise NotStarted(
                f"{contract.task} has a goal, and none was given: the pad could not be drawn into "
                "the image; set has_goal and goal_position"
            )

    async def stop_arm(self) -> None:
        """Ask the driver to stop what moves; an answer is waited for, but not required."""
        if self._stop is not None and self._stop.service_is_ready():
            await self._answer(self._stop.call_async(Trigger.Request()), 2.0)

    async def _go_home(self) -> None:
        """Bring the arm home; a request to stop stops it on the way."""
        client = self._home
        if client is None:
            return
        await self._require(
            client.server_is_ready, _ANSWER_TIMEOUT_S, "go_home: the driver does not offer it"
        )
        handle = await self._answer(client.send_goal_async(GoHome.Goal()), _ANSWER_TIMEOUT_S)
        if handle is None or not handle.accepted:
            raise NotStarted("go_home was not accepted by the driver")
        pending = handle.get_result_async()
        await self._waiter.until(lambda: pending.done() or self._cancelled(), _HOME_TIMEOUT_S)
        if not pending.done():
            await self._answer(handle.cancel_goal_async(), _ANSWER_TIMEOUT_S)
            if self._cancelled():
                raise NotStarted("stopped by request before the episode began")
            raise NotStarted(f"the arm did not come home (waited {_HOME_TIMEOUT_S:g} s)")
        result = pending.result().result
        if not result.success:
            raise NotStarted(f"the arm did not come home: {result.message}")

    async def _reset(self, client: Any, who: str, episode_id: str, goal: RunEpisode.Goal) -> Any:
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
        return answer

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
