# SPDX-License-Identifier: MIT
"""A job of a sweep: one run, its command line, and what it needs of a machine."""

from __future__ import annotations

import dataclasses
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equi_rl.training.run_folder import RunFolder

ATTEMPTS_FILE = "attempts.jsonl"
"""In a run folder: one line for every time that a sweep has started the run, and where."""
LOG_FILE = "log.txt"


@dataclass(frozen=True)
class Job:
    """One run of a sweep: its folder below the sweep's, and the arguments of ``equi-train``."""

    name: str
    arguments: tuple[str, ...]
    cores: int = 1
    memory_mib: int = 1024
    gpus: int = 0

    def command(self, folder: Path) -> list[str]:
        """The command line that brings this job to its end, however often it has been stopped."""
        return [
            *(sys.executable, "-m", "equi_rl.cli.train", *self.arguments),
            *("--folder", str(folder / self.name), "--resume"),
        ]

    def status(self, folder: Path) -> str:
        """``finished``, ``started`` or ``waiting``."""
        run = RunFolder(folder / self.name)
        if run.is_finished:
            return "finished"
        return "started" if run.path.exists() else "waiting"

    def attempts(self, folder: Path) -> list[dict[str, Any]]:
        """Every time that it was started: machine, process id, time."""
        path = folder / self.name / ATTEMPTS_FILE
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text().splitlines()]

    def to_mapping(self) -> dict[str, Any]:
        """Plain values; ``from_mapping`` inverts."""
        return dataclasses.asdict(self)

    @staticmethod
    def from_mapping(values: dict[str, Any]) -> Job:
        """A job from the values of ``to_mapping``."""
        return Job(**{**values, "arguments": tuple(values["arguments"])})
