# SPDX-License-Identifier: MIT
"""The person at the robot: each step is confirmed by typing a number that was not known before.

A key that was pressed too early cannot confirm anything: what is waiting in the terminal is thrown
away, and the number is drawn anew for each question.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import secrets
import socket
import sys
from typing import Protocol, TextIO

from equi_control.conformance.plan import Step

_TRIES = 3
_EMULATOR_PORT = 29100
_CLEARANCE_M = 0.4
"""Free space that the sequence wants around arm and gripper [m]."""


class Aborted(RuntimeError):
    """The sequence was ended before its time; says why."""


class Operator(Protocol):
    """Who says that a step may begin."""

    def state_clearance(self, travel_m: float) -> None:
        """Have it stated that nothing is in the way."""

    def confirm(self, step: Step, bounds: str) -> bool:
        """Whether the step may begin; False leaves it out."""


class PersonAtTheRobot:
    """Asks on a terminal."""

    def __init__(self, source: TextIO | None = None, sink: TextIO | None = None) -> None:
        self._source = source or sys.stdin
        self._sink = sink or sys.stdout

    def state_clearance(self, travel_m: float) -> None:
        """Ask for the free space around the arm, in millimetres, measured.

        Raises:
            Aborted: there is less than the sequence can use.
        """
        needed_mm = 1e3 * max(travel_m, _CLEARANCE_M)
        answer = self._ask(
            f"The arm will turn about its base by up to {1e3 * travel_m:.0f} mm at the gripper, to "
            "either side.\nOne hand on the emergency stop. How many mm are free around arm and "
            f"gripper, measured (at least {needed_mm:.0f})? "
        )
        try:
            free_mm = float(answer)
        except ValueError as error:
            raise Aborted(
                f"'{answer}' is not a number of millimetres; measure, then start again"
            ) from error
        if not free_mm >= needed_mm:
            raise Aborted(
                f"{free_mm:.0f} mm are free, {needed_mm:.0f} are needed; move the arm or what is "
                "in its way, then start again"
            )

    def confirm(self, step: Step, bounds: str) -> bool:
        """Ask for the step's number; `skip` leaves it out, anything else three times ends it.

        Raises:
            Aborted: not confirmed.
        """
        self._write(f"\n{step.title}: {step.does}.\n  {bounds}.\n")
        for _ in range(_TRIES):
            code = str(secrets.randbelow(9000) + 1000)
            answer = self._ask(f"  Type {code} to begin, skip to leave it out, quit to end: ")
            if answer == code:
                return True
            if answer == "skip":
                return False
            if answer == "quit":
                raise Aborted("ended by the operator")
            self._write(f"  '{answer}' is not {code}.\n")
        raise Aborted(f"'{step.title}' was not confirmed")

    def _ask(self, question: str) -> str:
        self._throw_away_waiting_keys()
        self._write(question)
        answer = self._source.readline()
        if not answer:
            raise Aborted("nobody is at the keyboard (end of input)")
        return answer.strip()

    def _throw_away_waiting_keys(self) -> None:
        if self._source.isatty():
            import termios

            with contextlib.suppress(termios.error):
                termios.tcflush(self._source.fileno(), termios.TCIFLUSH)

    def _write(self, text: str) -> None:
        self._sink.write(text)
        self._sink.flush()


class Rehearsal:
    """Confirms by itself, for an emulated robot only."""

    def __init__(self, host: str, sink: TextIO | None = None) -> None:
        """Make sure that it is an emulator.

        Raises:
            Aborted: it cannot be told apart from a robot.
        """
        if not is_emulator(host):
            raise Aborted(
                f"--rehearse confirms every motion automatically, and {host} is not known to be an "
                f"emulator (no control API on port {_EMULATOR_PORT} of a loopback address); leave "
                "it out"
            )
        self._sink = sink or sys.stdout

    def state_clearance(self, travel_m: float) -> None:
        """An emulated arm has all the space there is."""

    def confirm(self, step: Step, bounds: str) -> bool:
        """Say what happens, and let it."""
        self._sink.write(f"\n{step.title}: {step.does}.\n  {bounds}.\n  (rehearsal)\n")
        self._sink.flush()
        return True


def is_emulator(host: str) -> bool:
    """Whether a loopback address serves the emulator's control API, which no robot has."""
    try:
        if not ipaddress.ip_address(socket.gethostbyname(host)).is_loopback:
            return False
        with socket.create_connection((host, _EMULATOR_PORT), 1.0) as connection:
            connection.sendall(b'{"op": "status"}\n')
            with connection.makefile("r", encoding="utf-8") as answers:
                answer = json.loads(answers.readline(100_000))
        return isinstance(answer, dict) and answer.get("ok") is True
    except (OSError, ValueError):
        return False
