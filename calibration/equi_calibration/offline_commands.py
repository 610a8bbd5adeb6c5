# SPDX-License-Identifier: MIT
"""Commands that need files only: print a board, simulate, solve, check. Thin by intention."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

from equi_calibration.board.print import print_board
from equi_calibration.cell_file import load_cell
from equi_calibration.check.report import write_report
from equi_calibration.check.result import calibration_of, result_path
from equi_calibration.check.verdict import evaluate
from equi_calibration.collect.dataset import load_dataset
from equi_calibration.paths import CellOption, DatasetArgument, cell_path, results_of
from equi_calibration.solve.clouds import examine_dataset
from equi_calibration.solve.solution import Solution
from equi_calibration.solve.solver import solve_dataset
from equi_calibration.terminal import LiveView, print_checks, print_solution
from equi_core.calibration import CalibrationError, CellCalibration


def board(
    out: Path = Path("board"),
    page: Literal["A4", "A3", "letter"] = "A4",
    cell: CellOption = "sim",
    square_mm: float | None = None,
) -> int:
    """Write the board of a cell as PDF and PNG at its exact size, with a check ruler.

    Example: equi-calibrate board --out board --page A4

    Args:
        out: path without suffix.
        page: paper size, landscape.
        cell: whose board to print.
        square_mm: side of a square, if not the cell file's; the marker is scaled with it.
    """
    spec = load_cell(cell_path(cell)).board
    if square_mm is not None:
        ratio = spec.marker_m / spec.square_m
        side = square_mm / 1000
        spec = dataclasses.replace(spec, square_m=side, marker_m=side * ratio)
    pdf, png = print_board(spec, out, page)
    console = Console()
    console.print(f"Wrote {pdf} and {png}.", highlight=False)
    console.print(
        f"Print at 100 %. Measure the ruler and a row of squares: {spec.columns} squares must be "
        f"{1000 * spec.width_m:.1f} mm. Write what you measured into the cell file.",
        highlight=False,
    )
    return 0


def simulate(
    dataset: DatasetArgument,
    cell: CellOption = "sim",
    seed: int = 0,
    poses: int | None = None,
    print_scale: float = 1.0,
    swap_cameras: bool = False,
    moved_camera: str = "",
    moved_mm: float = 10.0,
    moved_after_pose: int = 15,
) -> int:
    """Make a synthetic dataset: a simulated arm carries the board past simulated cameras.

    The cameras are 5 cm and 5 degrees off the cell file; truth.json has their true poses.
    Example: equi-calibrate simulate /tmp/demo --seed 1

    Args:
        dataset: new folder.
        cell: the cell to imitate.
        seed: draws the truth and the noise.
        poses: stops of the arm; the cell file's number if not given.
        print_scale: true size of the print over its stated size, a fault that 'check' finds.
        swap_cameras: swap the cables of the cameras.
        moved_camera: move this camera while collecting ...
        moved_mm: ... by this much ...
        moved_after_pose: the number of images after which it moves.
    """
    from equi_calibration.synthetic.cell import Imperfections
    from equi_calibration.synthetic.recording import make_dataset

    settings = load_cell(cell_path(cell))
    wrong = Imperfections(
        print_scale=print_scale,
        swap_cameras=swap_cameras,
        moved_camera=moved_camera,
        moved_m=moved_mm / 1000,
        moved_after_pose=moved_after_pose,
    )
    with LiveView() as view:
        made, _ = make_dataset(dataset, settings, seed, wrong, poses=poses, progress=view.show)
    Console().print(f"Wrote {len(made.poses)} poses to {dataset}. Next: equi-calibrate solve.")
    return 0


def solve(
    dataset: DatasetArgument,
    cell: CellOption | None = None,
    refine_intrinsics: bool = False,
    icp: bool = False,
) -> int:
    """Compute the camera poses from a dataset; writes solution.json into it.

    Example: equi-calibrate solve runs/calibration_1

    Args:
        dataset: folder of 'collect' or 'simulate'.
        cell: its cell; the one that the dataset names if not given.
        refine_intrinsics: also solve for focal lengths and principal points.
        icp: also use the depth clouds of the blocks as a constraint between the cameras (ICP);
            useful with few views, or if depth and colour are not quite aligned.
    """
    data = load_dataset(dataset)
    settings = load_cell(cell_path(cell or data.cell))
    with Progress(SpinnerColumn(), TextColumn("{task.description}"), transient=True) as progress:
        task = progress.add_task("", total=None)
        solution = solve_dataset(
            data,
            settings.workspace_centre_m,
            gate=settings.view_gate,
            refine_intrinsics=refine_intrinsics,
            icp=settings.scene if icp else None,
            progress=lambda text: progress.update(task, description=text),
        )
    path = solution.save(dataset)
    print_solution(solution)
    Console().print(f"Wrote {path}. Next: equi-calibrate check {dataset}", highlight=False)
    return 0


def check_dataset(dataset: Path, cell: str | None, results: Path | None) -> int:
    """Evaluate a solved dataset, write calibration and report; 0 pass, 1 fail."""
    data = load_dataset(dataset)
    settings = load_cell(cell_path(cell or data.cell))
    solution = Solution.load(dataset)
    scene = examine_dataset(data, solution.base_from_camera, settings.scene)
    verdict = evaluate(settings, data, solution, scene)
    path = result_path(results or results_of(data, dataset), settings.cell)
    delays = _known_delays(path)
    calibration_of(
        settings,
        data,
        solution,
        scene,
        verdict,
        camera_to_host_s=delays[0],
        command_to_motion_s=delays[1],
    ).save(path)
    page, _ = write_report(path.parent, settings, data, solution, scene, verdict)
    print_checks(verdict.checks, verdict.passed)
    console = Console()
    for problem in verdict.problems:
        console.print(f"- {problem}", highlight=False)
    console.print(f"Wrote {path} and {page}.", highlight=False)
    return 0 if verdict.passed else 1


def _known_delays(path: Path) -> tuple[float | None, float | None]:
    """Delays of the calibration that is about to be replaced: they do not depend on poses."""
    try:
        old = CellCalibration.load(path)
    except CalibrationError:
        return None, None
    return old.camera_to_host_s, old.command_to_motion_s
