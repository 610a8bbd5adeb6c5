# SPDX-License-Identifier: MIT
"""`equi-bench`: runs the benchmarks that installed packages register.

A package registers a benchmark by an entry point of the group `equi.benchmarks`:

    my-benchmark = my_package.bench:run

where `run(options: list[str]) -> Mapping[str, object]` prints a readable table and returns
plain values. This command prints them as one JSON object on the last line, so that a script can
read the metrics. It knows no benchmark by name.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points

from rich.console import Console

ENTRY_POINT_GROUP = "equi.benchmarks"

Benchmark = Callable[[list[str]], Mapping[str, object]]


def registered_benchmarks() -> dict[str, EntryPoint]:
    """Every registered benchmark by name, in alphabetical order.

    A package can be visible twice (installed, and built in a workspace overlay): the first on the
    import path wins, as it does for imports.
    """
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        found.setdefault(entry.name, entry)
    return dict(sorted(found.items()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of `equi-bench`; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="equi-bench",
        description="Run benchmarks. Example: equi-bench env --help",
        epilog="Everything after NAME goes to the benchmark. The last line it prints is JSON.",
    )
    parser.add_argument("name", nargs="?", help="a benchmark, or 'all'; without it, list them")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="options of the benchmark")
    parsed = parser.parse_args(arguments)
    benchmarks = registered_benchmarks()
    console = Console(stderr=True)
    if parsed.name is None:
        for name, entry in benchmarks.items():
            sys.stdout.write(f"{name:<16} {entry.value}\n")
        return 0
    if parsed.name != "all":
        if parsed.name not in benchmarks:
            near = difflib.get_close_matches(parsed.name, benchmarks, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            known = ", ".join(benchmarks) or "none is installed"
            console.print(f"no benchmark '{parsed.name}'.{hint} Known: {known}.", markup=False)
            return 2
        benchmarks = {parsed.name: benchmarks[parsed.name]}
    return _run_each(benchmarks, parsed.options, console)


def _run_each(
    benchmarks: Mapping[str, EntryPoint], options: Sequence[str], console: Console
) -> int:
    """Run each benchmark; one that fails is reported and does not stop the others."""
    failed = []
    for position, (name, entry) in enumerate(benchmarks.items(), start=1):
        console.rule(f"{name} ({position} of {len(benchmarks)})")
        try:
            benchmark: Benchmark = entry.load()
            metrics = dict(benchmark(list(options)))
            line = json.dumps(metrics, allow_nan=False)
        except Exception:  # a benchmark is foreign code: whatever it raises is its own failure
            traceback.print_exc()
            failed.append(name)
            continue
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    if failed:
        console.print(f"failed: {', '.join(failed)}", markup=False)
    return 1 if failed else 0
