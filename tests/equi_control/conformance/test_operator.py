# SPDX-License-Identifier: MIT
"""Nothing of the conformance sequence moves before a person has typed what only now is known."""

from __future__ import annotations

import io
import os
import pty
import re
import socket
import threading

import pytest

from equi_control.conformance import main as command
from equi_control.conformance.operator import Aborted, PersonAtTheRobot, Rehearsal, is_emulator
from equi_control.conformance.plan import sequence

STEP = sequence(with_gripper=True, with_protective_stop=True)[4]
CODE = re.compile(r"Type (\d{4}) to begin")


class Typist(io.StringIO):
    """A keyboard: answers are made from what the screen shows when they are asked for."""

    def __init__(self, screen: io.StringIO, *answers: str) -> None:
        super().__init__()
        self._screen, self._answers = screen, list(answers)

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        if not self._answers:
            return ""
        answer = self._answers.pop(0)
        codes = CODE.findall(self._screen.getvalue())
        return answer.replace("CODE", codes[-1] if codes else "") + "\n"


def person(*answers: str) -> tuple[PersonAtTheRobot, io.StringIO]:
    screen = io.StringIO()
    return PersonAtTheRobot(Typist(screen, *answers), screen), screen


def test_the_number_on_the_screen_confirms_a_step():
    operator, screen = person("CODE")
    assert operator.confirm(STEP, "at most 100 mm/s") is True
    assert "at most 100 mm/s" in screen.getvalue()
    assert STEP.does in screen.getvalue()


def test_skip_leaves_a_step_out_and_quit_ends_the_sequence():
    assert person("skip")[0].confirm(STEP, "") is False
    with pytest.raises(Aborted, match="by the operator"):
        person("quit")[0].confirm(STEP, "")


@pytest.mark.parametrize("answers", [("", "", ""), ("y", "yes", "ok"), ("1234x", "begin", "\t")])
def test_no_other_answer_confirms(answers):
    with pytest.raises(Aborted, match="was not confirmed"):
        person(*answers)[0].confirm(STEP, "")


def test_each_question_has_a_number_of_its_own():
    operator, screen = person("wrong", "wrong", "CODE")
    operator.confirm(STEP, "")
    assert len(set(CODE.findall(screen.getvalue()))) == 3  # one in 3000 runs draws one twice


def test_nobody_at_the_keyboard_ends_the_sequence():
    with pytest.raises(Aborted, match="end of input"):
        person()[0].confirm(STEP, "")


@pytest.mark.parametrize(("answer", "problem"), [("100", "are needed"), ("plenty", "not a number")])
def test_too_little_clearance_ends_it_before_anything_moves(answer, problem):
    with pytest.raises(Aborted, match=problem):
        person(answer)[0].state_clearance(0.2)


def test_a_key_that_was_pressed_before_the_question_is_thrown_away():
    """On a real terminal: RETURN and a guess wait in its queue when the question appears."""
    keyboard, terminal = pty.openpty()
    shown_from, shown_to = os.pipe()
    try:
        os.write(keyboard, b"\n1234\n")
        with os.fdopen(terminal, "r") as source, os.fdopen(shown_to, "w") as screen:
            answer: list[bool] = []
            asking = threading.Thread(
                target=lambda: answer.append(PersonAtTheRobot(source, screen).confirm(STEP, ""))
            )
            asking.start()
            text = ""
            while not CODE.search(text):
                text += os.read(shown_from, 4096).decode()
            code = CODE.search(text)
            assert code is not None
            os.write(keyboard, f"{code[1]}\n".encode())
            asking.join(10.0)
            assert answer == [True]
            screen.flush()
            assert "is not" not in text  # the keys that waited were never taken for an answer
    finally:
        os.close(keyboard)
        os.close(shown_from)


def test_only_an_emulator_may_be_rehearsed_with():
    with socket.create_server(("127.0.0.1", 0)):  # somebody listens, but no control API
        assert not is_emulator("127.0.0.1")
    assert not is_emulator("192.0.2.1")  # an address that is nobody's
    with pytest.raises(Aborted, match="not known to be an emulator"):
        Rehearsal("127.0.0.1")


def test_a_dry_run_lists_every_step_with_its_largest_motion_and_connects_to_nothing(capsys):
    assert command.main(["--dry-run", "--model", "ur5"]) == 0
    listed = capsys.readouterr().out
    for step in sequence(with_gripper=True, with_protective_stop=True):
        assert step.title in listed
        assert step.does in listed
    moving = [line for line in listed.splitlines() if "mm/s" in line]
    assert len(moving) == 6
    speeds = [float(re.search(r"most (\d+) mm/s", line)[1]) for line in moving]
    assert max(speeds) < 300  # of a stretched arm, with the longest gripper


def test_the_address_is_needed_for_anything_else(capsys):
    assert command.main([]) == 2
    assert "--robot-ip" in capsys.readouterr().err
