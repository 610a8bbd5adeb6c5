# SPDX-License-Identifier: MIT
"""The evaluation: episode after episode until the protocol is complete, then the report.

Knows nothing of ROS: whoever runs the episodes is an `EpisodeRunner`.
"""

from __future__ import annotations

import dataclasses
import typing
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.status import Status

from equi_core.calibration import CalibrationError, CellCalibration
from equi_core.contract import TASKS_WITH_GOAL, PolicyContract, Workspace
from equi_core.files.scene_layout import FILE_NAME as LAYOUTS_FILE
from equi_core.files.scene_layout import LayoutError, SceneLayout, SceneLayouts
from equi_core.locations.find import find_calibration
from equi_evaluation.episode_video import load_frames, write_video
from equi_evaluation.evaluate_options import EvaluateOptions
from equi_evaluation.operator_console import DONE, Operator, OperatorGone
from equi_evaluation.protocol import FirstTry, Protocol
from equi_evaluation.report import success_rows, write_report
from equi_evaluation.results import EpisodeResult, ResultStore

EXIT_COMPLETE = 0
EXIT_INCOMPLETE = 1
EXIT_NO_POLICY = 2

Tick = Callable[[Any], None]
"""Called with each feedback of the running episode: `steps`, `phase`, `elapsed_s`, `holding`."""


class EpisodeRunner(typing.Protocol):
    """Whoever can run an episode and record it."""

    def wait_for_policy(self, timeout_s: float) -> bool:
        """Whether somebody offers episodes."""

    def run_episode(
        self, episode_id: str, seed: int, tick: Tick, goal_xy_m: tuple[float, float] | None = None
    ) -> EpisodeResult:
        """Run one episode and say how it went; the label may still be the operator's."""

    def start_recording(self, path: Path) -> None:
        """Start to record an episode."""

    def end_recording(self, metadata: Mapping[str, str]) -> str:
        """Close the recording, if one is open; says why there is none, if it failed."""


def evaluate(
    runner: EpisodeRunner, options: EvaluateOptions, operator: Operator | None, console: Console
) -> int:
    """The whole evaluation; returns the exit code.

    Args:
        runner: runs the episodes.
        options: what to run and where to keep it.
        operator: arranges scenes and labels episodes; None where a referee does.
        console: where progress is shown.
    """
    protocol = Protocol(options.episodes, options.seed, balanced=not options.any_order)
    layouts = None if operator is None else _load_layouts(options)
    store = ResultStore(options.output, settings_of(options))
    if store.results:
        console.print(f"resuming: {len(store.results)} episodes are done already")
    if options.driven_by == "expert":
        console.print("[yellow]the scripted expert drives; no policy was learned[/]")
    if not runner.wait_for_policy(options.wait_s):
        console.print(f"[red]no policy node within {options.wait_s:g} s; is the launch running?[/]")
        return EXIT_NO_POLICY
    # Whoever still knows an episode of an earlier start must not take ours for it.
    start = uuid.uuid4().hex[:4]
    reason = ""
    while (seed := protocol.next_seed(store.results)) is not None:
        number = len(store.results)
        episode_id = f"{options.task}-{seed}-{start}"
        try:
            layout = None if layouts is None else layouts.of_seed(seed)
            result = _run_one(runner, options, operator, console, episode_id, number, seed, layout)
        except OperatorGone as error:
            console.print(f"[red]{error}[/]")
            break
        store.add(result)
        _print_result(result, protocol.counted(store.results), options.episodes, console)
        if result.record and len(store.results) <= options.videos:
            _make_video(options.output / result.record, result, console)
        reason = _reason_to_pause(store.results)
        if reason:
            console.print(f"[red]{reason}, then start again to resume[/]")
            break
    report = write_report(options.output)
    for name, rate in success_rows(protocol.counted(store.results)).items():
        console.print(f"{name:<30} {rate}", highlight=False)
    console.print(f"report: {report}", soft_wrap=True)
    # After a fault somebody has to come, also if it was the last episode.
    complete = not reason and len(protocol.counted(store.results)) == options.episodes
    return EXIT_COMPLETE if complete else EXIT_INCOMPLETE


def _reason_to_pause(results: Sequence[EpisodeResult]) -> str:
    """Why the next episode would go wrong too, and what to do first; empty if it would not."""
    outcomes = [result.outcome for result in results[-2:]]
    if outcomes[-1] == "FAULTED":
        return "the driver has a fault; reset it"
    if outcomes == ["REFUSED", "REFUSED"]:
        return "two episodes in a row could not begin; see to the reason above"
    return ""


def settings_of(options: EvaluateOptions) -> dict[str, Any]:
    """What a report tells; all but operator and time must be the same for a run to be resumed."""
    return {
        "task": options.task,
        "cell": options.cell,
        "driven_by": options.driven_by,
        "model": Path(options.model).name if options.driven_by == "policy" else "",
        "weights": _weights_of(options),
        "episodes": options.episodes,
        "seed": options.seed,
        "balanced": not options.any_order,
        "calibration": _calibration_of(options.cell),
        "operator": options.operator,
        "begun_utc": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M"),
    }


def _calibration_of(cell: str) -> str:
    """Time, verdict and digest of the cell's calibration; empty if there is none to be read."""
    path = find_calibration(cell) / "calibration.yaml"
    try:
        calibration = CellCalibration.load(path)
    except (OSError, CalibrationError):
        return ""
    verdict = "passed" if calibration.passed else "did not pass"
    return f"{calibration.created_utc}, {verdict}, {calibration.content_sha256[:12]}"


