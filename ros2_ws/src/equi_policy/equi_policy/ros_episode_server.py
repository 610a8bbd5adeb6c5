# SPDX-License-Identifier: MIT
"""The RunEpisode action: home, reset everyone, let the policy run, and report how it ended.

Part of the policy node: it watches every step of the session.
"""

from __future__ import annotations

import dataclasses
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from equi_interfaces.action import RunEpisode
from equi_interfaces.msg import PerceptionStatus
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.task import Future
from std_srvs.srv import Trigger

from equi_policy.episode import (
    EpisodeEnd,
    EpisodeLimits,
    EpisodeOutcome,
    EpisodeStatus,
    evaluate_end,
)
from equi_policy.ros_participants import NotStarted, Participants
from equi_ros.condition_waiter import ConditionWaiter
from equi_ros.parameters import declare_settings

if TYPE_CHECKING:
    from equi_policy.policy_node import PolicyNode

_POLL_PERIOD_S = 0.05
_FEEDBACK_PERIOD_S = 0.25
_REFEREE_TIMEOUT_S = 3.0
"""A referee that has not answered by then is taken to be gone; the next step asks again."""
_FINISHED = (EpisodeOutcome.SUCCEEDED, EpisodeOutcome.STEP_LIMIT, EpisodeOutcome.OBJECT_LOST)


@dataclass
class _Episode:
    goal: Any
    episode_id: str
    limits: EpisodeLimits
    end: Future = field(default_factory=Future)
    phase: str = "starting"
    begin_s: float = field(default_factory=time.monotonic)
    running: bool = False
    referee_answer: Future | None = None
    """The referee's answer while it is pending."""
    asked_s: float = 0.0
    task_done: bool = False
    task_failed: str = ""
    feedback_s: float = 0.0
    stop_requested: bool = False

    def set_phase(self, phase: str) -> None:
        """What the feedback says until the episode runs."""
        self.phase = phase

    def cancel_requested(self) -> bool:
        """Whether the client has cancelled the goal, or the policy is being deactivated."""
        return self.stop_requested or bool(self.goal.is_cancel_requested)


