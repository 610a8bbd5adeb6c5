# SPDX-License-Identifier: MIT
"""Trains one Dreamer run: starts sheeprl, follows its episodes, writes our progress rows.

sheeprl lives in a virtual environment of its own, beside ours (`make baselines`): it brings another
build of OpenCV. A run that was stopped starts from the beginning.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import equi_core
import equi_rl
from equi_rl.carflag.dreamer.run import WORLDS_PER_RUN, DreamerRun
from equi_rl.carflag.run import RunConfigError
from equi_rl.carflag.trainer import Progress
from equi_rl.training.run_folder import RunFolder

ENVIRONMENT_NAME = ".venv-baselines"
_EPISODES, _OUTPUT, _LOG = "episodes", "sheeprl", "sheeprl.log"
_POLL_S = 1.0
_COUNT_PARAMETERS = """
import sys, torch
state = torch.load(sys.argv[1], map_location="cpu", weights_only=False)
parts = ("world_model", "actor", "critic")
print(sum(tensor.numel() for part in parts for tensor in state[part].values()))
"""


class DreamerError(RunConfigError):
    """sheeprl is not installed, or it stopped with an error."""


def baselines_python(prefix: Path | None = None) -> Path:
    """Interpreter of the baselines' environment, which lies beside the one that runs this.

    Raises DreamerError if it was never made.
    """
    python = (prefix or Path(sys.prefix)).parent / ENVIRONMENT_NAME / "bin" / "python"
    if not python.exists():
        raise DreamerError(
            f"{python} does not exist: Dreamer is trained by sheeprl, which has an environment of"
            " its own; run `make baselines` once (1.3 GB), then this command again"
        )
    return python


def points(
    logs: Sequence[Sequence[tuple[int, bool]]], every: int, last: int
) -> list[tuple[int, float, int]]:
    """Success of training episodes over environment steps of all worlds together.

    Args:
        logs: of each world, its steps at the end of every episode, and whether it succeeded.
        every: environment steps of one point.
        last: environment steps that all worlds have surely taken.

    Returns:
        (environment steps, success rate, episodes) of every whole point that saw an episode.
    """
    ended = [(steps * len(logs), won) for log in logs for steps, won in log]
    found = []
    for end in range(every, last + 1, every):
        inside = [won for steps, won in ended if end - every < steps <= end]
        if inside:
            found.append((end, sum(inside) / len(inside), len(inside)))
    return found


class DreamerTrainer:
    """One run; ``train`` starts it in a fresh folder, or with ``resume`` again in an old one."""

    def __init__(self, run: DreamerRun, folder: Path) -> None:
        self.run = run
        self.folder = RunFolder(folder)
        self._python = baselines_python()

    def train(
        self, *, resume: bool = False, report: Callable[[Progress], None] | None = None
    ) -> dict[str, Any]:
        """Run to the end; returns the summary that is also written to the folder."""
        with self.folder.claim(self.run.to_json(), resume=resume):
            if self.folder.is_finished:
                return self.folder.read_summary()
            self.folder.drop_progress()
            for name in (_EPISODES, _OUTPUT):
                shutil.rmtree(self.folder.path / name, ignore_errors=True)
                (self.folder.path / name).mkdir()
            started_s, cpu_before_s = time.monotonic(), _children_cpu_s()
            self._follow(self._start(), started_s, report)
            summary = {
                "steps": self.run.steps,
                "seconds": round(time.monotonic() - started_s, 1),
                "cpu_seconds": round(_children_cpu_s() - cpu_before_s, 1),
                "parameters": self._count_parameters(),
                "success": {str(self.run.seed): self._success()},
            }
            self.folder.finish(summary)
        return summary

    def _start(self) -> subprocess.Popen[bytes]:
        path = self.folder.path.absolute()
        command = [
            str(self._python.with_name("sheeprl")),
            *self.run.overrides(path / _EPISODES, path / _OUTPUT),
        ]
        sources = {str(Path(str(module.__file__)).parents[1]) for module in (equi_rl, equi_core)}
        # Nothing of our own environment: it has other versions of what sheeprl uses.
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
        }
        with (path / _LOG).open("wb") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**inherited, "PYTHONPATH": ":".join(sorted(sources)), "OMP_NUM_THREADS": "1"},
            )

    def _follow(
        self,
        process: subprocess.Popen[bytes],
        started_s: float,
        report: Callable[[Progress], None] | None,
    ) -> None:
        try:
            while process.poll() is None:
                self._write_points(started_s, report)
                try:
                    process.wait(_POLL_S)
                except subprocess.TimeoutExpired:
                    continue
        finally:
            process.kill()  # nothing if it has ended; a stopped run leaves no orphan
            process.wait()
        if process.returncode:
            path = self.folder.path / _LOG
            lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
            told = [line for line in lines if "Error" in line]
            raise DreamerError(
                f"sheeprl stopped with status {process.returncode}:"
                f" {told[-1].strip() if told else 'no reason given'}; all it said is in {path}"
            )
        self._write_points(started_s, report, ended=True)

    def _write_points(
        self, started_s: float, report: Callable[[Progress], None] | None, ended: bool = False
    ) -> None:
        logs = [self._read_episodes(rank) for rank in range(WORLDS_PER_RUN)]
        taken = WORLDS_PER_RUN * min((log[-1][0] if log else 0) for log in logs)
        known = len(self.folder.read_progress())
        seconds = round(time.monotonic() - started_s, 1)
        found = points(logs, self.run.report_every, self.run.steps if ended else taken)
        rows = [
            {
                "seed": self.run.seed,
                "steps": steps,
                "success": round(success, 4),
                "episodes": episodes,
                "seconds": seconds,
            }
            for steps, success, episodes in found[known:]
        ]
        if rows:
            self.folder.append_progress(rows)
        if report is not None:
            success = found[-1][1] if found else float("nan")
            report(Progress(taken, self.run.steps, success, taken / max(seconds, 0.1)))

    def _read_episodes(self, rank: int) -> list[tuple[int, bool]]:
        path = self.folder.path / _EPISODES / f"{rank}.csv"
        if not path.exists():
            return []
        whole, _, _ = path.read_text(encoding="utf-8").rpartition("\n")
        pairs = (line.split(",") for line in whole.split("\n") if line)
        return [(int(steps), won == "1") for steps, won in pairs]

    def _success(self) -> float:
        rows = self.folder.read_progress()
        return float(rows[-1]["success"]) if rows else float("nan")

    def _count_parameters(self) -> int:
        checkpoint = next((self.folder.path / _OUTPUT).rglob("*.ckpt"))
        counted = subprocess.run(
            [str(self._python), "-c", _COUNT_PARAMETERS, str(checkpoint)],
            capture_output=True,
            check=True,
            text=True,
        )
        return int(counted.stdout)


def _children_cpu_s() -> float:
    times = os.times()
    return times.children_user + times.children_system
