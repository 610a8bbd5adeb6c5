# SPDX-License-Identifier: MIT
"""Specification of the evaluation loop: asks for scenes, keeps what happened, knows when to stop.

The episodes are run by a stand-in, so neither ROS nor a cell is needed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import re
import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from families import wait_until
from rich.console import Console

from equi_core.calibration import CellCalibration
from equi_core.files.scene_layout import LayoutError
from equi_evaluation.episode_monitor import EpisodeMonitor
from equi_evaluation.evaluate_options import parse
from equi_evaluation.evaluation_loop import (
    EXIT_COMPLETE,
    EXIT_INCOMPLETE,
    EXIT_NO_POLICY,
    evaluate,
)
from equi_evaluation.operator_console import Operator
from equi_evaluation.results import EpisodeResult, ResultsError, load_results, load_settings

FEEDBACK = SimpleNamespace(steps=3, phase="moving", elapsed_s=4.2, holding=True)


class ScriptedRunner:
    """Runs nothing: gives the scripted outcomes in order and notes what it was asked for."""

    def __init__(self, *outcomes: str, ready: bool = True) -> None:
        self.outcomes = list(outcomes)
        self.ready = ready
        self.asked: list[tuple[str, int]] = []
        self.goals: list[tuple[float, float] | None] = []
        self.problem = ""
        self.records: list[str] = []
        self.notes: list[dict[str, str]] = []

    def wait_for_policy(self, timeout_s: float) -> bool:
        return self.ready

    def run_episode(self, episode_id: str, seed: int, tick, goal_xy_m=None) -> EpisodeResult:
        self.asked.append((episode_id, seed))
        self.goals.append(goal_xy_m)
        tick(FEEDBACK)
        outcome = self.outcomes.pop(0)
        return EpisodeMonitor(ground_truth=False).result(episode_id, seed, outcome, "why", 7, 9.0)

    def start_recording(self, path) -> None:
        self.records.append(path.name)

    def end_recording(self, notes) -> str:
        self.notes.append(dict(notes))
        return self.problem


def run(folder, runner, *arguments, operator=None) -> tuple[int, str]:
    """Exit code of the evaluation and what it printed."""
    printed = io.StringIO()
    out = Console(file=printed, width=200)
    options = parse(["--output", str(folder), "--any-order", "--seed", "0", *arguments])
    code = evaluate(runner, options, operator, out)
    return code, printed.getvalue()


class TellingRunner(ScriptedRunner):
    """Tells of every step twice, as a runner does that is heard several times a second."""

    def run_episode(self, episode_id: str, seed: int, tick, goal_xy_m=None) -> EpisodeResult:
        for steps in (0, 0, 1, 1, 2):
            tick(feedback_of(steps))
        return super().run_episode(episode_id, seed, tick, goal_xy_m)


def feedback_of(steps: int) -> SimpleNamespace:
    return SimpleNamespace(steps=steps, phase="moving", elapsed_s=1.0 * steps, holding=False)


def test_where_no_live_line_can_be_shown_each_step_is_one_line(tmp_path) -> None:
    code, printed = run(tmp_path, TellingRunner("SUCCEEDED"), "--episodes", "1")
    assert code == EXIT_COMPLETE
    told = [line for line in printed.splitlines() if line.startswith("episode 1: step")]
    assert told == [
        "episode 1: step 0, moving, 0 s",
        "episode 1: step 1, moving, 1 s",
        "episode 1: step 2, moving, 2 s",
        "episode 1: step 3, moving, 4 s, holding",
    ]


class Typist:
    """Somebody who reads each question, then types the next line; leaves when there is none."""

    def __init__(self, *lines: str) -> None:
        self.shown = io.StringIO()
        self._lines = lines

    def __iter__(self):
        for number, line in enumerate(self._lines, start=1):
            wait_until(partial(self._asked, number), 20.0, f"question {number}")
            yield line

    def _asked(self, number: int) -> bool:
        lines = self.shown.getvalue().splitlines()
        return sum(" = " in line and "(" in line for line in lines) >= number


def typing_operator(*lines: str) -> Operator:
    typist = Typist(*lines)
    return Operator(Console(file=typist.shown, width=200), typist)


def shown_to(operator: Operator) -> str:
    file = operator._console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_episodes_are_named_by_task_scene_and_start_and_their_scenes_count_upwards(tmp_path):
    runner = ScriptedRunner("SUCCEEDED", "STEP_LIMIT")
    code, text = run(tmp_path, runner, "--episodes", "2", "--seed", "40", "--task", "t")
    assert code == EXIT_COMPLETE
    assert [seed for _, seed in runner.asked] == [40, 41]
    (one, start), (two, same_start) = (name.rsplit("-", 1) for name, _ in runner.asked)
    assert (one, two) == ("t-40", "t-41")
    assert start == same_start
    assert [result.success for result in load_results(tmp_path)] == [True, False]
    assert "1 of 2 so far" in text
    assert (tmp_path / "report.html").is_file()


def test_the_report_names_operator_start_and_calibration_of_the_cell(tmp_path, monkeypatch):
    monkeypatch.setenv("ROS_HOME", str(tmp_path))
    places = tmp_path / "equi" / "calibration"
    calibration = CellCalibration.load(
        Path(__file__).parents[2] / "calibration" / "results" / "sim"
    )
    calibration.save(places / "mycell" / "calibration.yaml")
    out = tmp_path / "out"
    run(out, ScriptedRunner("FAULTED"), "--episodes", "2", "--cell", "mycell", "--operator", "Ada")
    page = (out / "report.html").read_text()
    assert "operator Ada" in page
    assert re.search(r"begun \d{4}-\d\d-\d\d \d\d:\d\d UTC", page)
    digest = calibration.content_sha256[:12]
    assert f"{calibration.created_utc}, passed, {digest}" in page.replace("&#43;", "+")
    # Another person may resume it; another calibration makes it another evaluation.
    second = ScriptedRunner("SUCCEEDED")
    run(out, second, "--episodes", "2", "--cell", "mycell", "--operator", "Bob")
    assert len(second.asked) == 1
    dataclasses.replace(calibration, robot_serial="another").save(
        places / "mycell" / "calibration.yaml"
    )
    with pytest.raises(ResultsError, match="calibration"):
        run(out, ScriptedRunner("SUCCEEDED"), "--episodes", "2", "--cell", "mycell")


def test_without_a_policy_nothing_is_run(tmp_path):
    runner = ScriptedRunner(ready=False)
    code, text = run(tmp_path, runner, "--wait-s", "5")
    assert code == EXIT_NO_POLICY
    assert "no policy node within 5 s" in text
    assert runner.asked == []


def test_a_fault_of_the_driver_ends_the_run_and_the_next_run_goes_on_from_there(tmp_path):
    code, text = run(tmp_path, ScriptedRunner("SUCCEEDED", "FAULTED"), "--episodes", "3")
    assert code == EXIT_INCOMPLETE
    assert "reset it" in text
    second = ScriptedRunner("SUCCEEDED")
    code, text = run(tmp_path, second, "--episodes", "3")
    assert code == EXIT_COMPLETE
    assert "resuming: 2 episodes" in text
    assert [seed for _, seed in second.asked] == [2]


def test_a_fault_in_the_last_episode_is_a_failure_of_the_run_though_every_episode_counts(tmp_path):
    code, text = run(tmp_path, ScriptedRunner("SUCCEEDED", "FAULTED"), "--episodes", "2")
    assert code == EXIT_INCOMPLETE
    assert "reset it" in text
    assert len(load_results(tmp_path)) == 2


def test_two_episodes_in_a_row_that_could_not_begin_end_the_run(tmp_path):
    runner = ScriptedRunner("REFUSED", "SUCCEEDED", "REFUSED", "REFUSED", "SUCCEEDED")
    code, text = run(tmp_path, runner, "--episodes", "2")
    assert code == EXIT_INCOMPLETE
    assert "two episodes in a row could not begin" in text
    assert len(runner.asked) == 4


def test_an_episode_of_another_start_never_has_the_same_name(tmp_path):
    first, second = ScriptedRunner("SUCCEEDED"), ScriptedRunner("SUCCEEDED")
    run(tmp_path / "a", first, "--episodes", "1")
    run(tmp_path / "b", second, "--episodes", "1")
    assert first.asked[0][0] != second.asked[0][0]


def test_a_run_that_gave_up_is_not_complete(tmp_path):
    outcomes = ["STOPPED"] * 4  # by hand, so none counts; at most four attempts per episode
    code, _ = run(tmp_path, ScriptedRunner(*outcomes), "--episodes", "1")
    assert code == EXIT_INCOMPLETE


def test_a_run_with_other_settings_is_refused_instead_of_mixed_in(tmp_path):
    run(tmp_path, ScriptedRunner("SUCCEEDED"), "--episodes", "1")
    with pytest.raises(ResultsError, match="seed"):
        run(tmp_path, ScriptedRunner("SUCCEEDED"), "--episodes", "1", "--seed", "9")


def test_an_episode_that_was_stopped_by_hand_is_repeated_with_the_next_scene(tmp_path):
    runner = ScriptedRunner("STOPPED", "SUCCEEDED")
    code, _ = run(tmp_path, runner, "--episodes", "1")
    assert code == EXIT_COMPLETE
    assert [seed for _, seed in runner.asked] == [0, 1]


def test_each_record_is_named_after_its_episode_and_says_how_it_ended(tmp_path):
    runner = ScriptedRunner("STEP_LIMIT")
    run(tmp_path, runner, "--episodes", "1", "--task", "t", "--record", "--videos", "0")
    (record,) = runner.records
    assert record == runner.asked[0][0]
    assert runner.notes == [{"seed": "0", "outcome": "STEP_LIMIT", "reason": "why"}]
    assert load_results(tmp_path)[0].record == record


def test_without_record_no_file_is_opened(tmp_path):
    runner = ScriptedRunner("SUCCEEDED")
    run(tmp_path, runner, "--episodes", "1")
    assert runner.records == []
    assert load_results(tmp_path)[0].record == ""


def test_the_operators_word_is_the_label_whatever_the_policy_thought(tmp_path):
    operator = typing_operator("g", "n", "i")
    run(tmp_path, ScriptedRunner("SUCCEEDED"), "--episodes", "1", operator=operator)
    (result,) = load_results(tmp_path)
    assert (result.success, result.first_try) == (False, "immovable")
    assert result.label_source == "operator"


def test_the_operator_is_not_asked_to_label_what_never_began(tmp_path):
    operator = typing_operator("g", "g", "y", "m")
    run(tmp_path, ScriptedRunner("REFUSED", "SUCCEEDED"), "--episodes", "1", operator=operator)
    assert [result.invalid for result in load_results(tmp_path)] == [True, False]


def test_an_answer_that_was_not_offered_is_asked_for_again(tmp_path):
    assert typing_operator("what?", "", "Yes").ask("done?", {"y": "yes", "n": "no"}) == "y"


def test_the_experts_episodes_are_never_filed_under_a_model(tmp_path):
    arguments = ("--episodes", "1", "--driven-by", "expert", "--model", "models/block_picking")
    _, text = run(tmp_path, ScriptedRunner("SUCCEEDED"), *arguments)
    assert load_settings(tmp_path)["model"] == ""
    assert load_settings(tmp_path)["weights"] == ""
    assert "no policy was learned" in text


def test_the_weights_that_were_evaluated_are_filed(tmp_path, repository_root):
    model = repository_root / "models" / "block_picking"
    run(tmp_path, ScriptedRunner("SUCCEEDED"), "--episodes", "1", "--model", str(model))
    filed = load_settings(tmp_path)["weights"]
    assert filed == hashlib.sha256((model / "policy.safetensors").read_bytes()).hexdigest()


def test_without_an_output_the_folder_is_named_after_the_task():
    output = parse(["--task", "drawer_opening"]).output
    assert output.parent.as_posix() == "runs/evaluation"
    assert output.name.startswith("drawer_opening-")


def test_keys_pressed_before_a_question_do_not_answer_it():
    """Somebody leans on ENTER and g while the arm moves: the next question is still asked."""
    shown = io.StringIO()
    ready = threading.Event()

    def keys():
        yield from ("g", "g", "y")
        ready.set()
        wait_until(lambda: "was it done?" in shown.getvalue(), 20.0, "the question")
        yield "n"

    operator = Operator(Console(file=shown, width=200), keys())
    assert ready.wait(20.0)
    assert operator.ask("was it done?", {"y": "yes", "n": "no"}) == "n"


def test_only_d_declares_success_during_an_episode():
    operator = typing_operator()
    for line in ("", "", "g"):
        operator._lines.put(line)
    assert not operator.declared_success(), "ENTER, once too often, is no success"
    operator._lines.put("d")
    assert operator.declared_success()
    assert not operator.declared_success()


def test_the_end_of_the_input_ends_the_evaluation_and_keeps_what_was_done(tmp_path):
    runner = ScriptedRunner("STEP_LIMIT", "STEP_LIMIT")
    code, text = run(
        tmp_path, runner, "--episodes", "2", operator=typing_operator("g", "y", "m", "g")
    )
    assert code == EXIT_INCOMPLETE
    assert "the input has ended" in text
    labelled, unlabelled = load_results(tmp_path)
    assert labelled.success
    assert not labelled.invalid
    assert unlabelled.invalid
    assert "not labelled" in unlabelled.reason


def test_the_operator_sees_what_to_put_where_and_the_goal_goes_to_the_policy(
    tmp_path, repository_root
):
    model = repository_root / "models" / "block_pushing"
    runner = ScriptedRunner("STEP_LIMIT")
    operator = typing_operator("g", "n", "m")
    code, _ = run(
        tmp_path,
        runner,
        *("--episodes", "1", "--task", "block_pushing", "--model", str(model)),
        *("--seed", "900000000"),
        operator=operator,
    )
    assert code == EXIT_COMPLETE
    shown = shown_to(operator)
    stored = json.loads((model / "scenes.json").read_text())["scenes"][0]
    x_m, y_m = stored["goal_xy_m"]
    assert runner.goals == [(x_m, y_m)]
    assert f"goal: x = {1e3 * x_m:.0f} mm, y = {1e3 * y_m:.0f} mm" in shown
    for item in stored["objects"]:
        assert f"x = {1e3 * item['x_m']:.0f} mm" in shown


def test_pushing_on_hardware_without_a_known_goal_is_refused_before_anything_moves(tmp_path):
    runner = ScriptedRunner("STEP_LIMIT")
    with pytest.raises(LayoutError, match=r"block_pushing has a goal.*scenes\.json"):
        run(tmp_path, runner, "--task", "block_pushing", operator=typing_operator())
    assert runner.asked == []


def test_an_episode_whose_recording_failed_counts_without_a_record(tmp_path):
    runner = ScriptedRunner("SUCCEEDED")
    runner.problem = "No space left on device"
    code, text = run(tmp_path, runner, "--episodes", "1", "--record")
    assert code == EXIT_COMPLETE
    assert "No space left" in text
    assert load_results(tmp_path)[0].record == ""


def test_an_operator_is_told_of_what_the_gripper_still_holds(tmp_path):
    operator = typing_operator("g", "n", "m")
    run(tmp_path, ScriptedRunner("STEP_LIMIT"), "--episodes", "1", operator=operator)
    assert "the gripper still holds an object" in shown_to(operator)
