# SPDX-License-Identifier: MIT
"""Results of episodes on disk: one JSON line each, appended as they end; a run can be resumed."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from equi_core.files.plain_data import PlainDataError, parse_json, read_json
from equi_core.strict_fields import FieldError, read_fields

RESULTS_FILE = "results.jsonl"
SETTINGS_FILE = "settings.json"
_LATER_SETTINGS = ("weights", "calibration")
"""What folders of before do not have."""
_REMARKS = ("operator", "begun_utc")
"""Told in the report; another person may resume on another day."""


class ResultsError(ValueError):
    """A results folder that cannot be read or continued; says why."""


@dataclass(frozen=True)
class EpisodeResult:
    """One episode."""

    episode_id: str
    seed: int
    outcome: str
    """Name of the RunEpisode outcome, e.g. SUCCEEDED."""
    reason: str
    success: bool
    label_source: str
    """Who says so: ground_truth or operator."""
    first_try: str
    """movable, immovable or none."""
    steps: int
    duration_s: float
    record: str = ""
    """File name of the record in the results folder; empty if none was made."""
    invalid: bool = False
    """The episode says nothing about the policy: stopped by hand, or never begun."""
    latencies_ms: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Stage -> p50, p99, as the nodes reported them at the episode's end."""


class ResultStore:
    """A folder with settings and results."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Create the folder, or continue it if its settings are the same."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / SETTINGS_FILE
        wanted = json.loads(json.dumps(dict(settings)))
        if path.exists():
            found = load_settings(folder)
            _require_same(wanted, found, folder)
            wanted |= {name: found[name] for name in _REMARKS if name in found}
        else:
            partial = path.with_name(path.name + ".partial")
            partial.write_text(json.dumps(wanted, indent=2) + "\n", encoding="utf-8")
            os.replace(partial, path)
        self.settings: dict[str, Any] = wanted
        self.results = load_results(folder)

    def add(self, result: EpisodeResult) -> None:
        """Append a result; it is on disk when this returns.

        Raises:
            ResultsError: it could not be written; the file is as it was before.
        """
        path = self.folder / RESULTS_FILE
        before = path.stat().st_size if path.exists() else 0
        try:
            with path.open("ab", buffering=0) as file:
                line = (json.dumps(dataclasses.asdict(result)) + "\n").encode()
                if file.write(line) != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file.fileno())
        except OSError as error:
            if path.exists():
                os.truncate(path, before)
            raise ResultsError(
                f"{path} cannot be written: {error.strerror}; the result of {result.episode_id} "
                f"({result.outcome}) is lost. Make room and start again with the same --output"
            ) from error
        self.results.append(result)


def load_results(folder: Path) -> list[EpisodeResult]:
    """Every complete result in a folder; a last line cut off by a crash is dropped."""
    path = folder / RESULTS_FILE
    if not path.exists():
        return []
    try:
        # Bytes: a torn last line may end in the middle of a character.
        data = path.read_bytes()
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror}") from error
    *lines, torn = data.split(b"\n")
    results = []
    for number, line in enumerate(lines, start=1):
        try:
            results.append(_read_result(line))
        except (PlainDataError, FieldError, UnicodeDecodeError) as error:
            raise ResultsError(f"{path}, line {number}: {error}") from error
    if torn:
        try:
            results.append(_read_result(torn))
        except (PlainDataError, FieldError, UnicodeDecodeError):
            # The process died while writing: take the torn line away and go on from there.
            with path.open("r+b") as file:
                file.truncate(len(data) - len(torn))
    return results


def _read_result(line: bytes) -> EpisodeResult:
    data = parse_json(line.decode("utf-8"))
    if isinstance(data, dict):
        # Older results lack what was added since.
        data = {"record": "", "invalid": False, "latencies_ms": {}, **data}
    result = read_fields(EpisodeResult, data)
    for stage, quantiles in result.latencies_ms.items():
        if not isinstance(quantiles, dict) or not all(
            isinstance(value, (int, float)) for value in quantiles.values()
        ):
            raise FieldError(f"latencies_ms.{stage}", "must hold named numbers")
    return result


def load_settings(folder: Path) -> dict[str, Any]:
    """The settings of an evaluation folder."""
    path = folder / SETTINGS_FILE
    if not path.exists():
        raise ResultsError(f"{folder} holds no evaluation (no {SETTINGS_FILE})")
    try:
        settings = read_json(path)
    except PlainDataError as error:
        raise ResultsError(f"{path} {error}") from error
    if not isinstance(settings, dict):
        raise ResultsError(f"{path} holds {type(settings).__name__}, not named settings")
    return settings


def _require_same(wanted: Mapping[str, Any], found: Mapping[str, Any], folder: Path) -> None:
    for name in sorted(wanted.keys() | found.keys()):
        if name in _REMARKS or (name in _LATER_SETTINGS and name not in found):
            continue
        if wanted.get(name) != found.get(name):
            raise ResultsError(
                f"{folder} holds an evaluation with {name} = {found.get(name)!r}, not "
                f"{wanted.get(name)!r}; choose another --output, or the same settings to resume"
            )