def _weights_of(options: EvaluateOptions) -> str:
    """Digest of the policy's weights; empty if an expert drives or the folder was not named."""
    contract = Path(options.model) / "contract.json"
    if options.driven_by != "policy" or not options.model or not contract.is_file():
        return ""
    return PolicyContract.load(contract, allow_unsigned=True).weights_sha256


def _run_one(
    runner: EpisodeRunner,
    options: EvaluateOptions,
    operator: Operator | None,
    console: Console,
    episode_id: str,
    number: int,
    seed: int,
    layout: SceneLayout | None,
) -> EpisodeResult:
    """One episode, recorded if that is wanted, with its label."""
    if operator is not None:
        if layout is not None:
            operator.show(layout.description(Workspace()))
        operator.ask(f"arrange scene {seed}, step back", {"g": "go"})
        operator.show(f"during the episode: type {DONE} and ENTER when the task is done")
        operator.discard()
    record = episode_id if options.record else ""
    if record:
        runner.start_recording(options.output / record)
    goal_xy_m = None if layout is None else layout.goal_xy_m
    with console.status(f"episode {number + 1}") as status:
        line = _StatusLine(status, console, number)
        result = runner.run_episode(episode_id, seed, line, goal_xy_m)
    if operator is not None and line.holding:
        operator.show(
            "the gripper still holds an object; the next episode begins with setting it down where "
            "it was taken up: arrange the scene around that place only after it is open, or "
            "open it now with 'ros2 service call /rtde_driver/open_gripper std_srvs/srv/Trigger'"
        )
    result = dataclasses.replace(result, record=record)
    try:
        result = _labelled(result, operator)
    except OperatorGone as error:
        # Kept, so that nobody wonders where it went; without a label it counts for nothing.
        result = dataclasses.replace(result, invalid=True, reason=f"not labelled: {error}")
    problem = runner.end_recording(
        {"seed": str(seed), "outcome": result.outcome, "reason": result.reason}
    )
    if problem:
        console.print(f"[red]no record of {episode_id}: {problem}[/]")
        result = dataclasses.replace(result, record="")
    return result


def _load_layouts(options: EvaluateOptions) -> SceneLayouts | None:
    """What to put where, from the model's folder; None where it has no such file.

    Raises:
        LayoutError: the task has a goal, which only that file knows.
    """
    path = Path(options.model) / LAYOUTS_FILE
    if options.model and path.is_file():
        layouts = SceneLayouts.load(path)
        if layouts.task != options.task:
            raise LayoutError(f"{path} holds scenes of {layouts.task}, not of {options.task}")
        return layouts
    if options.task in TASKS_WITH_GOAL:
        raise LayoutError(
            f"{options.task} has a goal, which must be known before an episode; give --model with "
            f"a folder that holds {LAYOUTS_FILE} (written by equi-export or equi-scenes)"
        )
    return None


class _StatusLine:
    """Shows the feedback of episode `number`: live in a terminal, elsewhere a line per step."""

    def __init__(self, status: Status, console: Console, number: int) -> None:
        self._status, self._console, self._number = status, console, number
        self._printed_steps = -1
        self.holding = False
        """Whether the gripper held something when it was last heard of."""

    def __call__(self, feedback: Any) -> None:
        """Show one feedback."""
        self.holding = bool(feedback.holding)
        holding = ", holding" if self.holding else ""
        text = (
            f"episode {self._number + 1}: step {feedback.steps}, {feedback.phase}, "
            f"{feedback.elapsed_s:.0f} s{holding}"
        )
        self._status.update(text)
        # A launch reads whole lines: there the live line would arrive when the episode is over.
        if not self._console.is_terminal and feedback.steps != self._printed_steps:
            self._printed_steps = feedback.steps
            self._console.print(text, highlight=False, soft_wrap=True)


def _labelled(result: EpisodeResult, operator: Operator | None) -> EpisodeResult:
    """The result with the operator's label, where there is an operator and something to label."""
    if operator is None or result.invalid:
        return result
    success = operator.ask("was the task done?", {"y": "yes", "n": "no"}) == "y"
    kinds = {"m": FirstTry.MOVABLE, "i": FirstTry.IMMOVABLE, "o": FirstTry.NONE}
    first = operator.ask(
        "which object was tried first?", {letter: kind.value for letter, kind in kinds.items()}
    )
    return dataclasses.replace(result, success=success, first_try=kinds[first].value)


def _print_result(
    result: EpisodeResult, counted: list[EpisodeResult], wanted: int, console: Console
) -> None:
    good = sum(item.success for item in counted)
    colour = "green" if result.success else "red"
    console.print(
        f"{result.episode_id} (seed {result.seed}): [{colour}]{result.outcome}[/] after "
        f"{result.steps} steps, {result.duration_s:.1f} s, {result.first_try} first: "
        f"{result.reason} ({good} of {len(counted)} so far, {wanted} wanted)",
        highlight=False,
        soft_wrap=True,
    )


def _make_video(recording: Path, result: EpisodeResult, console: Console) -> None:
    title = f"{result.episode_id}  {result.outcome}"
    path = write_video(load_frames(recording), title, recording.with_suffix(".mp4"))
    if path is not None:
        console.print(f"video: {path}", soft_wrap=True)