class EpisodeServer:
    """Runs one episode at a time."""

    def __init__(self, node: PolicyNode) -> None:
        self._node = node
        self._episode: _Episode | None = None
        self._waiter = ConditionWaiter()
        self._participants = Participants(node, self._waiter)
        limits = declare_settings(node, EpisodeLimits(max_steps=1), skip=("max_steps",))
        self._limits = limits
        self._server = ActionServer(
            node,
            RunEpisode,
            "~/run_episode",
            execute_callback=self._execute,
            goal_callback=self._on_goal,
            cancel_callback=lambda goal: CancelResponse.ACCEPT,
        )
        node.create_timer(_POLL_PERIOD_S, self._poll)

    # For the policy node -----------------------------------------------------------------------

    def may_act(self) -> bool:
        """Whether the policy may act: not before the start, nor while the referee is asked."""
        episode = self._episode
        return episode is None or (
            episode.running
            and episode.referee_answer is None
            and not episode.end.done()
            and self._node.session.steps < episode.limits.max_steps
        )

    def after_step(self) -> None:
        """A step has ended: ask the referee, if there is one."""
        episode, referee = self._episode, self._participants.referee
        if episode is None or referee is None or not referee.service_is_ready():
            return
        pending = referee.call_async(Trigger.Request())
        episode.referee_answer, episode.asked_s = pending, time.monotonic()

        def on_answer(future: Future) -> None:
            if episode.referee_answer is not future:
                return  # too late: it was given up
            episode.referee_answer = None
            answer = future.result()
            if answer is not None:
                episode.task_done = bool(answer.success)
                episode.task_failed = "" if answer.success else str(answer.message)

        pending.add_done_callback(on_answer)

    @property
    def running(self) -> bool:
        """Whether an episode is under way."""
        return self._episode is not None

    def stop(self) -> None:
        """End the running episode, if there is one, and stop the arm."""
        if self._episode is not None:
            self._episode.stop_requested = True

    # The action --------------------------------------------------------------------------------

    def _on_goal(self, goal: RunEpisode.Goal) -> GoalResponse:
        if not self._node.is_active:
            self._node.get_logger().error(
                f"an episode was rejected: the policy is {self._node.state_label}; activate it"
            )
            return GoalResponse.REJECT
        return GoalResponse.REJECT if self._episode is not None else GoalResponse.ACCEPT

    async def _execute(self, goal: Any) -> RunEpisode.Result:
        node, request = self._node, goal.request
        contract = node.policy.contract
        episode = self._episode = _Episode(
            goal,
            request.episode_id or f"{contract.task}-{uuid.uuid4().hex[:8]}",
            dataclasses.replace(self._limits, max_steps=request.max_steps or contract.max_steps),
        )
        steps = 0
        try:
            if request.task not in ("", contract.task):
                raise NotStarted(f"this policy does {contract.task}, not {request.task}")
            if node.foreign_publishers:
                raise NotStarted(node.foreign_publishers)
            await self._participants.start(
                episode.episode_id, request, episode.cancel_requested, episode.set_phase
            )
            self._begin(episode)
            end: EpisodeEnd = await episode.end
            steps = node.session.steps
            if node.session.awaiting_execution or end.outcome not in _FINISHED:
                await self._participants.stop_arm()
        except NotStarted as refusal:
            # A request to stop may come while the arm is still on its way home.
            stopped = episode.cancel_requested()
            end = EpisodeEnd(
                EpisodeOutcome.STOPPED if stopped else EpisodeOutcome.REFUSED, str(refusal)
            )
            if stopped:
                await self._participants.stop_arm()
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
            duration_s=time.monotonic() - episode.begin_s,
        )

    def _begin(self, episode: _Episode) -> None:
        self._node.begin(episode.episode_id)
        episode.phase, episode.running = "running", True
        episode.begin_s = time.monotonic()

    # Watching ----------------------------------------------------------------------------------

    def _poll(self) -> None:
        self._waiter.poll()
        episode, now_s = self._episode, time.monotonic()
        if episode is None:
            return
        if now_s - episode.feedback_s > _FEEDBACK_PERIOD_S:
            episode.feedback_s = now_s
            self._publish_feedback(episode)
        if not episode.running or episode.end.done():
            return
        if episode.referee_answer is not None and now_s - episode.asked_s > _REFEREE_TIMEOUT_S:
            self._give_up_on_referee(episode, episode.referee_answer)
        end = evaluate_end(self._status(episode, now_s), episode.limits)
        if end is not None:
            episode.end.set_result(end)

    def _status(self, episode: _Episode, now_s: float) -> EpisodeStatus:
        node, perception = self._node, self._node.perception
        waiting = perception is not None and perception.state != PerceptionStatus.READY
        return EpisodeStatus(
            steps=node.session.steps,
            awaiting_execution=node.session.awaiting_execution,
            quiet_s=now_s - node.last_activity_s,
            fault=node.fault,
            cancel_requested=episode.cancel_requested(),
            awaiting_referee=episode.referee_answer is not None,
            task_done=episode.task_done,
            task_failed=episode.task_failed,
            perception="; ".join(perception.reasons) if perception and waiting else "",
            broken=node.broken or node.foreign_publishers or node.driver_refuses,
        )

    def _give_up_on_referee(self, episode: _Episode, pending: Future) -> None:
        episode.referee_answer = None
        referee = self._participants.referee
        referee.remove_pending_request(pending)
        self._node.get_logger().warning(
            f"the referee ({referee.srv_name}) did not answer within {_REFEREE_TIMEOUT_S:g} s; "
            "the episode continues without its answer for this step"
        )

    def _publish_feedback(self, episode: _Episode) -> None:
        node = self._node
        phase = episode.phase
        if episode.running:
            phase = "moving" if node.session.awaiting_execution else "waiting for observation"
        episode.goal.publish_feedback(
            RunEpisode.Feedback(
                episode_id=episode.episode_id,
                steps=node.session.steps,
                elapsed_s=time.monotonic() - episode.begin_s,
                phase=phase,
                holding=bool(node.robot and node.robot.holding),
            )
        )
