# SPDX-License-Identifier: MIT
"""console: the operator's desk in the browser, beside a running cell.

    ros2 run equi_console console --task block_picking --simulated

Prints one address. Reads the cell's topics, presses its services, runs episodes through the
evaluator. Closing the page pauses nothing and stops nothing; ending this process does not either,
except for an episode that it runs itself, which is cancelled.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.utilities import remove_ros_args

from equi_console.desk import Action, Desk
from equi_console.desk_state import DeskState
from equi_console.episode_worker import EpisodeWorker
from equi_console.ros_arm_view import ArmView
from equi_console.ros_feeds import Feeds
from equi_console.ros_requests import Done, Requests
from equi_console.scene.camera_correction import CellCorrection, NoCorrectionError
from equi_console.scene.placement import TableView, check_placement, sealed_words
from equi_console.web.server_options import ServerError, ServerOptions, parse, require_free
from equi_core.calibration import CalibrationError, CellCalibration
from equi_core.files.scene_layout import FILE_NAME as LAYOUTS_FILE
from equi_core.files.scene_layout import LayoutError, SceneLayout, SceneLayouts
from equi_core.locations.find import find_calibration
from equi_evaluation.evaluate_node import EvaluateNode
from equi_evaluation.evaluate_options import EvaluateOptions
from equi_ros.run_node import initialized

EXIT_REFUSED = 3
_LIFECYCLE_PERIOD_S = 1.0
_SPIN_S = 0.05
_PLACEMENT_PERIOD_S = 1.0
_CORRECTION_PERIOD_S = 10.0
"""Until the next try, if the cameras' error could not be measured [s]."""
_END_S = 1.2


class ConsoleNode(Node):
    """Feeds the desk and carries out its presses."""

    def __init__(self, options: ServerOptions) -> None:
        super().__init__("console")
        state = DeskState(cell=options.cell, task=options.task, simulated=options.simulated)
        state.calibration = calibration_words(options.cell)
        self.desk = Desk(state, self._carry_out)
        self.feeds = Feeds(self, state, options.side_views)
        self._requests = Requests(self, state)
        self._layouts = load_layouts(options)
        self.worker = EpisodeWorker(
            self.desk, _evaluation(options), self._make_runner, self._layouts
        )
        self.create_timer(_LIFECYCLE_PERIOD_S, self._requests.ask_lifecycle)
        if self._layouts is not None:
            self.create_timer(_PLACEMENT_PERIOD_S, self._check_placement)
        self._options = options
        self._runner: EvaluateNode | None = None
        self._correction: CellCorrection | str = ""
        self._correction_due_s = 0.0
        self._measuring = threading.Thread()

    def _carry_out(self, action: Action, arguments: Mapping[str, Any], done: Done) -> None:
        if action is Action.RUN:
            count = int(arguments.get("episodes", 1))
            self.worker.request(count)
            done(True, f"{count} episode{'s' if count > 1 else ''} asked for")
        elif action is Action.LABEL:
            done(True, self.worker.label(str(arguments["label"])))
        else:
            if action is Action.STOP:
                self.worker.stop()
            self._requests.carry_out(action, arguments, done)

    def _check_placement(self) -> None:
        """Hold the next scene against what the cameras see, while nothing runs."""
        state, views = self.desk.state, self.feeds.views
        if self._layouts is None or self.desk.running:
            state.layout = state.placement = None
            return
        seed = self._options.seed + len(self.worker.store.results)
        try:
            layout = self._layouts.of_seed(seed)
        except LayoutError:
            state.layout = state.placement = None
            return
        if state.layout != layout:
            state.layout = layout
            self._seal(layout)
            self._correction_due_s = 0.0
        if not self._measuring.is_alive() and time.monotonic() >= self._correction_due_s:
            self._measuring = threading.Thread(target=self._measure_cameras, daemon=True)
            self._measuring.start()
        if views:
            view = TableView.merged(list(views))
            state.placement = check_placement(layout, view, self._correction)

    def _measure_cameras(self) -> None:
        """By how much the cameras are off: for every scene anew, as long as it is not known."""
        try:
            self._correction = ArmView(self._options.cell, self.get_namespace()).measure()
            self._correction_due_s = math.inf
        except NoCorrectionError as error:
            self._correction = f"The cameras' own error is not taken out: {error}"
            self._correction_due_s = time.monotonic() + _CORRECTION_PERIOD_S

    def _seal(self, layout: SceneLayout) -> None:
        """Write for the assistant which object is the movable one; the page never says it."""
        folder = Path(self._options.output) / "sealed"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"scene-{layout.seed}.txt").write_text(sealed_words(layout))
        except OSError as error:
            self.desk.say("console", "scene", f"the sealed file was not written: {error}", ok=False)

    def _make_runner(self) -> EvaluateNode:
        """The evaluator, in the worker's thread."""
        self._runner = EvaluateNode(
            _evaluation(self._options),
            _WebOperator(self.worker),  # type: ignore[arg-type]
            _NoSignal(),  # type: ignore[arg-type]
        )
        if not self._runner.wait_for_policy(20.0):
            self._runner.destroy_node()
            self._runner = None
            raise RuntimeError("the policy is not up; look at the lifecycle states")
        return self._runner

    def end_episode(self) -> None:
        """Cancel an episode that this console runs: nobody would record or label it any more."""
        self.worker.close()
        if self.desk.running:
            self._requests.carry_out(Action.STOP, {}, lambda ok, text: None)
            deadline_s = time.monotonic() + _END_S
            while self.desk.running and time.monotonic() < deadline_s:
                time.sleep(_SPIN_S)

    def destroy_node(self) -> None:
        """End the worker first."""
        self.worker.close()
        super().destroy_node()


