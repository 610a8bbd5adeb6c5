"""What each command does: read files, call the solvers, print, write files. Thin by intention."""

from __future__ import annotations

import dataclasses
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn
from rich.table import Table

from equi_calibration.board_print import print_board
from equi_calibration.cell_file import load_cell
from equi_calibration.collect import PoseReport
from equi_calibration.dataset import SYNTHETIC_SERIAL, Dataset, load_dataset
from equi_calibration.errors import CellFileError, CollectError
from equi_calibration.quick import quick_check
from equi_calibration.record import SolutionRecord, record_of
from equi_calibration.report import write_report
from equi_calibration.result import calibration_of, result_path, scene_of
from equi_calibration.solve import solve_dataset
from equi_calibration.verdict import Check, judge
from equi_core.calibration import CalibrationError, CellCalibration
from equi_core.cell_file import CellFileError as CoreCellFileError
from equi_core.cell_file import find_project_root

CellOption = Annotated[
    str, tyro.conf.arg(help="name of a file in launch/cells, or a path to a cell file")
]
DatasetArgument = Annotated[Path, tyro.conf.Positional]


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
        square_mm: other side of a square than the cell file says; the marker keeps its proportion.
    """
    spec = load_cell(_cell_path(cell)).board
    if square_mm is not None:
        ratio = spec.marker_m / spec.square_m
        side = square_mm / 1000
        spec = dataclasses.replace(spec, square_m=side, marker_m=side * ratio)
    pdf, png = print_board(spec, out, page)
    console = Console()
    console.print(f"Wrote {pdf} and {png}.", highlight=False)
    console.print(
        f"Print at 100 %. Measure the ruler and a row of squares: {spec.columns} squares must be "
        f"{1000 * spec.width_m:.1f} mm. Put what you measured into the cell file.",
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

    The cameras stand 5 cm and 5 degrees from where the cell file says; truth.json says where.
    Example: equi-calibrate simulate /tmp/demo --seed 1

    Args:
        dataset: new folder.
        cell: the cell to imitate.
        seed: draws the truth and the noise.
        poses: stops of the arm; the cell file's number if not given.
        print_scale: true size of the print over its stated size, to see it found out.
        swap_cameras: exchange the cables of the cameras.
        moved_camera: knock this camera while collecting ...
        moved_mm: ... by this much ...
        moved_after_pose: ... after so many shots.
    """
    from equi_calibration.simulation.cell import Imperfections
    from equi_calibration.simulation.synthetic import make_dataset

    settings = load_cell(_cell_path(cell))
    wrong = Imperfections(
        print_scale=print_scale,
        swap_cameras=swap_cameras,
        moved_camera=moved_camera,
        moved_m=moved_mm / 1000,
        moved_after_pose=moved_after_pose,
    )
    with _LiveView() as view:
        made, _ = make_dataset(dataset, settings, seed, wrong, poses=poses, progress=view.show)
    Console().print(f"Wrote {len(made.poses)} poses to {dataset}. Next: equi-calibrate solve.")
    return 0


def collect(
    dataset: DatasetArgument,
    cell: CellOption = "sim",
    hand_guided: bool = False,
    robot_ip: str | None = None,
    poses: int | None = None,
    seed: int = 0,
    timeout_s: float = 20.0,
    yes: bool = False,
) -> int:
    """Drive the arm through poses that show the board to every camera, and save a dataset.

    Needs the cameras' ROS topics and the robot's controller (or the simulated cell). The board is
    in the gripper; blocks stand on the table. The robot driver must not be running meanwhile.
    Example: equi-calibrate collect runs/calibration_1 --cell sim

    Args:
        dataset: new folder.
        cell: the cell.
        hand_guided: move the arm by hand (freedrive) and confirm each pose with the return key.
        robot_ip: the controller; the cell file's if not given.
        poses: stops of the arm; the cell file's number if not given.
        seed: draws the poses.
        timeout_s: how long to wait for cameras and robot.
        yes: do not ask before the arm moves.
    """
    from equi_calibration.live import collect_live

    settings = load_cell(_cell_path(cell))
    console = Console()
    if not yes and not hand_guided:
        answer = console.input(
            f"The arm will visit about {poses or settings.collect.poses} poses at "
            f"{settings.collect.speed_m_s} m/s with the board in the gripper. "
            "Is the way clear and a hand on the stop button? [yes/no] "
        )
        if answer.strip().lower() not in ("y", "yes"):
            raise CollectError("not confirmed; nothing moved")
    with _LiveView() as view:
        made = collect_live(
            dataset,
            _cell_path(cell),
            settings,
            robot_ip=robot_ip,
            poses=poses or settings.collect.poses,
            seed=seed,
            hand_guided=hand_guided,
            timeout_s=timeout_s,
            progress=view.show,
            ask=console.input,
        )
    console.print(f"Wrote {len(made.poses)} poses to {dataset}. Next: equi-calibrate solve.")
    return 0


