# SPDX-License-Identifier: MIT
"""The operator of a cell without a referee: arranges scenes, declares success, gives the labels."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Iterable, Mapping

from rich.console import Console


class Operator:
    """The person at the keyboard; reads lines in a thread of its own."""

    def __init__(self, console: Console, lines: Iterable[str] | None = None) -> None:
        """Begin to listen.

        Args:
            console: where questions are shown.
            lines: what is typed; the standard input by default.
        """
        self._console = console
        self._lines: queue.Queue[str] = queue.Queue()
        typed = sys.stdin if lines is None else lines
        threading.Thread(target=self._read, args=(typed,), daemon=True).start()

    def _read(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._lines.put(line.strip().lower())

    def pressed(self) -> bool:
        """Whether ENTER was pressed since the last call."""
        try:
            self._lines.get_nowait()
            return True
        except queue.Empty:
            return False

    def ask(self, question: str, answers: Mapping[str, str]) -> str:
        """One of the answers, by its first letter."""
        letters = ", ".join(f"{letter} = {meaning}" for letter, meaning in answers.items())
        while True:
            self._console.print(f"[bold]{question}[/] ({letters})")
            line = self._lines.get()
            if line[:1] in answers:
                return line[:1]
