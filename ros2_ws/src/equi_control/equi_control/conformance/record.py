# SPDX-License-Identifier: MIT
"""The conformance file as it grows: written anew after every step, so that nothing is lost.

Plain JSON. The emulator owns the format and reads it strictly (`ur_emulator.conformance_file`);
this package must not import it, so a test lets that reader read what is written here. Beside it
lies a log with what every step saw, one JSON object per line.
"""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FORMAT_VERSION = 1


class RecordError(RuntimeError):
    """The file cannot be written; says where."""


class ConformanceRecord:
    """What was measured so far, on disk."""

    def __init__(self, path: Path, robot: Mapping[str, str]) -> None:
        """Begin a new file.

        Raises:
            RecordError: it exists already, or cannot be written.
        """
        self.path = path
        self._log = path.with_suffix(".log.jsonl")
        if path.exists() or self._log.exists():
            raise RecordError(f"{path} exists already; nothing is overwritten: choose another name")
        now = datetime.datetime.now(datetime.timezone.utc).astimezone()
        self._content: dict[str, Any] = {
            "format_version": FORMAT_VERSION,
            "robot": dict(robot),
            "measured_at": now.isoformat(timespec="seconds"),
        }
        self._save()

    def add(self, name: str, value: Any) -> None:
        """Store the result of a step; lists grow."""
        if isinstance(value, list):
            self._content.setdefault(name, []).extend(value)
        else:
            self._content[name] = value
        self._save()
        self.note(name, result=value)

    def note(self, step: str, **what: Any) -> None:
        """Add a line to the log."""
        stamp = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
        line = json.dumps({"time": stamp, "step": step, **what}, default=str)
        try:
            with self._log.open("a", encoding="utf-8") as log:
                log.write(line + "\n")
                log.flush()
                os.fsync(log.fileno())
        except OSError as error:
            raise RecordError(f"{self._log}: {error}") from error

    @property
    def content(self) -> Mapping[str, Any]:
        """What the file holds."""
        return self._content

    def _save(self) -> None:
        """Replace the file as a whole: a half-written one never takes its name."""
        part = self.path.with_suffix(".part")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with part.open("w", encoding="utf-8") as file:
                json.dump(self._content, file, indent=2, allow_nan=False)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            part.replace(self.path)
        except (OSError, ValueError) as error:
            raise RecordError(f"{self.path} cannot be written: {error}") from error


def default_path(folder: Path, robot: Mapping[str, str]) -> Path:
    """A file name that says which robot and when."""
    stamp = datetime.datetime.now().strftime("%Y%m%d_%H%M%S")
    words = re.sub(r"[^A-Za-z0-9]+", "-", f"{robot['name']}-{robot['serial_number']}").strip("-")
    return folder / f"{words}-{stamp}.json"
