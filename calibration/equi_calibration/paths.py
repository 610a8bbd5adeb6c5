# SPDX-License-Identifier: MIT
"""Where the commands find cell files and put results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from equi_calibration.check.result import result_path
from equi_calibration.collect.dataset import SYNTHETIC_SERIAL, Dataset
from equi_calibration.errors import CellFileError
from equi_core.cell_file import CellFileError as CoreCellFileError
from equi_core.cell_file import find_project_root

CellOption = Annotated[
    str, tyro.conf.arg(help="name of a file in launch/cells, or a path to a cell file")
]
DatasetArgument = Annotated[Path, tyro.conf.Positional]


def cell_path(cell: str) -> Path:
    """The file of a cell that is given by name or path."""
    path = Path(cell)
    if path.suffix in (".yaml", ".yml"):
        return path
    return project() / "launch" / "cells" / f"{cell}.yaml"


def stored_calibration(results: Path | None, cell: str) -> Path:
    """The calibration file of a cell, in a folder of results or in the project's."""
    return result_path(results or project() / "calibration" / "results", cell)


def results_of(data: Dataset, folder: Path) -> Path:
    """Where results of a dataset go: a rehearsal never replaces the calibration of a cell."""
    if data.robot_serial == SYNTHETIC_SERIAL:
        return folder / "results"
    return project() / "calibration" / "results"


def project() -> Path:
    """The project's folder, from where the command runs or where the package lies."""
    for start in (Path.cwd(), Path(__file__)):
        try:
            return find_project_root(start)
        except CoreCellFileError:
            continue
    raise CellFileError(
        "the project folder was not found; give --cell and --results as paths, or run inside it"
    )
