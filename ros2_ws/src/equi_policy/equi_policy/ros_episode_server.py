"""The RunEpisode action: home, reset everyone, let the policy run, and say how it ended.

Part of the policy node (it needs the session's every turn). Who takes part is configured by
service names, so that the simulated and the real cell differ in nothing else: the scene and the
referee exist only where something offers them.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from equi_interfaces.action import RunEpisode
from equi_interfaces.msg import DriverState, ExecutedCommand, PerceptionStatus
from equi_interfaces.srv import ResetEpisode
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.task import Future
from std_srvs.srv import Trigger

from equi_policy.episode import (
    EpisodeEnd,
    EpisodeLimits,
    EpisodeOutcome,
    EpisodeView,
    judge_end,
)
from equi_ros.stamps import nanoseconds

if TYPE_CHECKING:
    from equi_policy.policy_node import PolicyNode

_WATCH_PERIOD_S = 0.05
_FEEDBACK_PERIOD_S = 0.25
_JUDGE_TIMEOUT_S = 3.0
"""A referee that has not answered by then is taken to be gone; the next step asks again."""
_STATE_MARGIN_S = 0.15
"""A robot state must be this much younger than a request before it can show its effect."""
_FINISHED = (EpisodeOutcome.SUCCEEDED, EpisodeOutcome.STEP_LIMIT, EpisodeOutcome.OBJECT_LOST)


class NotStarted(RuntimeError):
    """The episode could not begin; says which participant refused and why."""


@dataclass
class _Episode:
    goal: Any
    episode_id: str
    limits: EpisodeLimits
    end: Future = field(default_factory=Future)
    phase: str = "starting"
    began_s: float = field(default_factory=time.monotonic)
    running: bool = False
    verdict: Future | None = None
    """The referee's answer while it is waited for."""
    asked_s: float = 0.0
    task_done: bool = False
    task_failed: str = ""
    fed_back_s: float = 0.0


