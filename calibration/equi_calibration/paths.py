# SPDX-License-Identifier: MIT
"""Where the commands find cell files and put results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from equi_calibration.check.result import result_path
from equi_calibration.collect.dataset import SYNTHETIC_SERIAL, Dataset
from equi_calibration.errors import CellFileError
from equi_core.locations.find import NotFoundError, find_calibration, find_cell_file
from equi_core.locations.folders import own_folder

CellOption = Annotated[str, tyro.conf.arg(help="name of a cell, or a path to a cell file (.yaml)")]
DatasetArgument = Annotated[Path, tyro.conf.Positional]


def cell_path(cell: str) -> Path:
    """The file of a cell that is given by name or path."""
    try:
        return find_cell_file(cell)
    except NotFoundError as error:
        raise CellFileError(str(error)) from error


def stored_calibration(results: Path | None, cell: str) -> Path:
    """The calibration file of a cell, in a folder of results or where perception looks for it."""
    if results is None:
        return result_path(find_calibration(cell).parent, cell)
    return result_path(results, cell)


def results_of(data: Dataset, folder: Path) -> Path:
    """Where results of a dataset go: a rehearsal never replaces the calibration of a cell."""
    if data.robot_serial == SYNTHETIC_SERIAL:
        return folder / "results"
    return own_folder("calibration")
