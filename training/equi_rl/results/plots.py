# SPDX-License-Identifier: MIT
"""Figures of success over environment steps, alike in every report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def success_figure(panels: int, per_row: int, size: tuple[float, float]) -> tuple[Any, list[Axes]]:
    """A figure with a panel each, `size` inches, at most `per_row` in a row."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = min(panels, per_row)
    rows = -(-panels // per_row)
    figure, grid = pyplot.subplots(
        rows,
        columns,
        figsize=(size[0] * columns + 0.4, size[1] * rows),
        squeeze=False,
        sharey=True,
    )
    axes = list(grid.flat)
    for axis in axes[panels:]:
        axis.set_axis_off()
    for row in grid:
        row[0].set_ylabel("success, greedy evaluation", fontsize=7)
    return figure, axes[:panels]


def plot_success(
    axis: Axes, steps: np.ndarray, success: np.ndarray, colour: str, label: str, marker: str = ""
) -> None:
    """Mean and one standard deviation over seeds.

    Args:
        axis: panel.
        steps: (points,) in the unit of the axis.
        success: (seeds, points).
        colour: of line and band.
        label: in the legend; the number of seeds is added.
        marker: of the points; none by default.
    """
    mean, deviation = success.mean(axis=0), success.std(axis=0)
    label = f"{label} ({len(success)} {'seed' if len(success) == 1 else 'seeds'})"
    axis.plot(steps, mean, color=colour, label=label, linewidth=1.6, marker=marker)
    low, high = np.clip(mean - deviation, 0, 1), np.clip(mean + deviation, 0, 1)
    axis.fill_between(steps, low, high, color=colour, alpha=0.18, linewidth=0)
    axis.set_ylim(-0.02, 1.02)
    axis.grid(alpha=0.3)
    axis.tick_params(labelsize=7)


def save_figure(figure: Any, path: Path, bottom: float = 0.0, title: str = "") -> None:
    """Write a PNG, titled; `bottom` is the share of the height that stays free below the panels."""
    from matplotlib import pyplot

    if title:
        figure.suptitle(title, fontsize=11)
    figure.tight_layout(rect=(0, bottom, 1, 1))
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