class EpisodeServer:
    """Runs one episode at a time."""

    def __init__(self, node: PolicyNode) -> None:
        self._node = node
        self._episode: _Episode | None = None
        self._waiting: list[tuple[Callable[[], bool], float, Future]] = []

        def client(kind: Any, parameter: str, default: str) -> Any:
            name = str(node.declare_parameter(parameter, default).value)
            return node.create_client(kind, name) if name else None

        self._activate = client(Trigger, "activate_service", "rtde_driver/activate")
        self._home = client(Trigger, "home_service", "rtde_driver/go_home")
        self._open = client(Trigger, "open_service", "rtde_driver/open_gripper")
        self._hold = client(Trigger, "hold_service", "rtde_driver/hold")
        self._driver = client(ResetEpisode, "driver_reset_service", "rtde_driver/reset_episode")
        self._eyes = client(ResetEpisode, "perception_reset_service", "depth_fusion/reset_episode")
        self._scene = client(ResetEpisode, "scene_reset_service", "")
        self._referee = client(Trigger, "success_service", "")
        limits = EpisodeLimits(max_steps=1)
        self._timeouts = {
            name: float(node.declare_parameter(name, getattr(limits, name)).value)
            for name in ("observation_timeout_s", "execution_timeout_s")
        }
        self._server = ActionServer(
            node,
            RunEpisode,
            "~/run_episode",
            execute_callback=self._execute,
            goal_callback=self._on_goal,
            cancel_callback=lambda goal: CancelResponse.ACCEPT,
        )
        node.create_timer(_WATCH_PERIOD_S, self._watch)

    # Seen by the policy node -------------------------------------------------------------------

    def may_act(self) -> bool:
        """Whether the policy may decide now: not before the start, nor while the referee looks."""
        episode = self._episode
        return episode is None or (
            episode.running
            and episode.verdict is None
            and not episode.end.done()
            and self._node.session.steps < episode.limits.max_steps
        )

    def after_step(self, executed: ExecutedCommand) -> None:
        """A step has ended: ask the referee, if there is one."""
        episode = self._episode
        if episode is None or self._referee is None or not self._referee.service_is_ready():
            return
        verdict = self._referee.call_async(Trigger.Request())
        episode.verdict, episode.asked_s = verdict, time.monotonic()

        def heard(future: Future) -> None:
            if episode.verdict is not future:
                return  # too late: it was given up
            episode.verdict = None
            answer = future.result()
            if answer is not None:
                episode.task_done = bool(answer.success)
                episode.task_failed = "" if answer.success else str(answer.message)

        verdict.add_done_callback(heard)

    # The action --------------------------------------------------------------------------------

    def _on_goal(self, goal: RunEpisode.Goal) -> GoalResponse:
        return GoalResponse.REJECT if self._episode is not None else GoalResponse.ACCEPT

    async def _execute(self, goal: Any) -> RunEpisode.Result:
        node, request = self._node, goal.request
        contract = node.policy.contract
        episode = self._episode = _Episode(
            goal,
            request.episode_id or f"{contract.task}-{uuid.uuid4().hex[:8]}",
            EpisodeLimits(max_steps=request.max_steps or contract.max_steps, **self._timeouts),
        )
        steps = 0
        try:
            if request.task not in ("", contract.task):
                raise NotStarted(f"this policy does {contract.task}, not {request.task}")
            await self._start(episode, request)
            end = await episode.end
            steps = node.session.steps
            if node.session.awaiting_execution or end.outcome not in _FINISHED:
                await self._stop_arm()
        except NotStarted as refusal:
            # A request to stop may come while the arm is still on its way home.
            stopped = goal.is_cancel_requested
            end = EpisodeEnd(
                EpisodeOutcome.STOPPED if stopped else EpisodeOutcome.REFUSED, str(refusal)
            )
            if stopped:
                await self._stop_arm()
        finally:
            self._episode = None
            node.session.end()
        node.get_logger().info(
            f"episode {episode.episode_id}: {end.outcome.name} after {steps} steps ({end.reason})"
        )
        if goal.is_cancel_requested:
            goal.canceled()
        elif end.outcome in _FINISHED:
            goal.succeed()
        else:
            goal.abort()
        return RunEpisode.Result(
            outcome=int(end.outcome),
            reason=end.reason,
            episode_id=episode.episode_id,
            steps=steps,
            duration_s=time.monotonic() - episode.began_s,
        )

    async def _start(self, episode: _Episode, request: RunEpisode.Goal) -> None:
        """Bring arm, scene, perception and driver to the start of the episode."""
        node = self._node
        await self._require(
            lambda: node.robot is not None, 10.0, "no robot state: is the driver up?"
        )
        if node.fault:
            raise NotStarted(f"the driver has a fault: {node.fault}; reset it first")
        if node.robot is not None and node.robot.state.value == DriverState.IDLE:
            episode.phase = "activating"
            await self._trigger(self._activate, "activate")
            await self._at_rest("the driver did not take over the arm", 20.0)
        episode.phase = "going home"
        await self._trigger(self._home, "go_home")
        await self._at_rest("the arm did not come home", 30.0)
        await self._trigger(self._open, "open_gripper")
        await self._at_rest("the gripper did not open", 10.0)
        episode.phase = "resetting"
        if self._scene is not None:
            # A drawn scene brings its own goal, of which perception must know.
            told = await self._reset(self._scene, "scene", episode.episode_id, request)
            goal = _goal_of(told)
            if goal is not None:
                request.has_goal = True
                request.goal_position.x, request.goal_position.y = goal
        for client, who in ((self._driver, "driver"), (self._eyes, "perception")):
            if client is not None:
                await self._reset(client, who, episode.episode_id, request)
        node.begin(episode.episode_id)
        episode.phase, episode.running = "running", True
        episode.began_s = time.monotonic()

    async def _stop_arm(self) -> None:
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
        answer = await self._ask(client, request, who, 10.0)
        if not answer.accepted:
            raise NotStarted(f"{who} refused the reset: {answer.message}")
        return str(answer.message)

    async def _trigger(self, client: Any, what: str) -> None:
        if client is None:
            return
        answer = await self._ask(client, Trigger.Request(), what, 10.0)
        if not answer.success:
            raise NotStarted(f"{what} was refused: {answer.message}")

    async def _at_rest(self, problem: str, timeout_s: float) -> None:
        """Wait for a robot state, younger than this call, that shows the arm holding still."""
        node = self._node
        asked_ns = node.now_ns() + round(_STATE_MARGIN_S * 1e9)

        def resting() -> bool:
            robot = node.robot
            if robot is None or node.fault:
                return bool(node.fault)
            return (
                nanoseconds(robot.header.stamp) > asked_ns
                and robot.state.value == DriverState.HOLD
                and not robot.moving
            )

        await self._require(resting, timeout_s, problem)
        if node.fault:
            raise NotStarted(f"{problem}: {node.fault}")

    # Waiting -----------------------------------------------------------------------------------

    async def _ask(self, client: Any, request: Any, who: str, timeout_s: float) -> Any:
        await self._require(
            client.service_is_ready, timeout_s, f"{who}: {client.srv_name} is not offered"
        )
        answer = await self._answer(client.call_async(request), timeout_s)
        if answer is None:
            raise NotStarted(f"{who}: {client.srv_name} did not answer within {timeout_s:g} s")
        return answer

    async def _answer(self, future: Future, timeout_s: float) -> Any:
        await self._until(future.done, timeout_s)
        return future.result() if future.done() else None

    async def _require(self, condition: Callable[[], bool], timeout_s: float, text: str) -> None:
        episode = self._episode

        def met_or_cancelled() -> bool:
            return condition() or (episode is not None and episode.goal.is_cancel_requested)

        met = await self._until(met_or_cancelled, timeout_s)
        if episode is not None and episode.goal.is_cancel_requested:
            raise NotStarted("stopped by request before the episode began")
        if not met:
            raise NotStarted(f"{text} (waited {timeout_s:g} s)")

    def _until(self, condition: Callable[[], bool], timeout_s: float) -> Awaitable[bool]:
        """A future that becomes True when the condition holds, False when the time is over."""
        future: Future = Future()
        self._waiting.append((condition, time.monotonic() + timeout_s, future))
        return future

    def _watch(self) -> None:
        now_s = time.monotonic()
        still: list[tuple[Callable[[], bool], float, Future]] = []
        ready: list[tuple[Future, bool]] = []
        for condition, deadline_s, future in self._waiting:
            if condition():
                ready.append((future, True))
            elif now_s > deadline_s:
                ready.append((future, False))
            else:
                still.append((condition, deadline_s, future))
        self._waiting = still
        for future, met in ready:
            future.set_result(met)
        self._watch_episode(now_s)

    def _watch_episode(self, now_s: float) -> None:
        episode, node = self._episode, self._node
        if episode is None:
            return
        if now_s - episode.fed_back_s > _FEEDBACK_PERIOD_S:
            episode.fed_back_s = now_s
            self._feed_back(episode)
        if not episode.running or episode.end.done():
            return
        if episode.verdict is not None and now_s - episode.asked_s > _JUDGE_TIMEOUT_S:
            self._give_up_verdict(episode, episode.verdict)
        perception = node.perception
        end = judge_end(
            EpisodeView(
                steps=node.session.steps,
                awaiting_execution=node.session.awaiting_execution,
                quiet_s=now_s - node.last_activity_s,
                fault=node.fault,
                cancel_requested=episode.goal.is_cancel_requested,
                judging=episode.verdict is not None,
                task_done=episode.task_done,
                task_failed=episode.task_failed,
                perception=""
                if perception is None or perception.state == PerceptionStatus.READY
                else "; ".join(perception.reasons),
                broken=node.broken,
            ),
            episode.limits,
        )
        if end is not None:
            episode.end.set_result(end)

    def _give_up_verdict(self, episode: _Episode, verdict: Future) -> None:
        episode.verdict = None
        self._referee.remove_pending_request(verdict)
        self._node.get_logger().warning(
            f"the referee ({self._referee.srv_name}) did not answer within {_JUDGE_TIMEOUT_S:g} s; "
            "the episode goes on without its word on this step"
        )

    def _feed_back(self, episode: _Episode) -> None:
        node = self._node
        phase = episode.phase
        if episode.running:
            phase = "moving" if node.session.awaiting_execution else "waiting for observation"
        episode.goal.publish_feedback(
            RunEpisode.Feedback(
                episode_id=episode.episode_id,
                steps=node.session.steps,
                elapsed_s=time.monotonic() - episode.began_s,
                phase=phase,
                holding=bool(node.robot and node.robot.holding),
            )
        )


def _goal_of(message: str) -> tuple[float, float] | None:
    """Goal on the table [m] in the scene's answer to a reset: `{"goal_xy_m": [x, y]}`."""
    try:
        goal = json.loads(message).get("goal_xy_m")
        return None if goal is None else (float(goal[0]), float(goal[1]))
    except (ValueError, TypeError, AttributeError):
        return None
