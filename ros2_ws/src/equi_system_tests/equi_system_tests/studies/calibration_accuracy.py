# SPDX-License-Identifier: MIT
"""`equi-bench calibration`: accuracy of the whole procedure against known truth, over seeds.

Each seed is a simulated cell whose cameras are 5 cm and 5 degrees off its file. The
dataset is rendered with the errors of real images, depths and robots, then solved and checked. The
fused image of the task is compared with the training renderer's before (cameras where the file says
they were mounted) and after (as perception reads the written calibration).

Example: equi-bench calibration --seeds 10
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from equi_calibration.cell_file import CellSettings, load_cell
from equi_calibration.check.result import calibration_of
from equi_calibration.check.verdict import evaluate
from equi_calibration.solve.accuracy import CameraError, camera_error
from equi_calibration.solve.clouds import examine_dataset
from equi_calibration.solve.solver import solve_dataset
from equi_calibration.synthetic.cell import Imperfections, SimulatedCell
from equi_calibration.synthetic.recording import make_dataset
from equi_core.locations.find import find_cell_file
from equi_rl.envs import make_env
from equi_system_tests.studies.fused_camera import (
    CalibratedCamera,
    FusedCamera,
    ImageError,
    mean_error,
    pose_scene,
)
from equi_system_tests.studies.fused_image_policies import TASK

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SeedResult:
    """One simulated cell."""

    errors: Mapping[str, CameraError]
    """Per camera."""
    passed: bool
    before: ImageError | None
    """Of the fused image; None if it was not computed."""
    after: ImageError | None


def run(options: list[str]) -> dict[str, object]:
    """Run it; prints a table and returns the metrics."""
    summary, _, example = (__doc__ or "").partition("Example:")
    parser = argparse.ArgumentParser(
        prog="equi-bench calibration", description=summary, epilog=f"Example:{example}"
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--scenes", type=int, default=20, help="fused images per cell; 0: none")
    parser.add_argument("--cell", type=Path, default=None, help="cell file; the simulated cell's")
    parsed = parser.parse_args(options)
    path = parsed.cell or find_cell_file("sim")
    cell = load_cell(path)
    seeds = range(parsed.first_seed, parsed.first_seed + parsed.seeds)
    results = {
        seed: run_seed(cell, seed, scenes=parsed.scenes)
        for seed in track(seeds, "seeds", console=Console(stderr=True))
    }
    console = Console()
    console.print(_table(results))
    metrics = _metrics(list(results.values()))
    if parsed.scenes:
        console.print(_image_table(results))
    return {"seeds": parsed.seeds, **metrics}


def run_seed(
    cell: CellSettings,
    seed: int,
    imperfections: Imperfections | None = None,
    poses: int | None = None,
    scenes: int = 0,
) -> SeedResult:
    """Collect, solve and check one simulated cell; then compare fused images of so many scenes."""
    with tempfile.TemporaryDirectory() as folder:
        dataset, simulated = make_dataset(
            Path(folder) / "dataset", cell, seed, imperfections, poses=poses
        )
        solution = solve_dataset(dataset, cell.scene.workspace.centre_m, gate=cell.view_gate)
        scene = examine_dataset(dataset, solution.base_from_camera, cell.scene)
        verdict = evaluate(cell, dataset, solution, scene)
        found = calibration_of(cell, dataset, solution, scene, verdict)
    errors = {
        name: camera_error(
            solution.cameras[name].base_from_camera,
            simulated.truth.base_from_camera[name],
            solution.cameras[name].covariance,
            cell.scene.workspace.centre_m,
        )
        for name in cell.names
    }
    before = after = None
    if scenes:
        mounted = {name: cell.camera(name).nominal.matrix for name in cell.names}
        solved_poses = {name: found.camera(name).base_from_raw_points for name in cell.names}
        before = image_error(simulated, mounted, scenes)
        after = image_error(simulated, solved_poses, scenes)
    return SeedResult(errors, verdict.passed, before, after)


def image_error(
    simulated: SimulatedCell, base_from_points: Mapping[str, FloatArray], scenes: int
) -> ImageError:
    """Of the fused image of the cell's true cameras, with points transformed by poses (4, 4)."""
    cameras = [
        CalibratedCamera(camera.depth_camera, base_from_points[name])
        for name, camera in simulated.cameras.items()
    ]
    env = make_env(TASK)
    errors = []
    for index in range(scenes):
        pose_scene(env, index)
        errors.append(FusedCamera(env.world, cameras, env.contract.image).image_error())
    env.close()
    return mean_error(errors)


def _table(results: Mapping[int, SeedResult]) -> Table:
    table = Table("seed", "camera", "mm", "mm in workspace", "deg", "in 95 %", "verdict")
    for seed, result in results.items():
        for name, error in result.errors.items():
            table.add_row(
                str(seed),
                name,
                f"{error.position_mm:.2f}",
                f"{error.workspace_mm:.2f}",
                f"{error.rotation_deg:.3f}",
                "yes" if error.covered_95 else "no",
                "PASS" if result.passed else "FAIL",
            )
    return table


def _image_table(results: Mapping[int, SeedResult]) -> Table:
    table = Table("seed", "before: mm", "off > 10 mm", "after: mm", "off > 10 mm")
    for seed, result in results.items():
        cells = [
            text
            for error in (result.before, result.after)
            if error is not None
            for text in (f"{error.flat_mm:.2f}", f"{error.wrong_share:.1%}")
        ]
        table.add_row(str(seed), *cells)
    return table


def _metrics(results: list[SeedResult]) -> dict[str, object]:
    errors = [error for result in results for error in result.errors.values()]
    metrics: dict[str, object] = {
        "cameras": len(errors),
        "worst_position_mm": max(error.position_mm for error in errors),
        "median_position_mm": float(np.median([error.position_mm for error in errors])),
        "worst_workspace_mm": max(error.workspace_mm for error in errors),
        "worst_rotation_deg": max(error.rotation_deg for error in errors),
        "median_rotation_deg": float(np.median([error.rotation_deg for error in errors])),
        "covered_95": sum(error.covered_95 for error in errors),
        "mean_squared_distance": float(np.mean([error.squared_distance for error in errors])),
        "passed": sum(result.passed for result in results),
    }
    for name in ("before", "after"):
        found = [error for result in results if (error := getattr(result, name)) is not None]
        if found:
            mean = mean_error(found)
            metrics[f"{name}_image_error_mm"] = mean.flat_mm
            metrics[f"{name}_image_wrong_share"] = mean.wrong_share
            metrics[f"{name}_worst_image_error_mm"] = max(error.flat_mm for error in found)
    return metrics
