# SPDX-License-Identifier: MIT
"""Finds cells, models and calibrations by name or path."""

from __future__ import annotations

import os
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from equi_core.locations import folders


class NotFoundError(ValueError):
    """Nothing has that name or path; says where it was looked for and what there is."""


def find_cell_file(cell: str) -> Path:
    """The file of a cell that is given by name or by path (ending in .yaml).

    Raises:
        NotFoundError: there is no such file.
    """
    if Path(cell).suffix in (".yaml", ".yml"):
        path = Path(cell).expanduser()
        if not path.is_file():
            raise NotFoundError(f"there is no cell file {path.absolute()}")
        return path
    places = folders.cell_folders()
    for folder in places:
        if (folder / f"{cell}.yaml").is_file():
            return folder / f"{cell}.yaml"
    known = {path.stem for folder in places for path in folder.glob("*.yaml")}
    raise NotFoundError(
        f"no cell is called '{cell}'{_near(cell, known)}; there are: {_listed(known)}. Give a path "
        f"ending in .yaml, or put a file into one of: {_places(places, folders.CELLS_VARIABLE)}"
    )


def find_model(model: str) -> Path:
    """The folder of a model that is given by name or, with a slash in it, by path.

    Raises:
        NotFoundError: there is no such folder with a contract.json.
    """
    if os.sep in model or model in (".", ".."):
        path = Path(model).expanduser()
        if not (path / "contract.json").is_file():
            raise NotFoundError(f"no policy at {path.absolute()} (contract.json is missing)")
        return path.absolute()
    places = folders.model_folders()
    for folder in places:
        if (folder / model / "contract.json").is_file():
            return folder / model
    known = {path.parent.name for folder in places for path in folder.glob("*/contract.json")}
    raise NotFoundError(
        f"no model is called '{model}'{_near(model, known)}; there are: {_listed(known)}. Give a "
        "path with a slash in it, or put its folder into one of: "
        f"{_places(places, folders.MODELS_VARIABLE)}"
    )


def find_calibration(cell: str) -> Path:
    """The folder with the calibration of a cell; the place to write it to if there is none yet."""
    places = folders.calibration_folders()
    found = [folder / cell for folder in places if (folder / cell / "calibration.yaml").is_file()]
    return found[0] if found else places[0] / cell


def _near(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), n=1)
    return f", did you mean '{near[0]}'" if near else ""


def _listed(known: Iterable[str]) -> str:
    return ", ".join(sorted(known)) or "none"


def _places(places: Iterable[Path], variable: str) -> str:
    return f"{', '.join(map(str, places))}, or a folder in {variable}"
