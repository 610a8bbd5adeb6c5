# SPDX-License-Identifier: MIT
"""The desk: presses in, answers out. Every press is answered at once; a refused one says why."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from equi_console import desk_state as states
from equi_console.desk_state import DeskState
from equi_console.seat import OperatorSeat

_LOG = logging.getLogger(__name__)
_KEPT_ANSWERS = 30
_MOST_EPISODES = 500


class Action(str, Enum):
    """What an operator can press."""

    ACTIVATE = "activate"
    RUN = "run"
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    GO_HOME = "go home"
    RESET_FAULT = "reset fault"
    LABEL = "label"


URGENT = frozenset({Action.PAUSE, Action.STOP})
"""Anybody may press these, also without the seat: they only ever make the arm stand still."""
LABELS = ("success", "failure", "void")


@dataclass(frozen=True)
class Answer:
    """What became of a press."""

    number: int
    time: str
    who: str
    action: str
    text: str
    ok: bool | None
    """None while it is being carried out."""


Carry = Callable[[Action, Mapping[str, Any], Callable[[bool, str], None]], None]
"""Carries an action out and calls back with whether it went well, and what to say."""


class Desk:
    """State, seat and answers of one cell. Knows no ROS and no web."""

    def __init__(self, state: DeskState, carry_out: Carry) -> None:
        self.state = state
        self.seat = OperatorSeat()
        self._carry_out = carry_out
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._answers: deque[Answer] = deque(maxlen=_KEPT_ANSWERS)
        self.awaiting_label = ""
        """Episode that waits for the operator's label; empty: none."""
        self.running = ""
        """What the evaluation does, in words; empty: nothing."""

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The newest first."""
        with self._lock:
            return tuple(reversed(self._answers))

    def press(self, browser: str, action: Action, **arguments: Any) -> Answer:
        """Answer a press at once; what takes time is reported in the same answer later."""
        sitting = self.seat.sitting
        who = sitting.name if sitting is not None and sitting.browser == browser else "a visitor"
        why = self._refusal(browser, action, arguments)
        if why:
            return self._note(who, action.value, f"refused: {why}", ok=False)
        answer = self._note(who, action.value, "asked ...", ok=None)
        _LOG.info("%s pressed %s %s", who, action.value, arguments or "")
        arguments = {**arguments, "who": who}

        def done(ok: bool, text: str) -> None:
            self._replace(replace(answer, ok=ok, text=text))

        try:
            self._carry_out(action, arguments, done)
        except Exception as error:  # a press must never end the console
            _LOG.exception("%s", action.value)
            done(False, f"failed: {error}")
        return answer

    def say(self, who: str, what: str, text: str, ok: bool = True) -> None:
        """Add a line that no button caused: a seat taken, an episode ended."""
        self._note(who, what, text, ok=ok)

    def refusal(self, browser: str, action: Action, **arguments: Any) -> str:
        """Why a press would be refused now; empty if it would not. For showing it beforehand."""
        return self._refusal(browser, action, arguments)

    def _refusal(self, browser: str, action: Action, arguments: Mapping[str, Any]) -> str:
        if not self.seat.has(browser) and action not in URGENT:
            sitting = self.seat.sitting
            return (
                "take the desk first"
                if sitting is None
                else f"{sitting.name} has the desk; take over, or ask him"
            )
        return _refusal_by_state(self.state, action, arguments, self)

    def _note(self, who: str, action: str, text: str, ok: bool | None) -> Answer:
        answer = Answer(next(self._numbers), time.strftime("%H:%M:%S"), who, action, text, ok)
        with self._lock:
            self._answers.append(answer)
        return answer

    def _replace(self, answer: Answer) -> None:
        with self._lock:
            for index, old in enumerate(self._answers):
                if old.number == answer.number:
                    self._answers[index] = answer


_NEEDS = {
    Action.ACTIVATE: ("IDLE", "the driver is active already"),
    Action.RESUME: ("PAUSED", "nothing is paused"),
    Action.PAUSE: ("HOLD ACTIVE", "the driver does not drive"),
    Action.GO_HOME: ("HOLD", "the arm must be held and at rest; activate, or stop first"),
    Action.RUN: ("HOLD", "the driver must hold the arm: activate or resume it first"),
}
"""States of the driver in which an action is possible, and what to say otherwise."""


def _refusal_by_state(
    state: DeskState, action: Action, arguments: Mapping[str, Any], desk: Desk
) -> str:
    word = state.driver_word
    if action is Action.STOP:
        return ""
    if action is Action.LABEL:
        return _label_refusal(desk, arguments.get("label"))
    if word == "SILENT":
        return "the driver is not heard; is the launch running?"
    if action is Action.RESET_FAULT:
        count = arguments.get("fault_count")
        return _reset_refusal(state, str(arguments.get("acknowledged", "")), count)
    if word == "FAULT":
        return "a fault is latched; reset it first"
    # Before the driver's state: an episode that runs is why the arm is not held.
    if action in (Action.RUN, Action.GO_HOME) and desk.running:
        return f"{desk.running} is running; stop it first"
    wanted, why = _NEEDS[action]
    if word not in wanted.split():
        return f"{why} (it is {word})"
    return _run_refusal(state, desk, arguments) if action is Action.RUN else ""


def _run_refusal(state: DeskState, desk: Desk, arguments: Mapping[str, Any]) -> str:
    if desk.awaiting_label:
        return f"{desk.awaiting_label} waits for its label"
    count = arguments.get("episodes", 1)
    if not isinstance(count, int) or not 1 <= count <= _MOST_EPISODES:
        return f"episodes must be 1 to {_MOST_EPISODES}, not {count!r}"
    if count > 1 and not state.simulated:
        return "on a robot episodes are run one by one: the scene is arranged before each"
    perception = state.perception
    if perception is not None and not perception.ready:
        return "perception is not ready: " + ("; ".join(perception.reasons) or "no reason given")
    placement = state.placement
    if not state.simulated and placement is not None and not placement.ready:
        return f"the scene is not arranged: {placement}"
    return ""


def _label_refusal(desk: Desk, label: object) -> str:
    if label not in LABELS:
        return f"a label is {', '.join(LABELS)}"
    if desk.state.simulated:
        return "the referee of the simulated cell gives the labels"
    return "" if desk.awaiting_label or desk.running else "no episode waits for a label"


def _reset_refusal(state: DeskState, acknowledged: str, fault_count: object) -> str:
    safety = state.safety
    if safety is None or safety.driver_state != states.FAULT:
        return "no fault is latched"
    if acknowledged.strip().upper() != safety.fault_name:
        return f"type {safety.fault_name} to show that you have seen what is latched"
    if fault_count != safety.fault_count:
        return "another fault has been latched since; look at the robot again"
    return ""
