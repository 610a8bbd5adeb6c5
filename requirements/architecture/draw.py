# SPDX-License-Identifier: MIT
"""Draws the import graph, between our packages and inside equi_rl: `make graph`.

An arrow goes from the importer down to what it imports. Grey arrows are implied by black ones;
red ones break a law.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path as Curve

from architecture import law
from architecture.imports import (
    INTERFACES,
    REPOSITORY,
    Edge,
    all_modules,
    between,
    import_edges,
    package_folders,
)
from architecture.sizes import line_count, modules_in

DRAWING = REPOSITORY / "requirements" / "architecture" / "import_graph.svg"
HEIGHT = 8.0  # of a whole graph, whatever the number of its rows
BOX_WIDTH, BOX_HEIGHT, COLUMN_WIDTH = 1.0, 0.44, 1.3
BOW = 0.16  # an arrow past other rows swings out by this much a row
SWEEPS = 24

TRAINING, ROBOT, SIMULATION, SHARED, TOGETHER = (
    *("#dbe9f6", "#dcefdc", "#fdebd0"),
    *("#eeeeee", "#f3e1ee"),
)
COLOURS = {
    **dict.fromkeys(("equi_core", INTERFACES, "equi_ros"), SHARED),
    **dict.fromkeys(("equi_perception", "equi_policy", "equi_control", "equi_evaluation"), ROBOT),
    **dict.fromkeys(("ur_emulator", "equi_cell_sim"), SIMULATION),
    **dict.fromkeys(("equi_calibration", "equi_system_tests"), TOGETHER),
    "equi_rl": TRAINING,
}

Pair = tuple[str, str]


@dataclass(frozen=True)
class Graph:
    """What one half of the drawing shows."""

    title: str
    rows: list[list[str]]  # from the bottom to the top
    pairs: dict[Pair, list[Edge]]
    notes: dict[str, str]  # second line of a box
    forbidden: frozenset[Pair]


def package_graph(edges: list[Edge], bad: set[str]) -> Graph:
    """The graph between packages; each lies one row above the highest one that it imports."""
    folders = package_folders()
    names = [INTERFACES, *folders]
    pairs = between(edges, {name: name for name in names})
    heights = dict.fromkeys(names, 0)
    for _ in names:  # longest paths; a cycle ends with the passes
        for upper, lower in pairs:
            if (upper, lower) not in _forbidden(pairs, bad):
                heights[upper] = max(heights[upper], heights[lower] + 1)
    rows = [
        [name for name in names if heights[name] == height]
        for height in range(max(heights.values()) + 1)
    ]
    notes = {name: _note(folder) for name, folder in folders.items()}
    notes[INTERFACES] = "messages"
    return Graph("packages", _untangled(rows, pairs), pairs, notes, _forbidden(pairs, bad))


def training_graph(edges: list[Edge], bad: set[str]) -> Graph:
    """The graph between the folders of equi_rl, in the rows of the law."""
    pairs = between(edges, {f"equi_rl.{room}": room for room in law.TRAINING_ROOMS})
    folder = package_folders()["equi_rl"]
    notes = {room: _note(folder / room) for room in law.TRAINING_ROOMS}
    rows = _untangled([list(rooms) for rooms in law.TRAINING_LEVELS], pairs)
    return Graph("inside equi_rl", rows, pairs, notes, _forbidden(pairs, bad))


def draw(graph: Graph, axes: Axes) -> None:
    """Draw one graph: boxes in rows, arrows downwards."""
    row_height = HEIGHT / (len(graph.rows) - 1)
    places = {
        name: (COLUMN_WIDTH * (column - (len(row) - 1) / 2), row_height * height)
        for height, row in enumerate(graph.rows)
        for column, name in enumerate(row)
    }
    implied = _implied(set(graph.pairs) - graph.forbidden)
    for pair in sorted(graph.pairs):
        if pair in graph.forbidden:
            style: dict[str, Any] = {"color": "#c62828", "lw": 1.6, "zorder": 3.5}
        elif pair in implied:
            style = {"color": "#c3c9cf", "lw": 0.7, "zorder": 1}
        else:
            style = {"color": "#30363c", "lw": 1.1, "zorder": 2}
        _arrow(axes, places[pair[0]], places[pair[1]], row_height, style)
    for name, (x, y) in places.items():
        axes.add_patch(
            FancyBboxPatch(
                (x - BOX_WIDTH / 2, y - BOX_HEIGHT / 2),
                BOX_WIDTH,
                BOX_HEIGHT,
                boxstyle="round,pad=0,rounding_size=0.09",
                fc=COLOURS.get(name, TRAINING),
                ec="#5f6b76",
                lw=0.9,
                zorder=3,
            )
        )
        axes.text(x, y + 0.07, name, ha="center", va="center", fontsize=9, zorder=4)
        note = graph.notes[name]
        axes.text(x, y - 0.11, note, ha="center", va="center", fontsize=6, color="#555", zorder=4)
    half = COLUMN_WIDTH * max(len(row) for row in graph.rows) / 2
    axes.set(xlim=(-half, half), ylim=(-0.4, HEIGHT + 0.4))
    axes.set_title(graph.title, fontsize=11, pad=2)
    axes.axis("off")


def _arrow(
    axes: Axes,
    importer: tuple[float, float],
    imported: tuple[float, float],
    row_height: float,
    style: dict[str, Any],
) -> None:
    (x1, y1), (x2, y2) = importer, imported
    side = -BOX_HEIGHT / 2 if y1 > y2 else BOX_HEIGHT / 2  # leaves upwards if it points back
    start, end = (x1, y1 + side), (x2, y2 - side)
    bend = 0.45 * (end[1] - start[1])
    rows_between = abs(y1 - y2) / row_height - 1
    # Outwards, away from the boxes in between.
    bow = BOW * rows_between * (1 if x1 + x2 > 0 or (x1 == x2 == 0 and rows_between % 2) else -1)
    curve = Curve(
        [start, (x1 + bow, start[1] + bend), (x2 + bow, end[1] - bend), end],
        [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4],
    )
    axes.add_patch(FancyArrowPatch(path=curve, arrowstyle="-|>", mutation_scale=8, **style))


def _untangled(rows: list[list[str]], pairs: Mapping[Pair, object]) -> list[list[str]]:
    """The same rows with each box near the boxes that it is connected with (barycentres)."""
    rows = [list(row) for row in rows]
    for sweep in range(SWEEPS):
        place = {
            name: column - (len(row) - 1) / 2 for row in rows for column, name in enumerate(row)
        }
        order = rows if sweep % 2 else rows[::-1]
        for row in order:
            mean = {name: _mean_place(name, pairs, place) for name in row}
            row.sort(key=lambda name: mean[name])
            place.update({name: column - (len(row) - 1) / 2 for column, name in enumerate(row)})
    return rows


def _mean_place(name: str, pairs: Mapping[Pair, object], place: Mapping[str, float]) -> float:
    others = [b if a == name else a for a, b in pairs if name in (a, b)]
    return sum(place[other] for other in others) / max(1, len(others))


def _implied(pairs: set[Pair]) -> set[Pair]:
    """Pairs that a longer way along other pairs connects too."""
    below: dict[str, set[str]] = {}
    for upper, lower in pairs:
        below.setdefault(upper, set()).add(lower)

    def reach(start: str) -> set[str]:
        seen: set[str] = set()
        frontier = set(below.get(start, ()))
        while frontier:
            seen |= frontier
            frontier = {name for one in frontier for name in below.get(one, ())} - seen
        return seen

    return {
        (upper, lower)
        for upper, lower in pairs
        if any(lower in reach(other) for other in below[upper] - {lower, upper})
    }


def _forbidden(pairs: Mapping[Pair, list[Edge]], bad: set[str]) -> frozenset[Pair]:
    return frozenset(pair for pair, edges in pairs.items() if {str(edge) for edge in edges} & bad)


def _note(folder: Path) -> str:
    paths = modules_in(folder)
    return f"{len(paths)} modules, {sum(map(line_count, paths)):,} lines"


def description(graphs: list[Graph]) -> str:
    """The arrows as text: kept inside the drawing, so that a test can tell whether it is old."""
    arrows = {f"{upper} > {lower}" for graph in graphs for upper, lower in graph.pairs}
    return "; ".join(sorted(arrows))


def present_graphs() -> list[Graph]:
    """The graphs of the sources as they are now."""
    edges = import_edges(all_modules())
    bad = {entry.rpartition(": ")[0] for entry in law.broken_laws(edges, package_folders())}
    return [package_graph(edges, bad), training_graph(edges, bad)]


def main() -> int:
    """Draw both graphs into one file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=DRAWING, help="SVG or PNG")
    options = parser.parse_args()
    mpl.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "equi", "font.family": "sans-serif"}
    )
    graphs = present_graphs()
    figure = Figure(figsize=(13, 7.2), layout="constrained")
    widths = [max(len(row) for row in graph.rows) for graph in graphs]
    for graph, axes in zip(graphs, figure.subplots(1, 2, width_ratios=widths), strict=True):
        draw(graph, axes)
    metadata = {"Date": None, "Description": description(graphs)}
    is_svg = options.output.suffix == ".svg"
    figure.savefig(options.output, dpi=110, metadata=metadata if is_svg else None)
    sys.stdout.write(f"{options.output}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
