# SPDX-License-Identifier: MIT
"""How large the tree is: lines per package, size of its modules, modules per folder: `make sizes`.

python requirements/architecture/sizes.py [ROOT]     another checkout, to compare with
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

if __package__ in (None, ""):  # run as a script, by any Python
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from architecture.imports import REPOSITORY, package_folders


@dataclass(frozen=True)
class Size:
    """Numbers of one package. Lines are counted as in `wc -l`; `__init__.py` are no modules."""

    name: str
    modules: int
    lines: int
    median: int
    percentile_90: int
    largest: int
    largest_module: str
    fullest_folder: str
    modules_in_fullest: int


def modules_in(folder: Path) -> list[Path]:
    """Python files below a folder, without `__init__.py`."""
    return sorted(path for path in folder.rglob("*.py") if path.name != "__init__.py")


def line_count(path: Path) -> int:
    """Lines of a file."""
    return path.read_bytes().count(b"\n")


def product_folders(root: Path = REPOSITORY) -> dict[str, Path]:
    """Every package that is shipped, and the parts that stand for ROS or install the rest."""
    tools = [root / "requirements" / name for name in ("installer", "architecture")]
    others = [path for path in tools if path.is_dir()] or [root / "requirements"]
    pip_ros2 = {"pip_ros2": root / "ros2_ws/pip_ros2/src"}
    return {**package_folders(root), **pip_ros2, **{path.name: path for path in others}}


def measure(name: str, folder: Path) -> Size:
    """Sizes of one package."""
    paths = modules_in(folder)
    lines = sorted(line_count(path) for path in paths)
    largest = max(paths, key=line_count)
    fullest, count = Counter(path.parent for path in paths).most_common(1)[0]
    return Size(
        name=name,
        modules=len(paths),
        lines=sum(lines),
        median=lines[len(lines) // 2],
        percentile_90=lines[min(len(lines) - 1, int(0.9 * len(lines)))],
        largest=lines[-1],
        largest_module=str(largest.relative_to(folder)),
        fullest_folder=str(fullest.relative_to(folder.parent)),
        modules_in_fullest=count,
    )


def table(root: Path) -> str:
    """The numbers of every package and their sum, aligned for a terminal and for Markdown."""
    sizes = [measure(name, folder) for name, folder in sorted(product_folders(root).items())]
    head = (
        "package",
        "modules",
        "lines",
        "median",
        "p90",
        "max",
        "largest module",
        "fullest folder",
    )
    rows = [
        (
            size.name,
            *map(str, (size.modules, size.lines, size.median, size.percentile_90, size.largest)),
            size.largest_module,
            f"{size.fullest_folder} ({size.modules_in_fullest})",
        )
        for size in sizes
    ]
    every = sorted(
        line_count(path) for folder in product_folders(root).values() for path in modules_in(folder)
    )
    total = (
        len(every),
        sum(every),
        every[len(every) // 2],
        every[int(0.9 * len(every))],
        every[-1],
    )
    rows.append(("all", *map(str, total), "", ""))
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    rule = tuple("-" * width for width in widths)
    return "\n".join(
        "| "
        + " | ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        + " |"
        for row in (head, rule, *rows)
    )


if __name__ == "__main__":
    sys.stdout.write(table(Path(sys.argv[1]) if len(sys.argv) > 1 else REPOSITORY) + "\n")
