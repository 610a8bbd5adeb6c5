"""evaluate: runs episodes of the running policy, records and labels them, and writes the report.

    ros2 run equi_evaluation evaluate --episodes 50 --record        # beside the launch
    ros2 run equi_evaluation evaluate --episodes 50 --output runs/evaluation/lab   # resume

In the simulated cell (--ground-truth) success comes from the referee. On hardware the operator is
asked: before each episode to arrange the scene, after it for the label; ENTER during an episode
declares success. A run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import argparse
import array
import datetime
import json
import queue
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from equi_interfaces.action import RunEpisode
from equi_interfaces.msg import (
    DeltaCommand,
    ExecutedCommand,
    Observation,
    PerceptionStatus,
    RobotState,
    SafetyStatus,
)
from rclpy.action import ActionClient
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from rclpy.utilities import remove_ros_args
from rich.console import Console
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import String
from std_srvs.srv import Trigger

from equi_evaluation.message_definitions import definition_of
from equi_evaluation.pictures import SIDE_VIEW_TOPIC, load_frames, video_frames, write_video
from equi_evaluation.protocol import FirstTry, Protocol
from equi_evaluation.recording import McapRecorder
from equi_evaluation.report import success_rows, write_report
from equi_evaluation.results import EpisodeResult, ResultStore

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
_INVALID = ("STOPPED", "REFUSED")
_RELIABLE = QoSProfile(depth=50, reliability=ReliabilityPolicy.RELIABLE)
_NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
_LATCHED = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
_RECORDED: dict[str, tuple[Any, QoSProfile]] = {
    "observation": (Observation, _RELIABLE),
    "delta_command": (DeltaCommand, _RELIABLE),
    "executed_command": (ExecutedCommand, _RELIABLE),
    "robot_state": (RobotState, _NEWEST),
    "safety_status": (SafetyStatus, _LATCHED),
    "perception_status": (PerceptionStatus, _LATCHED),
    "diagnostics": (DiagnosticArray, _RELIABLE),
}
_STATE_PERIOD_NS = 100_000_000


class EvaluateNode(Node):
    """Drives the RunEpisode action and writes what passes by."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__("evaluator")
        self._options = options
        self._recorder: McapRecorder | None = None
        self._truth: dict[str, Any] = {}
        self._latencies: dict[str, dict[str, float]] = {}
        self._last_state_ns = 0
        self._operator_says_done = threading.Event()
        self.feedback = RunEpisode.Feedback()
        self._client = ActionClient(self, RunEpisode, "policy/run_episode")
        self.create_subscription(DiagnosticArray, "diagnostics", self._on_diagnostics, _RELIABLE)
        if options.ground_truth:
            self.create_subscription(
                String, "simulated_scene/ground_truth", self._on_truth, _LATCHED
            )
        else:
            self.create_service(Trigger, "~/judge", self._on_judge)
        if options.record:
            for topic, (kind, profile) in _RECORDED.items():
                self.create_subscription(kind, topic, self._recording(topic), profile, raw=True)
            if options.side_view:
                self.create_subscription(Image, options.side_view, self._on_side_view, _NEWEST)

    # Recording ---------------------------------------------------------------------------------

    def _recording(self, topic: str) -> Callable[[bytes], None]:
        def record(data: bytes) -> None:
            now_ns = time.time_ns()
            if topic == "robot_state":
                if now_ns - self._last_state_ns < _STATE_PERIOD_NS:
                    return
                self._last_state_ns = now_ns
            if self._recorder is not None:
                self._recorder.write(topic, data, now_ns)

        return record

    def _on_side_view(self, message: Image) -> None:
        if self._recorder is None:
            return
        rgb = np.frombuffer(message.data, np.uint8).reshape(message.height, message.width, 3)
        coded, data = cv2.imencode(".jpg", rgb[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 85])
        if coded:
            picture = CompressedImage(header=message.header, format="jpeg")
            picture.data = array.array("B", data.tobytes())
            self._recorder.write(SIDE_VIEW_TOPIC, serialize_message(picture), time.time_ns())

    def start_record(self, path: Path) -> None:
        """Open the record of an episode."""
        recorder = McapRecorder(path)
        kinds = {topic: kind for topic, (kind, _) in _RECORDED.items()}
        for topic, kind in {**kinds, SIDE_VIEW_TOPIC: CompressedImage}.items():
            package, folder = kind.__module__.split(".")[:2]
            name = f"{package}/{folder}/{kind.__name__}"
            recorder.add_topic(topic, name, definition_of(name))
        self._recorder = recorder

    def end_record(self, notes: dict[str, str]) -> None:
        """Close the record."""
        if self._recorder is not None:
            recorder, self._recorder = self._recorder, None
            recorder.add_note("episode", notes)
            recorder.close()

    # Listening ---------------------------------------------------------------------------------

    def _on_truth(self, message: String) -> None:
        self._truth = json.loads(message.data)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name not in ("policy", "depth_fusion"):
                continue
            for item in status.values:
                for quantile in ("p50", "p99"):
                    ending = f" {quantile} [ms]"
                    if item.key.endswith(ending):
                        stage = f"{status.name}: {item.key[: -len(ending)].replace('_', ' ')}"
                        self._latencies.setdefault(stage, {})[quantile] = float(item.value)

    def _on_judge(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = self._operator_says_done.is_set()
        return response

    # Episodes ----------------------------------------------------------------------------------

    def wait_for_policy(self, timeout_s: float) -> bool:
        """Whether the policy node offers episodes."""
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s and rclpy.ok():
            if self._client.wait_for_server(timeout_sec=0.2):
                return True
            rclpy.spin_once(self, timeout_sec=0.1)
        return False

    def run_episode(
        self, episode_id: str, seed: int, tick: Callable[[RunEpisode.Feedback], None]
    ) -> EpisodeResult:
        """Run one episode and say how it went; the label may still be the operator's."""
        self._truth, self._operator_says_done = {}, threading.Event()
        goal = RunEpisode.Goal(episode_id=episode_id, task=self._options.task, seed=seed)
        accepted = self._client.send_goal_async(
            goal, feedback_callback=lambda message: tick(message.feedback)
        )
        handle = self._spin(accepted)
        if handle is None or not handle.accepted:
            return self._result(
                episode_id, seed, "REFUSED", "the policy node is busy with another episode", 0, 0.0
            )
        try:
            answer = self._spin(handle.get_result_async())
        except KeyboardInterrupt:
            self._spin(handle.cancel_goal_async())
            raise
        result = answer.result
        # The referee's last word and the last diagnostics may still be on their way.
        until_s = time.monotonic() + (1.2 if self._options.ground_truth else 0.5)
        while time.monotonic() < until_s:
            rclpy.spin_once(self, timeout_sec=0.05)
        return self._result(
            episode_id,
            seed,
            _OUTCOMES.get(result.outcome, "?"),
            result.reason,
            result.steps,
            result.duration_s,
        )

    def _result(
        self, episode_id: str, seed: int, outcome: str, reason: str, steps: int, duration_s: float
    ) -> EpisodeResult:
        truth = self._truth if self._truth.get("episode_id") == episode_id else {}
        success = outcome == "SUCCEEDED"
        if self._options.ground_truth:
            success = bool(truth.get("success", False))
        return EpisodeResult(
            episode_id=episode_id,
            seed=seed,
            outcome=outcome,
            reason=reason,
            success=success,
            label_source="ground_truth" if self._options.ground_truth else "operator",
            first_try=str(truth.get("first_try", FirstTry.NONE.value)),
            steps=int(steps),
            duration_s=float(duration_s),
            invalid=outcome in _INVALID,
            latencies_ms={stage: dict(values) for stage, values in self._latencies.items()},
        )

    def _spin(self, future: Any) -> Any:
        while rclpy.ok() and not future.done():
            rclpy.spin_once(self, timeout_sec=0.1)
            if self._options.operator is not None and self._options.operator.pressed():
                self._operator_says_done.set()
        return future.result() if future.done() else None


class Operator:
    """The person at the keyboard; reads lines in a thread of its own."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in sys.stdin:
            self._lines.put(line.strip().lower())

    def pressed(self) -> bool:
        """Whether ENTER was pressed since the last call."""
        try:
            self._lines.get_nowait()
            return True
        except queue.Empty:
            return False

    def ask(self, question: str, answers: dict[str, str]) -> str:
        """One of the answers, by its first letter."""
        letters = ", ".join(f"{letter} = {meaning}" for letter, meaning in answers.items())
        while True:
            self._console.print(f"[bold]{question}[/] ({letters})")
            line = self._lines.get()
            if line[:1] in answers:
                return line[:1]


def evaluate(node: EvaluateNode, options: argparse.Namespace, console: Console) -> int:
    """The whole evaluation; returns the exit code."""
    protocol = Protocol(options.episodes, options.seed, balanced=not options.any_order)
    store = ResultStore(
        options.output,
        {
            "task": options.task,
            "cell": options.cell,
            "driven_by": options.driven_by,
            "model": Path(options.model).name if options.driven_by == "policy" else "",
            "episodes": options.episodes,
            "seed": options.seed,
            "balanced": not options.any_order,
        },
    )
    if store.results:
        console.print(f"resuming: {len(store.results)} episodes are done already")
    if options.driven_by == "expert":
        console.print("[yellow]the scripted expert drives; no policy was learned[/]")
    if not node.wait_for_policy(options.wait_s):
        console.print(f"[red]no policy node within {options.wait_s:g} s; is the launch running?[/]")
        return 2
    while (seed := protocol.next_seed(store.results)) is not None:
        number = len(store.results)
        episode_id = f"{options.task}-{options.seed}-{number:03d}"
        if options.operator is not None:
            options.operator.ask(f"arrange scene {seed}, step back", {"g": "go"})
        record = f"{episode_id}.mcap" if options.record else ""
        if record:
            node.start_record(options.output / record)
        status = console.status(f"episode {number + 1}")
        with status:
            result = node.run_episode(episode_id, seed, _status_line(status, number))
        result = _labelled(result, options.operator, record)
        node.end_record({"seed": str(seed), "outcome": result.outcome, "reason": result.reason})
        store.add(result)
        counted = protocol.counted(store.results)
        good = sum(item.success for item in counted)
        colour = "green" if result.success else "red"
        console.print(
            f"{episode_id} (seed {seed}): [{colour}]{result.outcome}[/] after {result.steps} "
            f"steps, {result.duration_s:.1f} s, {result.first_try} first: {result.reason} "
            f"({good} of {len(counted)} so far, {options.episodes} wanted)",
            highlight=False,
        )
        if record and number < options.videos:
            _make_video(options.output / record, result, console)
        if result.outcome == "FAULTED":
            console.print("[red]the driver has a fault; reset it, then start again to resume[/]")
            break
    report = write_report(options.output)
    for name, rate in success_rows(protocol.counted(store.results)).items():
        console.print(f"{name:<30} {rate}", highlight=False)
    console.print(f"report: {report}", soft_wrap=True)
    return 0 if protocol.next_seed(store.results) is None else 1


def _status_line(status: Any, number: int) -> Callable[[RunEpisode.Feedback], None]:
    """Shows the feedback of episode `number` in the live status line."""

    def show(feedback: RunEpisode.Feedback) -> None:
        holding = ", holding" if feedback.holding else ""
        status.update(
            f"episode {number + 1}: step {feedback.steps}, {feedback.phase}, "
            f"{feedback.elapsed_s:.0f} s{holding}"
        )

    return show


def _labelled(result: EpisodeResult, operator: Operator | None, record: str) -> EpisodeResult:
    changes: dict[str, Any] = {"record": record}
    if operator is not None and not result.invalid:
        changes["success"] = operator.ask("was the task done?", {"y": "yes", "n": "no"}) == "y"
        first = operator.ask(
            "which object was tried first?", {"m": "movable", "i": "immovable", "o": "none"}
        )
        changes["first_try"] = {"m": "movable", "i": "immovable", "o": "none"}[first]
    return EpisodeResult(**{**vars(result), **changes})


def _make_video(record: Path, result: EpisodeResult, console: Console) -> None:
    title = f"{result.episode_id}  {result.outcome}"
    pictures = video_frames(load_frames(record), title)
    if pictures:
        path = write_video(pictures, record.with_suffix(".mp4"))
        console.print(f"video: {path}", soft_wrap=True)


def parse(arguments: list[str]) -> argparse.Namespace:
    """Command line of `evaluate`."""
    parser = argparse.ArgumentParser(
        prog="evaluate",
        description="Run, record and label episodes of the running policy, and report.",
        epilog="Example: ros2 run equi_evaluation evaluate --episodes 50 --ground-truth --record",
    )
    parser.add_argument("--episodes", type=int, default=50, help="episodes that shall count")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first scene")
    parser.add_argument("--task", default="block_picking", help="task of the running policy")
    parser.add_argument("--cell", default="sim", help="name of the cell, for the report")
    parser.add_argument("--driven-by", default="policy", choices=["policy", "expert"])
    parser.add_argument("--model", default="", help="policy folder, for the report")
    parser.add_argument(
        "--ground-truth", action="store_true", help="labels from the simulated cell's referee"
    )
    parser.add_argument("--any-order", action="store_true", help="count every episode")
    parser.add_argument("--record", action="store_true", help="write an MCAP per episode")
    parser.add_argument("--videos", type=int, default=2, help="videos of the first so many records")
    parser.add_argument(
        "--side-view", default="cam_left/color/image_raw", help="image topic for the video"
    )
    parser.add_argument("--output", type=Path, default=None, help="folder; give it to resume")
    parser.add_argument("--wait-s", type=float, default=90.0, help="wait for the policy node [s]")
    options = parser.parse_args(arguments)
    if options.output is None:
        stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
        options.output = Path("runs") / "evaluation" / f"{options.task}-{stamp}"
    return options


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    arguments = sys.argv[1:] if args is None else args
    options = parse(remove_ros_args([sys.argv[0], *arguments])[1:])
    console = Console()
    options.operator = None if options.ground_truth else Operator(console)
    rclpy.init(args=arguments)
    node = EvaluateNode(options)
    try:
        return evaluate(node, options, console)
    except (KeyboardInterrupt, ExternalShutdownException):
        console.print("stopped; start again with the same --output to resume")
        return 130
    except ValueError as error:
        console.print(f"[red]{error}[/]")
        return 2
    finally:
        node.end_record({"outcome": "interrupted"})
        node.destroy_node()
        rclpy.try_shutdown()


if __name__ == "__main__":
    sys.exit(main())