def solve(
    dataset: DatasetArgument,
    cell: CellOption | None = None,
    refine_intrinsics: bool = False,
) -> int:
    """Compute where the cameras stand from a dataset; writes solution.json into it.

    Example: equi-calibrate solve runs/calibration_1

    Args:
        dataset: folder of 'collect' or 'simulate'.
        cell: its cell; the one that the dataset names if not given.
        refine_intrinsics: also solve for focal lengths and principal points.
    """
    data = load_dataset(dataset)
    settings = load_cell(_cell_path(cell or data.cell))
    with Progress(SpinnerColumn(), TextColumn("{task.description}"), transient=True) as progress:
        task = progress.add_task("", total=None)
        solved = solve_dataset(
            data,
            settings.scene.workspace.centre_m,
            gate=settings.view_gate,
            refine_intrinsics=refine_intrinsics,
            progress=lambda text: progress.update(task, description=text),
        )
    record = record_of(data, solved)
    path = record.save(dataset)
    table = Table("camera", "x, y, z in base_link [m]", "95 % [mm]", "95 % [deg]", "px", "views")
    for name, camera in record.cameras.items():
        x, y, z = camera.pose[:3, 3]
        table.add_row(
            name,
            f"{x:.4f}, {y:.4f}, {z:.4f}",
            f"{camera.position_uncertainty_mm:.2f}",
            f"{camera.rotation_uncertainty_deg:.3f}",
            f"{camera.reprojection_px:.3f}",
            str(camera.views),
        )
    console = Console()
    console.print(table)
    for file, reasons in record.rejections.items():
        console.print(f"left out {file}: {'; '.join(reasons)}", highlight=False)
    console.print(f"Wrote {path}. Next: equi-calibrate check {dataset}", highlight=False)
    return 0


def check(
    dataset: Annotated[Path | None, tyro.conf.Positional] = None,
    cell: CellOption | None = None,
    quick: bool = False,
    results: Path | None = None,
    timeout_s: float = 20.0,
) -> int:
    """Judge a solved dataset: PASS or FAIL, the calibration file and the report.

    With --quick: no dataset; look at the table and a block through the live cameras and say whether
    they are still where the calibration says. Exit code 0 pass, 1 fail, 2 wrong input.
    Example: equi-calibrate check runs/calibration_1
    Example: equi-calibrate check --quick --cell lab

    Args:
        dataset: folder that was solved.
        cell: the cell; the one that the dataset names if not given.
        quick: the daily check.
        results: folder of results; calibration/results by default, and for a synthetic dataset a
            folder inside it, so that a rehearsal never replaces the calibration of a cell.
        timeout_s: how long --quick waits for the cameras.
    """
    if quick:
        return _quick(cell or "sim", results, timeout_s)
    if dataset is None:
        raise CollectError("give the folder of a dataset, or --quick")
    data = load_dataset(dataset)
    settings = load_cell(_cell_path(cell or data.cell))
    record = SolutionRecord.load(dataset)
    scene = scene_of(settings, data, record)
    verdict = judge(settings, data, record, scene)
    target = results or _default_results(data, dataset)
    path = result_path(target, settings.cell)
    delays = _known_delays(path)
    calibration_of(
        settings,
        data,
        record,
        scene,
        verdict,
        camera_to_host_s=delays[0],
        command_to_motion_s=delays[1],
    ).save(path)
    page, _ = write_report(path.parent, settings, data, record, scene, verdict)
    _print_checks(verdict.checks, verdict.passed)
    console = Console()
    for problem in verdict.problems:
        console.print(f"- {problem}", highlight=False)
    console.print(f"Wrote {path} and {page}.", highlight=False)
    return 0 if verdict.passed else 1


