# SPDX-License-Identifier: MIT
"""Commands that need a running cell: collect, quick check, latency. Thin by intention."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from equi_calibration.cell_file import load_cell
from equi_calibration.check.quick import quick_check
from equi_calibration.collect.live import collect_live, live_clouds, measure_latency
from equi_calibration.errors import CollectError
from equi_calibration.offline_commands import check_dataset
from equi_calibration.paths import CellOption, DatasetArgument, cell_path, stored_calibration
from equi_calibration.terminal import LiveView, print_checks, print_delays, require_yes
from equi_core.calibration import CellCalibration


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
    in the gripper; blocks are on the table. The robot driver must not be running.
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
    settings = load_cell(cell_path(cell))
    console = Console()
    if not yes and not hand_guided:
        require_yes(
            f"The arm will visit about {poses or settings.collect.poses} poses at "
            f"{settings.collect.speed_m_s} m/s with the board in the gripper. "
            "Is the path clear and a hand on the stop button?"
        )
    with LiveView() as view:
        made = collect_live(
            dataset,
            cell_path(cell),
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


def check(
    dataset: Annotated[Path | None, tyro.conf.Positional] = None,
    cell: CellOption | None = None,
    quick: bool = False,
    results: Path | None = None,
    timeout_s: float = 20.0,
) -> int:
    """Evaluate a solved dataset: PASS or FAIL, the calibration file and the report.

    With --quick: no dataset; check with the live clouds of the table and a block whether the
    cameras are still where the calibration says. Exit code 0 pass, 1 fail, 2 wrong input.
    Example: equi-calibrate check runs/calibration_1
    Example: equi-calibrate check --quick --cell lab

    Args:
        dataset: folder that was solved.
        cell: the cell; the one that the dataset names if not given.
        quick: the daily check.
        results: folder of results; ~/.ros/equi/calibration by default, and for a synthetic dataset
            a folder inside it, so that a rehearsal never replaces the calibration of a cell.
        timeout_s: how long --quick waits for the cameras.
    """
    if quick:
        return _quick(cell or "sim", results, timeout_s)
    if dataset is None:
        raise CollectError("give the folder of a dataset, or --quick")
    return check_dataset(dataset, cell, results)


def latency(
    cell: CellOption = "sim",
    robot_ip: str | None = None,
    results: Path | None = None,
    amplitude_mm: float = 20.0,
    timeout_s: float = 20.0,
    yes: bool = False,
) -> int:
    """Measure the delays camera-to-host and command-to-motion by a small motion of the arm.

    With the board in the gripper the arm goes to a pose for each camera, as in 'collect', and moves
    up and down there by a few millimetres. The result is stored with the calibration.
    Example: equi-calibrate latency --cell sim

    Args:
        cell: the cell.
        robot_ip: the controller; the cell file's if not given.
        results: folder of results.
        amplitude_mm: how far the arm moves.
        timeout_s: how long to wait for cameras and robot.
        yes: do not ask before the arm moves.
    """
    settings = load_cell(cell_path(cell))
    console = Console()
    if not yes:
        require_yes(
            f"The arm will show the board to each camera and move it by {amplitude_mm:.0f} mm. Is "
            "the path clear and a hand on the stop button?"
        )
    path = stored_calibration(results, settings.cell)
    calibration = CellCalibration.load(path)
    delays = measure_latency(
        cell_path(cell),
        settings,
        robot_ip=robot_ip,
        amplitude_m=amplitude_mm / 1000,
        timeout_s=timeout_s,
    )
    print_delays(delays)
    slowest = max(camera.motion.delay_s for camera in delays.cameras.values())
    dataclasses.replace(
        calibration, camera_to_host_s=slowest, command_to_motion_s=delays.command_to_motion.delay_s
    ).save(path)
    console.print(f"Stored in {path}.", highlight=False)
    return 0


def _quick(cell: str, results: Path | None, timeout_s: float) -> int:
    settings = load_cell(cell_path(cell))
    path = stored_calibration(results, settings.cell)
    calibration = CellCalibration.load(path)
    clouds, serials = live_clouds(settings, timeout_s)
    calibration.require_usable(settings.names, cell=settings.cell, serials=serials)
    report = quick_check(settings, calibration, clouds)
    print_checks(report.checks, report.passed)
    Console().print(report.conclusion, highlight=False)
    return 0 if report.passed else 1
