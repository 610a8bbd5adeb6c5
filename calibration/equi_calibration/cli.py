# SPDX-License-Identifier: MIT
"""`equi-calibrate`: the commands of the calibration procedure."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from typing import Any

import tyro
from rich.console import Console

from equi_calibration import live_commands, offline_commands
from equi_calibration.errors import CalibrationError
from equi_core.calibration import CalibrationError as CalibrationFileError

_DESCRIPTION = """Calibrate the cameras of a cell, with a verdict.

In the laboratory, in this order (each has its own --help):
  equi-calibrate board --out board            print the board, measure it
  equi-calibrate collect runs/calibration     carry it past the cameras
  equi-calibrate solve runs/calibration       compute the camera poses
  equi-calibrate check runs/calibration       PASS or FAIL, and the file that perception reads
  equi-calibrate check --quick                every morning
Without a robot:
  equi-calibrate simulate /tmp/demo --seed 1 && equi-calibrate solve /tmp/demo && \\
  equi-calibrate check /tmp/demo
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code: 0 pass, 1 fail, 2 wrong input."""
    table: dict[str, Callable[..., Any]] = {
        "board": offline_commands.board,
        "simulate": offline_commands.simulate,
        "collect": live_commands.collect,
        "solve": offline_commands.solve,
        "check": live_commands.check,
        "latency": live_commands.latency,
    }
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    try:
        code = tyro.extras.subcommand_cli_from_dict(
            table, prog="equi-calibrate", description=_DESCRIPTION, args=arguments
        )
    except (CalibrationError, CalibrationFileError) as error:
        console = Console(stderr=True)
        console.print(f"[bold red]{type(error).__name__}[/]", end=": ")
        console.print(str(error), markup=False, highlight=False)
        return 2
    return int(code or 0)


if __name__ == "__main__":
    sys.exit(main())
