# SPDX-License-Identifier: MIT
"""evaluate: runs episodes of the running policy, records and labels them, and writes the report.

    ros2 run equi_evaluation evaluate --episodes 50 --record        # beside the launch
    ros2 run equi_evaluation evaluate --episodes 50 --output runs/evaluation/lab   # resume

In the simulated cell (--ground-truth) success comes from the referee. On hardware the operator is
asked: before each episode to arrange the scene, which is shown, after it for the label; `d` and
ENTER during an episode declare success. A run that was interrupted continues where it stopped.

However it is stopped (Ctrl-C, SIGTERM, a closed terminal, an error), the running episode is
cancelled first, so that the arm holds. Signals are handled between two callbacks
(`equi_ros.shutdown_signal`).

Here are only the action client and the subscriptions; the run itself is in `evaluation_loop`.
"""

from __future__ import annotations

import array
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from equi_interfaces.action import RunEpisode
from equi_interfaces.msg import PerceptionStatus
from lifecycle_msgs.msg import State
from lifecycle_msgs.srv import GetState
from rclpy.action import ActionClient
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.serialization import serialize_message
from rclpy.utilities import remove_ros_args
from rich.console import Console
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import String
from std_srvs.srv import Trigger

from equi_evaluation.bag.ros_topics import (
    RecordedTopic,
    offered_qos,
    periods_ns,
    recorded_topics,
    type_name_of,
)
from equi_evaluation.episode_monitor import EpisodeMonitor
from equi_evaluation.episode_recorder import (
    EpisodeRecorder,
    ImageFormatError,
    encode_jpeg,
    rgb_image,
)
from equi_evaluation.episode_video import SIDE_VIEW_TOPIC
from equi_evaluation.evaluate_options import EvaluateOptions, parse
from equi_evaluation.evaluation_loop import Tick, evaluate
from equi_evaluation.operator_console import Operator
from equi_evaluation.results import EpisodeResult
from equi_ros import qos
from equi_ros.run_node import initialized
from equi_ros.shutdown_signal import ShutdownSignal

_OUTCOMES = {
    getattr(RunEpisode.Result, name): name
    for name in (
        "SUCCEEDED",
        "STEP_LIMIT",
        "FAULTED",
        "OBJECT_LOST",
        "OBSERVATION_LOST",
        "STOPPED",
        "REFUSED",
    )
}
_ANSWER_TIMEOUT_S = 2.0
_ASK_PERIOD_S = 0.5
"""How often the nodes are asked whether they are up; they have better things to do meanwhile."""
_STOP_TIMEOUT_S = 1.2
"""Longest wait for an episode to stop: every node ends within 2 s of a signal."""


