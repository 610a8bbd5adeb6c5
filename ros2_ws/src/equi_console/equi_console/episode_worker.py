# SPDX-License-Identifier: MIT
"""Runs the episodes that the desk asks for, one after the other, in a thread of its own.

Results, records and report are those of `equi_evaluation`: an evaluation that was begun here can be
resumed with `evaluate --output`, and the other way round.
"""

from __future__ import annotations

import dataclasses
import logging
import queue
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from equi_console.desk import Desk
from equi_core.files.scene_layout import SceneLayouts
from equi_core.statistics import SuccessRate
from equi_evaluation.evaluate_options import EvaluateOptions
from equi_evaluation.evaluation_loop import EpisodeRunner, settings_of
from equi_evaluation.protocol import Protocol
from equi_evaluation.report import write_report
from equi_evaluation.results import EpisodeResult, ResultsError, ResultStore

_LOG = logging.getLogger(__name__)
_POLL_S = 0.1


class EpisodeWorker:
    """Owns the results folder and the runner."""

    def __init__(
        self,
        desk: Desk,
        options: EvaluateOptions,
        make_runner: Callable[[], EpisodeRunner],
        layouts: SceneLayouts | None = None,
    ) -> None:
        self._desk, self._options, self._make_runner = desk, options, make_runner
        self._layouts = layouts
        self._wanted = 0
        self._labels: queue.Queue[str] = queue.Queue()
        self._stop_asked = threading.Event()
        self._end = threading.Event()
        self._wake = threading.Event()
        self.protocol = Protocol(options.episodes, options.seed, balanced=not options.any_order)
        self.store = ResultStore(options.output, settings_of(options))
        self._early_label = ""
        self._thread = threading.Thread(target=self._run, name="episodes", daemon=True)

    def start(self) -> None:
        """Begin to wait for requests."""
        self._thread.start()

    def close(self) -> None:
        """Run nothing more. The running episode is not stopped by this."""
        self._end.set()
        self._wake.set()

    def request(self, episodes: int) -> None:
        """Run so many more."""
        self._stop_asked.clear()
        self._wanted = episodes
        self._wake.set()

    def stop(self) -> None:
        """Run no further episodes; whoever asks cancels the running one."""
        self._wanted = 0
        self._stop_asked.set()

    def label(self, label: str) -> str:
        """Take a label: for the episode that waits, or success of the running one."""
        if self._desk.awaiting_label:
            self._labels.put(label)
            return f"{self._desk.awaiting_label}: {label}"
        self._early_label = label
        return f"{self._desk.running}: {label}, as soon as it ends"

    def declared_success(self) -> bool:
        """Whether the operator says that the running episode is done."""
        return self._early_label == "success"

    @property
    def rate(self) -> SuccessRate:
        """Success over the episodes that count."""
        counted = self.protocol.counted(self.store.results)
        return SuccessRate(sum(result.success for result in counted), len(counted))

    def report(self) -> Path:
        """Write the report now."""
        return write_report(self.store.folder)

    def record_of(self, result: EpisodeResult) -> Path | None:
        """The folder of an episode's record."""
        path = self.store.folder / result.record
        return path if result.record and path.is_dir() else None

    def _run(self) -> None:
        runner: EpisodeRunner | None = None
        while not self._end.is_set():
            if self._wanted < 1:
                self._wake.wait(_POLL_S)
                self._wake.clear()
                continue
            self._wanted -= 1
            try:
                runner = runner or self._make_runner()
                self._run_one(runner)
            except Exception as error:  # said on the page; the next press may go better
                _LOG.exception("episode")
                self._wanted = 0
                self._desk.say("console", "episode", f"failed: {error}", ok=False)
            finally:
                self._desk.running = self._desk.awaiting_label = ""

    def _run_one(self, runner: EpisodeRunner) -> None:
        number = len(self.store.results)
        seed = self._options.seed + number
        episode_id = f"{self._options.task}-{seed}-{uuid.uuid4().hex[:4]}"
        self._early_label = ""
        self._desk.running = f"episode {number + 1}"
        record = episode_id if self._options.record else ""
        if record:
            runner.start_recording(self.store.folder / record)

        def tick(feedback: Any) -> None:
            self._desk.running = f"episode {number + 1}: step {feedback.steps}, {feedback.phase}"

        # Where nobody draws the scene, only its layout knows the goal.
        goal_xy_m = None if self._layouts is None else self._layouts.of_seed(seed).goal_xy_m
        result = runner.run_episode(episode_id, seed, tick, goal_xy_m)
        result = self._labelled(dataclasses.replace(result, record=record))
        facts = {"seed": str(seed), "outcome": result.outcome, "reason": result.reason}
        problem = runner.end_recording(facts)
        if problem:
            result = dataclasses.replace(result, record="")
            self._desk.say("console", "record", f"no record: {problem}", ok=False)
        try:
            self.store.add(result)
        except ResultsError as error:
            self._wanted = 0
            self._desk.say("console", "results", str(error), ok=False)
            return
        if result.outcome in ("FAULTED", "REFUSED", "STOPPED"):
            self._wanted = 0
        words = f"{result.outcome} after {result.steps} steps: {result.reason}"
        self._desk.say("console", f"episode {number + 1}", words, ok=result.success)

    def _labelled(self, result: EpisodeResult) -> EpisodeResult:
        if self._options.ground_truth or result.invalid:
            return result
        label = self._early_label
        self._desk.awaiting_label = f"episode {len(self.store.results) + 1}"
        while not label and not self._end.is_set():
            try:
                label = self._labels.get(timeout=_POLL_S)
            except queue.Empty:
                continue
        self._desk.awaiting_label = ""
        void = label not in ("success", "failure")
        reason = "declared void by the operator" if void else result.reason
        return dataclasses.replace(result, success=label == "success", invalid=void, reason=reason)
