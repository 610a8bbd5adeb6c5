# SPDX-License-Identifier: MIT
"""The operator of a cell without a referee: arranges scenes, declares success, gives the labels.

Only what is typed after a question has been shown can answer it: a key that was pressed too often
before, or leant on, is discarded. The end of the input (a closed terminal, a pipe) is said, not
waited on.
"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
from collections.abc import Iterable, Mapping

from rich.console import Console

DONE = "d"
"""Typed with ENTER during an episode: the task is done. ENTER alone means nothing."""


class OperatorGone(RuntimeError):
    """Nobody can answer any more: the input has ended."""


class Operator:
    """The person at the keyboard; reads lines in a thread of its own."""

    def __init__(self, console: Console, lines: Iterable[str] | None = None) -> None:
        """Begin to listen.

        Args:
            console: where questions are shown.
            lines: what is typed; the standard input by default.
        """
        self._console = console
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._ended = False
        self._is_terminal = lines is None and sys.stdin.isatty()
        typed = sys.stdin if lines is None else lines
        threading.Thread(target=self._read, args=(typed,), daemon=True).start()

    def show(self, text: str) -> None:
        """Print something as it is."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def discard(self) -> None:
        """Forget whatever was typed so far; call it before a question or an episode."""
        if self._is_terminal:
            _flush_terminal()
        with contextlib.suppress(queue.Empty):
            while True:
                self._take(self._lines.get_nowait())

    def declared_success(self) -> bool:
        """Whether `d` and ENTER were typed since the last call; other lines get a hint."""
        declared = False
        with contextlib.suppress(queue.Empty):
            while True:
                line = self._take(self._lines.get_nowait())
                if line == DONE:
                    declared = True
                elif line is not None:
                    self.show(
                        f"'{line}' is ignored now; type {DONE} and ENTER when the task is done"
                    )
        return declared

    def ask(self, question: str, answers: Mapping[str, str]) -> str:
        """One of the answers, by its letter, typed after the question was shown.

        Raises:
            OperatorGone: the input has ended.
        """
        letters = ", ".join(f"{letter} = {meaning}" for letter, meaning in answers.items())
        while True:
            self.discard()
            if self._ended:
                raise OperatorGone(
                    f"the input has ended, so nobody can answer '{question}'; start again in a "
                    "terminal with the same --output to resume"
                )
            self._console.print(f"[bold]{question}[/] ({letters})")
            letter = (self._take(self._lines.get()) or "")[:1]
            if letter in answers:
                return letter

    def _take(self, line: str | None) -> str | None:
        self._ended = self._ended or line is None
        return line

    def _read(self, lines: Iterable[str]) -> None:
        try:
            for line in lines:
                self._lines.put(line.strip().lower())
        except (OSError, ValueError):  # the terminal was closed under the reader
            pass
        finally:
            self._lines.put(None)


def _flush_terminal() -> None:
    """Drop what the terminal has buffered but not delivered."""
    import termios

    with contextlib.suppress(termios.error, OSError):
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
