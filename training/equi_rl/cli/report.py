# SPDX-License-Identifier: MIT
"""equi-report: learning curves and tables from run folders.

    equi-report --runs runs/carflag --out training/docs                # table and figures
    equi-report --curves training/docs/carflag_curves.csv --out redrawn    # without the runs
    equi-report --runs runs/more --curves docs/carflag_curves.csv --out docs    # add some runs

For CarFlag it writes `carflag_curves.csv` (every evaluation), `carflag_costs.csv` (steps and
time) and `carflag_results.md` (tables), for robot tasks `robot_curves.csv` and
`robot_results.md`, and figures in `images/`. Curves show the mean over seeds and one standard
deviation.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from equi_rl.results.carflag_curves import (
    Case,
    Cost,
    Curves,
    collect,
    collect_costs,
    read_costs,
    read_csv,
)
from equi_rl.results.carflag_report import COSTS_NAME, write_carflag_report
from equi_rl.results.robot_curves import (
    EvaluatedRun,
    collect_robot_runs,
    join_runs,
    read_robot_runs,
)
from equi_rl.results.robot_report import CURVES_NAME, write_robot_report
from equi_rl.results.tables import CurvesError
from equi_rl.training.run_folder import RunFolderError

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReportCommand:
    """Draw learning curves and write tables. Give --runs, --curves, or both.

    Example: equi-report --runs runs/carflag --out training/docs
    """

    out: Path
    """Folder for tables and images/."""
    runs: Path | None = None
    """Folder with run folders, searched in depth."""
    curves: tuple[Path, ...] = ()
    """carflag_curves.csv, robot_curves.csv or both of an earlier report; what --runs holds of the
    same CarFlag world and agent, or the same robot run, takes its place. Costs are read from the
    carflag_costs.csv beside it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    command = tyro.cli(ReportCommand, prog="equi-report", description=__doc__, args=arguments)
    try:
        if command.runs is None and not command.curves:
            raise CurvesError("give --runs, --curves, or both")
        for path in _write_all(command):
            LOGGER.info("wrote %s", path)
    except (CurvesError, RunFolderError) as error:
        LOGGER.error("equi-report: %s", error)
        return 2
    return 0


def _write_all(command: ReportCommand) -> list[Path]:
    """Reports of every family of runs that is found."""
    curves: dict[Case, Curves] = {}
    costs: dict[tuple[str, int, str], Cost] = {}
    robot_runs: list[EvaluatedRun] = []
    for path in command.curves:
        if path.name == CURVES_NAME:
            robot_runs = join_runs(robot_runs, read_robot_runs(path))
        else:
            curves |= read_csv(path)
            costs |= {cost.kind: cost for cost in read_costs(path.with_name(COSTS_NAME))}
    if command.runs is not None:
        found = collect_robot_runs(command.runs)
        robot_runs = join_runs(robot_runs, found)
        try:
            curves |= collect(command.runs)
        except CurvesError:
            if not found:
                raise
        costs |= {cost.kind: cost for cost in collect_costs(command.runs)}
    written = write_robot_report(robot_runs, command.out) if robot_runs else []
    return written + (
        write_carflag_report(curves, command.out, list(costs.values())) if curves else []
    )


if __name__ == "__main__":
    sys.exit(main())