class EvaluateNode(Node):
    """Client of the RunEpisode action; passes on what the topics bring."""

    def __init__(
        self, options: EvaluateOptions, operator: Operator | None, shutdown: ShutdownSignal
    ) -> None:
        super().__init__("evaluator")
        self._options = options
        self._operator = operator
        self._shutdown = shutdown
        self._success_declared = threading.Event()
        self._monitor = EpisodeMonitor(options.ground_truth)
        self._side_view_topic = self.resolve_topic_name(SIDE_VIEW_TOPIC)
        self._recorder = self._make_recorder(recorded_topics(options.sensors, options.cameras))
        self._side_view_refused = False
        self._client = ActionClient(self, RunEpisode, "policy/run_episode")
        self.create_subscription(DiagnosticArray, "diagnostics", self._on_diagnostics, qos.RECORDED)
        self._perception_state: int | None = None
        self.create_subscription(
            PerceptionStatus, "perception_status", self._on_perception, qos.LATCHED
        )
        if options.ground_truth:
            self.create_subscription(
                String, "simulated_scene/ground_truth", self._on_ground_truth, qos.LATCHED
            )
        else:
            self.create_service(Trigger, "~/check_success", self._on_check_success)
        if options.record and options.side_view:
            self.create_subscription(Image, options.side_view, self._on_side_view, qos.NEWEST)

    # Recording ---------------------------------------------------------------------------------

    def _make_recorder(self, topics: Sequence[RecordedTopic]) -> EpisodeRecorder:
        """The recorder of these topics, subscribed to them if a record is wanted."""
        names = {topic.name: self.resolve_topic_name(topic.name) for topic in topics}
        types = {names[topic.name]: type_name_of(topic.kind) for topic in topics}
        types[self._side_view_topic] = type_name_of(CompressedImage)
        if self._options.record:
            for topic in topics:
                callback = partial(self._on_recorded, names[topic.name])
                self.create_subscription(topic.kind, topic.name, callback, topic.profile, raw=True)
        periods = periods_ns(topics, self._options.sensors)
        return EpisodeRecorder(
            types,
            {names[name]: period for name, period in periods.items()},
            latched={names[topic.name]: topic.latched for topic in topics},
            namespace=self.get_namespace(),
        )

    def start_recording(self, folder: Path) -> None:
        """Start to record an episode into a new bag."""
        with self._shutdown.defer():
            qos_of = {topic: offered_qos(self, topic) for topic in self._recorder.topics}
            self._recorder.start(folder, qos_of, time.time_ns())

    def end_recording(self, metadata: Mapping[str, str]) -> str:
        """Close the recording, if one is open; says why there is none, if it failed."""
        with self._shutdown.defer():
            return self._recorder.end(metadata)

    def _on_recorded(self, topic: str, data: bytes, info: Mapping[str, Any]) -> None:
        # When it arrived, as rosbag2 writes it: on a busy machine it may have waited for this call.
        self._recorder.write(topic, data, int(info.get("received_timestamp") or time.time_ns()))

    def _on_side_view(self, message: Image) -> None:
        if not self._recorder.is_open:
            return
        shape = (message.height, message.width)
        try:
            rgb = rgb_image(message.encoding, shape, message.step, message.data)
        except ImageFormatError as error:
            if not self._side_view_refused:
                self._side_view_refused = True
                self.get_logger().warning(
                    f"no side view is recorded: {self._options.side_view} {error}"
                )
            return
        data = encode_jpeg(rgb)
        if data is not None:
            image = CompressedImage(header=message.header, format="jpeg")
            image.data = array.array("B", data)
            self._recorder.write(self._side_view_topic, serialize_message(image), time.time_ns())

    # Topics ------------------------------------------------------------------------------------

    def _on_perception(self, message: PerceptionStatus) -> None:
        self._perception_state = int(message.state)

    def _on_ground_truth(self, message: String) -> None:
        self._monitor.on_referee(message.data)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            for item in status.values:
                self._monitor.on_diagnostic(status.name, item.key, item.value)

    def _on_check_success(
        self, request: Trigger.Request, response: Trigger.Response
    ) -> Trigger.Response:
        response.success = self._success_declared.is_set()
        return response

    # Episodes ----------------------------------------------------------------------------------

    def wait_for_policy(self, timeout_s: float) -> bool:
        """Whether the policy node offers episodes, and whatever they need is up.

        Where a lifecycle manager brings the nodes up, it says when they are; perception, where it
        reports, must have fresh clouds.
        """
        deadline_s = time.monotonic() + timeout_s
        policy = self.create_client(GetState, "policy/get_state")
        manager = self.create_client(Trigger, "lifecycle_manager/is_active")

        def is_active(answer: GetState.Response) -> bool:
            return bool(answer.current_state.id == State.PRIMARY_STATE_ACTIVE)

        def is_up(answer: Trigger.Response) -> bool:
            return bool(answer.success)

        ask_s = 0.0
        while time.monotonic() < deadline_s and rclpy.ok():
            with self._shutdown.defer():
                if time.monotonic() < ask_s:
                    rclpy.spin_once(self, timeout_sec=0.1)
                    continue
                ask_s = time.monotonic() + _ASK_PERIOD_S
                if (
                    self._client.server_is_ready()
                    and self._agrees(policy, GetState.Request(), is_active)
                    and self._agrees(manager, Trigger.Request(), is_up)
                    and self._perception_state in (None, PerceptionStatus.READY)
                ):
                    return True
        return False

    def _agrees(self, client: Any, request: Any, is_ready: Callable[[Any], bool]) -> bool:
        """Whether a service says so, or is not offered at all."""
        if not client.service_is_ready():
            return True
        answer = self._spin_until(client.call_async(request), time.monotonic() + _ANSWER_TIMEOUT_S)
        return answer is not None and is_ready(answer)

    def run_episode(
        self, episode_id: str, seed: int, tick: Tick, goal_xy_m: tuple[float, float] | None = None
    ) -> EpisodeResult:
        """Run one episode and say how it went; the label may still be the operator's."""
        goal = RunEpisode.Goal(episode_id=episode_id, task=self._options.task, seed=seed)
        if goal_xy_m is not None:
            goal.has_goal = True
            goal.goal_position.x, goal.goal_position.y = goal_xy_m
        with self._shutdown.defer():
            return self._run_episode(goal, tick)

    def _run_episode(self, goal: RunEpisode.Goal, tick: Tick) -> EpisodeResult:
        self._monitor.reset()
        self._success_declared = threading.Event()
        episode_id, seed = str(goal.episode_id), int(goal.seed)
        accepted = self._client.send_goal_async(
            goal, feedback_callback=lambda message: tick(message.feedback)
        )
        try:
            handle = self._spin(accepted)
            if handle is None or not handle.accepted:
                reason = "the policy node is busy with another episode, or not active"
                return self._monitor.result(episode_id, seed, "REFUSED", reason, 0, 0.0)
            answer = self._spin(handle.get_result_async())
        except BaseException:
            self._stop_episode(accepted)
            raise
        result = answer.result
        # The referee's last label and the last diagnostics may still be on their way.
        until_s = time.monotonic() + (1.2 if self._options.ground_truth else 0.5)
        while time.monotonic() < until_s:
            rclpy.spin_once(self, timeout_sec=0.05)
        outcome = _OUTCOMES.get(result.outcome, "?")
        return self._monitor.result(
            episode_id, seed, outcome, result.reason, result.steps, result.duration_s
        )

    def _stop_episode(self, accepted: Any) -> None:
        """Cancel the goal and wait, for a while, until the policy node says that it has ended."""
        try:
            if self._has_stopped(accepted, time.monotonic() + _STOP_TIMEOUT_S):
                return
        except Exception as error:  # why the run ends matters more
            self.get_logger().error(f"while stopping: {error}")
        self.get_logger().error(
            "the policy node did not confirm the stop of the episode; check that the arm is at rest"
        )

    def _has_stopped(self, accepted: Any, deadline_s: float) -> bool:
        """Cancel the goal; whether it was never accepted, or has ended in time."""
        handle = self._spin_until(accepted, deadline_s)
        if handle is None or not handle.accepted:
            return handle is not None
        result = handle.get_result_async()
        self._spin_until(handle.cancel_goal_async(), deadline_s)
        return self._spin_until(result, deadline_s) is not None

    def _spin_until(self, future: Any, deadline_s: float) -> Any:
        """What the future brings in time, else None; errors of other callbacks matter no more."""
        while rclpy.ok() and not future.done() and time.monotonic() < deadline_s:
            try:
                rclpy.spin_once(self, timeout_sec=0.05)
            except Exception as error:
                self.get_logger().error(f"while stopping: {error}", throttle_duration_sec=1.0)
        return future.result() if future.done() else None

    def _spin(self, future: Any) -> Any:
        while rclpy.ok() and not future.done():
            rclpy.spin_once(self, timeout_sec=0.1)
            self._shutdown.check()
            if self._operator is not None and self._operator.declared_success():
                self._success_declared.set()
        return future.result() if future.done() else None


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    arguments = sys.argv[1:] if args is None else args
    options = parse(remove_ros_args([sys.argv[0], *arguments])[1:])
    console = Console()
    operator = None if options.ground_truth else Operator(console)
    with initialized(arguments) as shutdown:
        node: EvaluateNode | None = None
        try:
            with shutdown.defer():
                node = EvaluateNode(options, operator, shutdown)
            return evaluate(node, options, operator, console)
        except (KeyboardInterrupt, ExternalShutdownException):
            shutdown.ignore()
            console.print("stopped; start again with the same --output to resume")
            return 130
        except ValueError as error:
            console.print(f"[red]{error}[/]")
            return 2
        finally:
            shutdown.ignore()
            if node is not None:
                node.end_recording({"outcome": "interrupted"})
                node.destroy_node()


if __name__ == "__main__":
    sys.exit(main())
