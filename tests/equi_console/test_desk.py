# SPDX-License-Identifier: MIT
"""The desk: presses are answered at once, refusals say why, and one operator sits there."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from equi_console import desk_state as states
from equi_console.desk import Action, Desk
from equi_console.desk_state import DeskState, PerceptionView, RobotView, SafetyView
from equi_console.scene.placement import Placed, Placement
from equi_console.seat import OperatorSeat, SeatTaken

ANNA, BEN = "browser-a", "browser-b"


class Cell:
    """Remembers what it was asked to do."""

    def __init__(self) -> None:
        self.asked: list[tuple[Action, Mapping[str, Any]]] = []
        self.done: Callable[[bool, str], None] = lambda ok, text: None

    def carry_out(self, action: Action, arguments: Mapping[str, Any], done: Any) -> None:
        self.asked.append((action, arguments))
        self.done = done


def robot(driver_state: int, heard_s: float | None = None) -> RobotView:
    heard = time.monotonic() if heard_s is None else heard_s
    joints = (0.0,) * 6
    return RobotView(
        driver_state, False, "", 0, (0.5, 0.0, 0.2), 0.0, joints, 1.0, False, True, heard
    )


def fault(number: int = 2, name: str = "PROTECTIVE_STOP") -> SafetyView:
    return SafetyView(states.FAULT, number, name, ("protective_stop: it",), "look", 1.0, 1.0, 3)


@pytest.fixture
def cell() -> Cell:
    return Cell()


@pytest.fixture
def desk(cell: Cell) -> Desk:
    made = Desk(DeskState(robot=robot(states.HOLD)), cell.carry_out)
    made.seat.take(ANNA, "Anna")
    return made


def test_a_press_is_answered_before_it_is_carried_out_and_the_answer_is_completed(
    desk: Desk, cell: Cell
) -> None:
    answer = desk.press(ANNA, Action.GO_HOME)
    assert (answer.ok, answer.who, answer.text) == (None, "Anna", "asked ...")
    cell.done(True, "at home")
    assert [(line.ok, line.text) for line in desk.answers] == [(True, "at home")]


def test_presses_are_answered_also_if_the_cell_never_answers(desk: Desk) -> None:
    for _ in range(20):
        assert desk.press(ANNA, Action.PAUSE).text == "asked ..."
    assert [line.ok for line in desk.answers] == [None] * 20


def test_an_error_while_carrying_out_is_an_answer_not_an_end(desk: Desk) -> None:
    def fail(*_: object) -> None:
        raise OSError("no service")

    broken = Desk(desk.state, fail)
    broken.seat.take(ANNA, "Anna")
    broken.press(ANNA, Action.GO_HOME)
    assert broken.answers[0].text == "failed: no service"


@pytest.mark.parametrize(
    ("driver_state", "action", "words"),
    [
        (states.IDLE, Action.RUN, "activate or resume it first (it is IDLE)"),
        (states.HOLD, Action.ACTIVATE, "active already"),
        (states.HOLD, Action.RESUME, "nothing is paused"),
        (states.IDLE, Action.PAUSE, "does not drive"),
        (states.ACTIVE, Action.GO_HOME, "at rest"),
        (states.FAULT, Action.ACTIVATE, "a fault is latched"),
        (states.HOLD, Action.RESET_FAULT, "no fault is latched"),
        (states.HOLD, Action.LABEL, "a label is success, failure, void"),
    ],
)
def test_a_press_that_cannot_work_says_why_and_asks_nothing(
    desk: Desk, cell: Cell, driver_state: int, action: Action, words: str
) -> None:
    desk.state.robot = robot(driver_state)
    answer = desk.press(ANNA, action)
    assert answer.ok is False
    assert words in answer.text
    assert cell.asked == []


def test_a_silent_driver_is_said(desk: Desk, cell: Cell) -> None:
    desk.state.robot = robot(states.HOLD, heard_s=time.monotonic() - 10.0)
    assert desk.state.driver_word == "SILENT"
    assert "is not heard" in desk.press(ANNA, Action.RUN).text
    assert cell.asked == []


def test_a_run_needs_perception_and_a_sane_number(desk: Desk) -> None:
    assert "1 to 500, not 0" in desk.press(ANNA, Action.RUN, episodes=0).text
    assert "1 to 500, not 501" in desk.press(ANNA, Action.RUN, episodes=501).text
    desk.state.perception = PerceptionView(False, ("cloud_stale: cam_left",), {})
    assert "cloud_stale: cam_left" in desk.press(ANNA, Action.RUN, episodes=1).text
    desk.state.perception = PerceptionView(True, (), {})
    assert desk.press(ANNA, Action.RUN, episodes=1).ok is None


def test_on_a_robot_a_scene_is_ready_when_the_check_says_so(desk: Desk) -> None:
    off = Placed("A", (0.5, 0.0), (0.512, 0.0))
    desk.state.simulated = False
    desk.state.placement = Placement(7, (off,))
    refused = desk.press(ANNA, Action.RUN, episodes=1)
    assert "the scene is not arranged: scene 7: not ready: A: move it (by -12.0" in refused.text
    desk.state.placement = Placement(7, (Placed("A", (0.5, 0.0), (0.501, 0.0)),))
    assert desk.press(ANNA, Action.RUN, episodes=1).ok is None


def test_on_a_robot_episodes_are_run_one_by_one_and_the_operator_labels(desk: Desk) -> None:
    desk.running = "episode 1"
    assert "the referee" in desk.press(ANNA, Action.LABEL, label="success").text
    desk.state.simulated = False
    assert desk.press(ANNA, Action.LABEL, label="success").ok is None
    desk.running = ""
    assert "one by one" in desk.press(ANNA, Action.RUN, episodes=2).text
    assert "no episode waits" in desk.press(ANNA, Action.LABEL, label="void").text


@pytest.mark.parametrize("driver_state", [states.HOLD, states.ACTIVE, states.PAUSED])
def test_nothing_runs_beside_an_episode(desk: Desk, driver_state: int) -> None:
    desk.running = "episode 3"
    desk.state.robot = robot(driver_state)
    assert "episode 3 is running; stop it first" in desk.press(ANNA, Action.RUN).text
    assert "episode 3 is running; stop it first" in desk.press(ANNA, Action.GO_HOME).text


def test_a_fault_is_reset_only_by_typing_what_is_latched(desk: Desk, cell: Cell) -> None:
    desk.state.robot, desk.state.safety = robot(states.FAULT), fault()
    for typed in ("", "ok", "EMERGENCY_STOP"):
        answer = desk.press(ANNA, Action.RESET_FAULT, acknowledged=typed, fault_count=3)
        assert "type PROTECTIVE_STOP" in answer.text
    assert cell.asked == []
    # A page that still shows the fault before this one.
    answer = desk.press(ANNA, Action.RESET_FAULT, acknowledged="PROTECTIVE_STOP", fault_count=2)
    assert "another fault has been latched since" in answer.text
    assert cell.asked == []
    desk.press(ANNA, Action.RESET_FAULT, acknowledged=" protective_stop ", fault_count=3)
    assert cell.asked[0][0] is Action.RESET_FAULT
    assert cell.asked[0][1]["who"] == "Anna"
    assert cell.asked[0][1]["fault_count"] == 3


@pytest.mark.parametrize("action", set(Action) - {Action.PAUSE, Action.STOP})
def test_a_visitor_may_not_press(desk: Desk, cell: Cell, action: Action) -> None:
    answer = desk.press(BEN, action, label="success", acknowledged="x", episodes=1)
    assert "Anna has the desk" in answer.text
    assert cell.asked == []


@pytest.mark.parametrize("action", [Action.PAUSE, Action.STOP])
def test_anybody_may_make_the_arm_stand_still(desk: Desk, cell: Cell, action: Action) -> None:
    assert desk.press(BEN, action).ok is None
    assert [asked for asked, _ in cell.asked] == [action]


def test_stop_is_never_refused(desk: Desk, cell: Cell) -> None:
    desk.state.robot = None
    assert desk.press(BEN, Action.STOP).ok is None
    desk.state.robot, desk.state.safety = robot(states.FAULT), fault()
    assert desk.press(BEN, Action.STOP).ok is None


def test_a_seat_is_taken_over_only_on_purpose() -> None:
    seat = OperatorSeat()
    assert seat.take(ANNA, "Anna") == "Anna has the desk"
    with pytest.raises(SeatTaken, match="Anna has the desk; press 'take over'"):
        seat.take(BEN, "Ben")
    assert seat.has(ANNA)
    assert seat.take(BEN, "Ben", take_over=True) == "Ben took over from Anna"
    assert seat.has(BEN)
    assert not seat.has(ANNA)
    assert seat.leave(ANNA) == "you did not have the desk"
    assert seat.leave(BEN) == "Ben left the desk"


def test_nobody_sits_down_without_a_name() -> None:
    with pytest.raises(ValueError, match="say who you are"):
        OperatorSeat().take(ANNA, "  ")


def test_who_runs_without_evidence_and_shadow_mode_are_seen() -> None:
    reasons = ("i_know: R. Meyer runs mode full without its evidence (...)",)
    view = SafetyView(states.HOLD, 0, "NONE", reasons, "", 1.0, 1.0)
    assert view.i_know == reasons[0]
    assert not view.is_shadow
    shadow = SafetyView(states.HOLD, 0, "NONE", ("shadow: nothing moves",), "", 1.0, 1.0)
    assert shadow.is_shadow


def test_without_cameras_the_page_says_what_to_do() -> None:
    nothing = DeskState()
    assert nothing.camera_words.startswith("none is heard; start them (cameras:=realsense)")
    clouds = DeskState(perception=PerceptionView(True, (), {"cam_left": 0.2}))
    assert clouds.camera_words == "no images; clouds: cam_left 0.20 s old"
    images = DeskState(rates_hz={"cam_left": 6.0})
    assert images.camera_words == "cam_left 6.0 Hz; clouds: none"


def test_a_fault_is_told_without_what_stands_in_a_banner_of_its_own() -> None:
    reasons = ("protective_stop: it", "i_know: Anna runs mode full", "shadow: listening")
    safety = SafetyView(states.FAULT, 2, "PROTECTIVE_STOP", reasons, "look", 1.0, 1.0, 1)
    assert safety.causes == ("protective_stop: it",)
    assert safety.i_know == "i_know: Anna runs mode full"
    assert safety.is_shadow
