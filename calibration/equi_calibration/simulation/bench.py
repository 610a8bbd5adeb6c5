"""`equi-bench calibration`: accuracy of the whole procedure against known truth, over seeds."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from equi_calibration.accuracy import CameraError, camera_error
from equi_calibration.cell_file import CellSettings, load_cell
from equi_calibration.record import record_of
from equi_calibration.result import scene_of
from equi_calibration.simulation.cell import Imperfections
from equi_calibration.simulation.synthetic import make_dataset
from equi_calibration.solve import solve_dataset
from equi_calibration.verdict import judge
from equi_core.cell_file import find_project_root


def run(options: list[str]) -> dict[str, object]:
    """Run it; prints a table and returns plain figures."""
    parser = argparse.ArgumentParser(prog="equi-bench calibration", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--cell", type=Path, default=None, help="cell file; the simulated cell's")
    parsed = parser.parse_args(options)
    path = parsed.cell or find_project_root(Path(__file__)) / "launch" / "cells" / "sim.yaml"
    cell = load_cell(path)
    table = Table(
        "seed", "camera", "position mm", "workspace mm", "angle deg", "in 95 %", "verdict"
    )
    errors: list[CameraError] = []
    passes = 0
    for seed in track(range(parsed.seeds), "seeds", console=Console(stderr=True)):
        found, passed = run_seed(cell, seed)
        passes += passed
        for name, error in found.items():
            errors.append(error)
            table.add_row(
                str(seed),
                name,
                f"{error.position_mm:.2f}",
                f"{error.workspace_mm:.2f}",
                f"{error.rotation_deg:.3f}",
                "yes" if error.covered_95 else "no",
                "PASS" if passed else "FAIL",
            )
    Console().print(table)
    return {
        "seeds": parsed.seeds,
        "worst_position_mm": max(error.position_mm for error in errors),
        "median_position_mm": float(np.median([error.position_mm for error in errors])),
        "worst_workspace_mm": max(error.workspace_mm for error in errors),
        "worst_rotation_deg": max(error.rotation_deg for error in errors),
        "median_rotation_deg": float(np.median([error.rotation_deg for error in errors])),
        "covered_95": sum(error.covered_95 for error in errors),
        "mean_squared_distance": float(np.mean([error.squared_distance for error in errors])),
        "cameras": len(errors),
        "passed": passes,
    }


def run_seed(
    cell: CellSettings,
    seed: int,
    imperfections: Imperfections | None = None,
    poses: int | None = None,
) -> tuple[dict[str, CameraError], bool]:
    """Collect, solve and judge one synthetic cell; errors per camera, and whether it passed."""
    with tempfile.TemporaryDirectory() as folder:
        dataset, simulated = make_dataset(
            Path(folder) / "dataset", cell, seed, imperfections, poses=poses
        )
        solved = solve_dataset(dataset, cell.scene.workspace.centre_m, gate=cell.view_gate)
        record = record_of(dataset, solved)
        verdict = judge(cell, dataset, record, scene_of(cell, dataset, record))
    solution = solved.solution
    errors = {
        name: camera_error(
            solution.estimate.base_from_camera[name],
            simulated.truth.base_from_camera[name],
            solution.covariance[name],
            cell.scene.workspace.centre_m,
        )
        for name in cell.names
    }
    return errors, verdict.passed
