# SPDX-License-Identifier: MIT
"""Faults of a cell, from rendered images to the verdict, by the commands that a user types."""

from __future__ import annotations

import pytest
from calibration_cells import ROOT

from equi_calibration.cli import main
from equi_core.calibration import CalibrationRefusedError, CellCalibration

FAULTS = {
    "print_scale": (["--print-scale", "1.03"], "of its stated size"),
    "swapped": (["--swap-cameras"], "the cameras are swapped"),
    "knocked": (
        ["--moved-camera", "cam_left", "--moved-mm", "10", "--moved-after-pose", "12"],
        "moved after pose",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_the_first_problem_named_is_the_fault_and_perception_refuses(fault, tmp_path):
    options, words = FAULTS[fault]
    folder = tmp_path / "dataset"
    assert main(["simulate", str(folder), "--seed", "1", "--poses", "24", *options]) == 0
    assert main(["solve", str(folder)]) == 0
    assert main(["check", str(folder)]) == 1
    stored = CellCalibration.load(folder / "results" / "sim")
    assert words in stored.problems[0]
    with pytest.raises(CalibrationRefusedError, match="failed its check"):
        stored.require_usable(["cam_left", "cam_right"], cell="sim")


@pytest.mark.slow
def test_a_dataset_older_than_the_cell_allows_fails_as_stale(tmp_path):
    folder = tmp_path / "dataset"
    assert main(["simulate", str(folder), "--seed", "1", "--poses", "24"]) == 0
    assert main(["solve", str(folder)]) == 0
    text = (ROOT / "launch" / "cells" / "sim.yaml").read_text(encoding="utf-8")
    hasty = tmp_path / "sim.yaml"
    hasty.write_text(text.replace("valid_for_days: 30.0", "valid_for_days: 1.0e-9"))
    assert main(["check", str(folder), "--cell", str(hasty)]) == 1
    stored = CellCalibration.load(folder / "results" / "sim")
    assert "stale" in stored.problems[0]
