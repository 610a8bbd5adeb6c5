# SPDX-License-Identifier: MIT
"""`equi-faults`: injects every fault of the table into a moving arm and reports the reaction."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from equi_system_tests.faults.fault_case import FaultResult, Robot
from equi_system_tests.faults.fault_table import CASES
from equi_system_tests.faults.rig import RigError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases; the exit code is 0 only if every one of them passed."""
    parsed = _parser().parse_args(arguments)
    console = Console(stderr=True)
    results: list[FaultResult] = []
    failures: list[str] = []
    robot = Robot(parsed.arm, parsed.profile)
    for case in CASES:
        if parsed.only and parsed.only not in case.name:
            continue
        if case.strict_only and robot.profile != "strict":
            continue
        console.print(f"injecting: {case.name} ...")
        try:
            results.append(case.run(robot))
        except (RigError, RuntimeError, ValueError) as error:
            failures.append(f"{case.name}: {error}")
    console.print(_table(results))
    for result in results:
        for discarded in result.discarded:
            console.print(f"repeated: {result.fault}: {discarded}", markup=False)
    for failure in failures:
        console.print(f"did not finish: {failure}", markup=False)
    sys.stdout.write(json.dumps([dataclasses.asdict(result) for result in results]) + "\n")
    return 0 if results and not failures and all(result.passed for result in results) else 1


def _table(results: Sequence[FaultResult]) -> Table:
    table = Table(title="faults injected while the arm moves, measured at the controller")
    for heading in (
        "fault",
        "observed",
        "speed mm/s",
        "travel mm",
        "stopped after s",
        "jump mm",
        "",
    ):
        table.add_column(heading)
    for result in results:
        jump = result.resume_motion_mm
        table.add_row(
            result.fault,
            result.observed,
            f"{result.travel.speed_before_mm_s:.0f}",
            f"{result.travel.distance_mm:.1f}",
            f"{result.travel.standstill_s:.2f}",
            "-" if jump is None else f"{jump:.2f}",
            _status(result),
        )
    return table


def _status(result: FaultResult) -> str:
    word = "ok" if result.passed else "FAILED"
    return word if result.attempts == 1 else f"{word}, attempt {result.attempts}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="equi-faults",
        description=__doc__,
        epilog="Example: ros2 run equi_system_tests equi-faults --only 'protective stop'",
    )
    parser.add_argument("--only", help="run the faults whose name contains this")
    parser.add_argument("--arm", choices=("kinematic", "physics"), default="kinematic")
    parser.add_argument(
        "--profile",
        choices=("lenient", "strict"),
        default="lenient",
        help="how strictly the emulated robot behaves; some rows need the strict one",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
