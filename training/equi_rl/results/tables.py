# SPDX-License-Identifier: MIT
"""What every report reads and writes: run folders below a folder, and tables as CSV files."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from equi_rl.training.renames import current_row
from equi_rl.training.run_folder import RunFolder

T = TypeVar("T")


class CurvesError(ValueError):
    """Curves that cannot be read, or a folder without runs."""


def runs_below(folder: Path, setting: str) -> Iterator[tuple[RunFolder, dict[str, Any]]]:
    """Run folders at any depth whose configuration has a setting, and that configuration."""
    for path in sorted(folder.rglob("config.json")):
        run_folder = RunFolder(path.parent)
        config = run_folder.read_config()["config"]
        if setting in config:  # others belong to another family of experiments
            yield run_folder, config


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV file."""
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def read_table(path: Path, what: str, parse: Callable[[Iterator[dict[str, str]]], T]) -> T:
    """What `parse` makes of the rows of a CSV file, under their present names.

    Raises CurvesError, which says that the file is not a table of `what`.
    """
    try:
        with open(path, newline="") as file:
            return parse(map(current_row, csv.DictReader(file)))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise CurvesError(
            f"{path} is not a table of {what} ({error!r}); write it again with equi-report --runs"
        ) from error
