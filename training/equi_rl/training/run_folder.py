# SPDX-License-Identifier: MIT
"""A run folder documents itself, belongs to one configuration, and survives being killed.

config.json              every setting of the run, the version of the code, the environment
progress.csv             one row per evaluation (and learner)
tensorboard/             scalars over time
checkpoint.safetensors   all that is needed to resume exactly; written whole or not at all
status.json              how far the run is, rewritten every few seconds for whoever watches it
summary.json             written last: the run is finished
"""

from __future__ import annotations

import csv
import io
import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from equi_core.files.plain_data import PlainDataError, parse_json, read_json
from equi_rl.data.atomic_file import NotWrittenError, write_atomically
from equi_rl.data.folder_lease import FolderLease, RunFolderError
from equi_rl.training.code_version import code_version
from equi_rl.training.renames import current_settings, flatten

__all__ = ("RunFolder", "RunFolderError", "describe_environment")

_STATE_KEY = "state"


class RunFolder:
    """Files of one run; ``config`` must be plain JSON values."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tensorboard = path / "tensorboard"
        self._config = path / "config.json"
        self._progress = path / "progress.csv"
        self._checkpoint = path / "checkpoint.safetensors"
        self._summary = path / "summary.json"
        self._status = path / "status.json"
        self._lease: FolderLease | None = None

    @property
    def is_finished(self) -> bool:
        """Whether the run in this folder came to its end."""
        return self._summary.exists()

    @contextmanager
    def claim(
        self,
        config: Mapping[str, Any],
        *,
        resume: bool,
        data_format: int = 1,
        budgets: Sequence[str] = (),
    ) -> Iterator[None]:
        """Create the folder, or enter the existing one of the very same configuration.

        Args:
            config: settings of the run.
            resume: whether an existing run may be entered.
            data_format: of the data that the run stores; a run of another one is not resumed.
            budgets: names of numbers in ``config`` that may have grown since: the run is extended,
                and config.json tells where it ended before.

        Raises:
            RunFolderError: the folder belongs to another configuration (the field is named) or
                data format, holds a run although ``resume`` is not set, or is in use by another
                process or machine.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        lease = FolderLease(self.path)
        lease.acquire()
        self._lease = lease
        try:
            if self._config.exists():
                self._require_format(data_format)
                grown = self._require_same(config, budgets)
                if not resume:
                    raise RunFolderError(
                        f"{self.path} already holds this run; pass --resume to continue it,"
                        " or choose another folder"
                    )
                if grown:
                    self._extend(config, grown)
            else:
                record = {
                    "config": config,
                    "data_format": data_format,
                    "code_version": code_version(),
                    "environment": describe_environment(),
                }
                write_atomically(self._config, json.dumps(record, indent=2) + "\n")
            yield
        finally:
            self._lease = None
            lease.release()

    def require_held(self) -> None:
        """Raise RunFolderError if another machine has taken over what `claim` has given."""
        if self._lease is not None:
            self._lease.require_held()

    def save_checkpoint(self, arrays: Mapping[str, np.ndarray], state: Mapping[str, Any]) -> None:
        """Replace the checkpoint by arrays and a JSON-able state, atomically."""
        self.require_held()
        tensors = {name: np.asarray(array, order="C") for name, array in arrays.items()}
        write_atomically(self._checkpoint, save(tensors, {_STATE_KEY: json.dumps(state)}))

    def load_checkpoint(self) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """The last complete checkpoint, or None before the first."""
        if not self._checkpoint.exists():
            return None
        try:
            with safe_open(str(self._checkpoint), framework="numpy") as file:
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                state = parse_json(file.metadata()[_STATE_KEY])
        except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
            raise RunFolderError(
                f"{self._checkpoint} is not a checkpoint of this program ({error});"
                " delete the folder to start over"
            ) from error
        return arrays, state

    def append_progress(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows to progress.csv; the first call writes the header."""
        self.require_held()
        size = self._progress.stat().st_size if self._progress.exists() else None
        try:
            with open(self._progress, "a", newline="") as file:
                file.write(_as_csv(rows, header=size is None))
        except OSError as error:
            # No half row stays behind for whoever reads or resumes the run.
            if self._progress.exists():
                os.truncate(self._progress, size or 0)
            raise NotWrittenError(self._progress, error) from error

    def read_progress(self) -> list[dict[str, str]]:
        """All whole rows of progress.csv, as text; one that is just being written is left out."""
        if not self._progress.exists():
            return []
        with open(self._progress, newline="") as file:
            return [row for row in csv.DictReader(file) if all(row.values())]

    def cut_progress(self, column: str, last: int) -> None:
        """Drop what a killed process wrote after its checkpoint, half rows included."""
        kept = [row for row in self.read_progress() if int(row[column]) <= last]
        if kept:
            write_atomically(self._progress, _as_csv(kept, header=True))
        else:
            self.drop_progress()

    def drop_progress(self) -> None:
        """Forget every row."""
        self._progress.unlink(missing_ok=True)

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Mark the run as finished."""
        self.require_held()
        write_atomically(self._summary, json.dumps(summary, indent=2) + "\n")

    def write_status(self, status: Mapping[str, Any]) -> None:
        """Say how far the run is, for whoever watches it."""
        with suppress(NotWrittenError):  # a full disk is told by what matters
            write_atomically(self._status, json.dumps(status) + "\n")

    def read_status(self) -> dict[str, Any]:
        """What `write_status` wrote last; empty before the first time."""
        try:
            return self._read_json(self._status)
        except RunFolderError:
            return {}

    def read_config(self) -> dict[str, Any]:
        """config.json: ``config`` (under its present names), ``code_version``, ``environment``."""
        record = self._read_json(self._config)
        return {**record, "config": current_settings(record.get("config", {}))}

    def read_summary(self) -> dict[str, Any]:
        """summary.json of a finished run."""
        return self._read_json(self._summary)

    def _read_json(self, path: Path) -> dict[str, Any]:
        try:
            content = read_json(path)
        except PlainDataError as error:
            raise RunFolderError(f"{path} {error}; is this a run folder?") from error
        if not isinstance(content, dict):
            raise RunFolderError(f"{path} holds no named values; is this a run folder?")
        return content

    def _require_format(self, wanted: int) -> None:
        stored = self._read_json(self._config).get("data_format", 1)
        if stored != wanted:
            raise RunFolderError(
                f"{self.path} cannot be resumed: its data format is {stored}, this code continues"
                f" {wanted}; start the run again in another folder"
            )

    def _require_same(self, config: Mapping[str, Any], budgets: Sequence[str]) -> dict[str, Any]:
        """Raise if the stored settings are others; returns the stored budgets that have grown."""
        stored = flatten(self.read_config().get("config", {}))
        wanted = flatten(json.loads(json.dumps(config)))
        grown = {}
        for name in sorted(stored.keys() | wanted.keys()):
            before, now = stored.get(name), wanted.get(name)
            if before == now:
                continue
            # 0 stands for no limit, which a finished run cannot have had alone.
            if name in budgets and before and now and now > before:
                grown[name] = before
                continue
            hint = ", or a larger one" if name in budgets else ""
            raise RunFolderError(
                f"{self.path} belongs to another run: {name} = {before!r} there, {now!r} here;"
                f" choose another folder or the same settings{hint}"
            )
        return grown

    def _extend(self, config: Mapping[str, Any], ended: Mapping[str, Any]) -> None:
        record = self._read_json(self._config)
        earlier = [*record.get("extended_from", []), dict(ended)]
        write_atomically(
            self._config,
            json.dumps({**record, "config": config, "extended_from": earlier}, indent=2) + "\n",
        )
        self._summary.unlink(missing_ok=True)


def _as_csv(rows: Sequence[Mapping[str, Any]], *, header: bool) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def describe_environment() -> dict[str, str]:
    """Versions and machine that a result depends on."""
    packages = ("torch", "numpy", "gymnasium")
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        **{name: version(name) for name in packages},
    }
