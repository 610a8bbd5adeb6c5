# SPDX-License-Identifier: MIT
"""report: writes the report of an evaluation folder again.

ros2 run equi_evaluation report runs/evaluation/block_picking-20261116-080000
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from equi_evaluation.report import write_report
from equi_evaluation.results import ResultsError


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="report",
        description="Write report.html of an evaluation folder.",
        epilog="Example: ros2 run equi_evaluation report runs/evaluation/my-run",
    )
    parser.add_argument("folder", type=Path, help="folder with results.jsonl")
    parsed = parser.parse_args(arguments)
    console = Console()
    try:
        path = write_report(parsed.folder)
    except ResultsError as error:
        console.print(f"[red]{error}[/]")
        return 2
    console.print(f"report: {path}", soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