def latency(
    cell: CellOption = "sim",
    robot_ip: str | None = None,
    results: Path | None = None,
    amplitude_mm: float = 20.0,
    timeout_s: float = 20.0,
    yes: bool = False,
) -> int:
    """Measure the delays camera-to-host and command-to-motion by a small motion of the arm.

    The arm moves up and down by a few millimetres where it stands, with the board in the gripper
    and in view. The result is stored with the calibration.
    Example: equi-calibrate latency --cell sim

    Args:
        cell: the cell.
        robot_ip: the controller; the cell file's if not given.
        results: folder of results.
        amplitude_mm: how far the arm moves.
        timeout_s: how long to wait for cameras and robot.
        yes: do not ask before the arm moves.
    """
    from equi_calibration.live import measure_latency

    settings = load_cell(_cell_path(cell))
    console = Console()
    if not yes:
        answer = console.input(f"The arm will move by {amplitude_mm:.0f} mm. Ready? [yes/no] ")
        if answer.strip().lower() not in ("y", "yes"):
            raise CollectError("not confirmed; nothing moved")
    path = result_path(results or _project() / "calibration" / "results", settings.cell)
    calibration = CellCalibration.load(path)
    delays = measure_latency(
        _cell_path(cell),
        settings,
        robot_ip=robot_ip,
        amplitude_m=amplitude_mm / 1000,
        timeout_s=timeout_s,
    )
    table = Table("delay", "ms", "± ms")
    for name, delay in delays.cameras.items():
        table.add_row(f"exposure to arrival, {name}", *_ms(delay.delay_s, delay.sigma_s))
    command = delays.command_to_motion
    table.add_row("command to motion", *_ms(command.delay_s, command.sigma_s))
    console.print(table)
    slowest = max(delay.delay_s for delay in delays.cameras.values())
    dataclasses.replace(
        calibration, camera_to_host_s=slowest, command_to_motion_s=command.delay_s
    ).save(path)
    console.print(f"Stored in {path}.", highlight=False)
    return 0


class _LiveView:
    """Shows each stop of the arm: what was detected, what was refused and why."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._progress = Progress(
            SpinnerColumn(), TextColumn("pose {task.completed}/{task.total}  {task.description}")
        )

    def __enter__(self) -> _LiveView:
        self._stack.enter_context(self._progress)
        self._task = self._progress.add_task("", total=None)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def show(self, report: PoseReport) -> None:
        """Tell about one stop."""
        parts = []
        for name, detection in report.detections.items():
            if detection.accepted:
                parts.append(
                    f"{name}: {len(detection.corner_ids)} corners, {detection.tilt_deg:.0f} deg"
                )
            else:
                parts.append(f"{name}: {'; '.join(detection.rejections)}")
        if report.problem:
            parts.append(report.problem)
        line = " | ".join(parts)
        self._progress.update(
            self._task,
            completed=report.number + 1,
            total=report.total or None,
            description="",
        )
        mark = "kept" if report.kept else "left out"
        self._progress.console.print(f"pose {report.number}: {mark}. {line}", highlight=False)


def _quick(cell: str, results: Path | None, timeout_s: float) -> int:
    from equi_calibration.live import live_clouds

    settings = load_cell(_cell_path(cell))
    path = result_path(results or _project() / "calibration" / "results", settings.cell)
    calibration = CellCalibration.load(path)
    clouds, serials = live_clouds(settings, timeout_s)
    calibration.require_usable(settings.names, cell=settings.cell, serials=serials)
    report = quick_check(settings, calibration, clouds)
    _print_checks(report.checks, report.passed)
    Console().print(report.conclusion, highlight=False)
    return 0 if report.passed else 1


def _print_checks(checks: tuple[Check, ...], passed: bool) -> None:
    table = Table("", "quantity", "value", "limit", "", "")
    for item in checks:
        yes_no = item.unit == "" and item.limit == 0.0
        value = ("yes" if item.passed else "no") if yes_no else f"{item.value:.3g}"
        table.add_row(
            item.subject,
            item.name,
            value,
            "" if yes_no else f"{item.limit:.3g}",
            item.unit,
            "[green]pass[/]" if item.passed else "[bold red]FAIL[/]",
        )
    console = Console()
    console.print(table)
    console.print("[bold green]PASS[/]" if passed else "[bold red]FAIL[/]")


def _ms(delay_s: float, sigma_s: float) -> tuple[str, str]:
    return f"{1000 * delay_s:.1f}", f"{1000 * sigma_s:.1f}"


def _known_delays(path: Path) -> tuple[float | None, float | None]:
    """Delays of the calibration that is about to be replaced: they do not depend on poses."""
    try:
        old = CellCalibration.load(path)
    except CalibrationError:
        return None, None
    return old.camera_to_host_s, old.command_to_motion_s


def _default_results(data: Dataset, folder: Path) -> Path:
    if data.robot_serial == SYNTHETIC_SERIAL:
        return folder / "results"
    return _project() / "calibration" / "results"


def _cell_path(cell: str) -> Path:
    path = Path(cell)
    if path.suffix in (".yaml", ".yml"):
        return path
    return _project() / "launch" / "cells" / f"{cell}.yaml"


def _project() -> Path:
    for start in (Path.cwd(), Path(__file__)):
        try:
            return find_project_root(start)
        except CoreCellFileError:
            continue
    raise CellFileError(
        "the project folder was not found; give --cell and --results as paths, or run inside it"
    )