class _WebOperator:
    """The evaluator asks it during an episode; labels come from the page."""

    def __init__(self, worker: EpisodeWorker) -> None:
        self._worker = worker

    def declared_success(self) -> bool:
        return self._worker.declared_success()


class _NoSignal:
    """Signals reach the web server; the evaluator's thread gets none."""

    @contextlib.contextmanager
    def defer(self) -> Iterator[None]:
        yield

    def check(self) -> None:
        if not rclpy.ok():
            raise ExternalShutdownException


def load_layouts(options: ServerOptions) -> SceneLayouts | None:
    """The scenes to arrange: of a real cell only; None where the model has no such file.

    A simulated cell arranges its scenes itself, at the start of each episode.
    """
    path = Path(options.model) / LAYOUTS_FILE
    if options.simulated or not options.model or not path.is_file():
        return None
    return SceneLayouts.load(path)


def calibration_words(cell: str) -> str:
    """Verdict and age of a cell's calibration."""
    try:
        calibration = CellCalibration.load(find_calibration(cell))
        calibration.require_usable([camera.name for camera in calibration.cameras], cell=cell)
    except CalibrationError as error:
        return f"NOT USABLE: {error}"
    return (
        f"passed, made {calibration.created:%Y-%m-%d}, valid until {calibration.expires:%Y-%m-%d}"
    )


def _evaluation(options: ServerOptions) -> EvaluateOptions:
    return EvaluateOptions(
        episodes=options.episodes,
        seed=options.seed,
        task=options.task,
        cell=options.cell,
        driven_by="policy",
        model=options.model,
        ground_truth=options.simulated,
        any_order=True,
        record=options.record,
        sensors="none",
        cameras=(),
        videos=0,
        side_view=options.side_views[0] if options.side_views else "",
        output=Path(options.output),
        wait_s=20.0,
    )


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    arguments = sys.argv[1:] if args is None else args
    options = parse(remove_ros_args([sys.argv[0], *arguments])[1:])
    try:
        if importlib.util.find_spec("nicegui") is None:
            raise ServerError("NiceGUI is not installed; run 'make setup CONSOLE=1'")
        require_free(options)
    except ServerError as error:
        sys.stderr.write(f"console: {error}\n")
        return EXIT_REFUSED
    from equi_console.web.server import serve  # takes a second

    with initialized(arguments) as shutdown:
        shutdown.ignore()  # the web server handles signals
        node = ConsoleNode(options)
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        ended = threading.Event()

        def spin() -> None:
            with contextlib.suppress(ExternalShutdownException):
                while not ended.is_set():
                    executor.spin_once(timeout_sec=_SPIN_S)

        thread = threading.Thread(target=spin, name="ros", daemon=True)
        thread.start()
        node.worker.start()
        try:
            serve(node.desk, node.worker, node.feeds, options)
        finally:
            node.end_episode()
            ended.set()
            thread.join(2.0)
            executor.shutdown(timeout_sec=1.0)
            node.destroy_node()
    return 0


if __name__ == "__main__":
    sys.exit(main())
