"""Specification of cell files: the shipped ones load, mistakes are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from equi_core.calibration import CellCalibration
from equi_core.cell_file import CellFile, CellFileError, find_project_root

ROOT = Path(__file__).resolve().parents[2]


def test_the_shipped_cells_load():
    for name, simulated in (("sim", True), ("lab", False)):
        cell = CellFile.load(ROOT / "launch" / "cells" / f"{name}.yaml")
        assert (cell.name, cell.simulated) == (name, simulated)
        assert cell.camera_names == ("cam_left", "cam_right")


def test_the_simulated_cell_agrees_with_its_calibration():
    cell = CellFile.load(ROOT / "launch" / "cells" / "sim.yaml")
    calibration = CellCalibration.load(ROOT / "calibration" / "results" / "sim")
    serials = {name: entry["serial"] for name, entry in cell.section("cameras").items()}
    calibration.require_usable(cell.camera_names, cell=cell.name, serials=serials)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("simulated: true", "cell"),
        ("cell: a", "simulated"),
        ("cell: a\nsimulated: true\ncamera: {}", "'camera'"),
        ("cell: a\nsimulated: true\ncameras: 3", "cameras"),
        ("cell: a\nsimulated: true", "camera"),
        ("[1", "YAML"),
    ],
)
def test_a_mistake_is_named(tmp_path, text, word):
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(CellFileError, match=word):
        CellFile.load(path)


def test_a_missing_file_lists_its_neighbours(tmp_path):
    (tmp_path / "lab.yaml").write_text("")
    with pytest.raises(CellFileError, match="lab"):
        CellFile.load(tmp_path / "labb.yaml")


def test_the_project_root_is_found_from_below_and_not_elsewhere(tmp_path):
    assert find_project_root(ROOT / "launch" / "cells") == ROOT
    with pytest.raises(CellFileError, match="absolute"):
        find_project_root(tmp_path)
