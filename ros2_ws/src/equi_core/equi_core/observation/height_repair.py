# SPDX-License-Identifier: MIT
"""Repair of a fused height map: take out lone spikes, fill what no camera saw. Compiled.

Depth cameras put stray points between an object's edge and the background ("flying pixels"), often
high above the table; seen from above they are lone pixels without a surface around them. What is
hidden from every camera stays unseen until it is filled from its border.
"""

from __future__ import annotations

import numba
import numpy as np

from equi_core.observation.image import FloatImage, ObservationError

_BORDER_SHARE = 0.10
"""A hole takes this quantile of the heights on its border: low, but not the lowest outlier."""


def drop_spikes(height_m: FloatImage, step_m: float = 0.012, support: int = 3) -> FloatImage:
    """Remove isolated heights.

    Args:
        height_m: heights (S, S) [m]; NaN where unseen.
        step_m: a neighbour belongs to the same surface if it is not lower by more than this [m].
        support: neighbours (of eight) that must belong to it; fewer at the image's border.

    Returns:
        The heights with NaN in place of every unsupported one.
    """
    kept = np.empty_like(height_m)
    _drop_spikes(height_m, np.float32(step_m), support, kept)
    return kept


def fill_holes(height_m: FloatImage) -> FloatImage:
    """Replace every connected unseen region by a low height of its border.

    What hides behind an object is most likely the surface the object stands on, not the object, so
    a hole takes a low quantile of the heights around it. A map without any seen pixel cannot be
    filled and is refused.
    """
    if np.isnan(height_m).all():
        raise ObservationError("no pixel of the height map was seen; check the cameras' poses")
    filled = height_m.copy()
    _fill_holes(height_m, _BORDER_SHARE, filled)
    return filled


@numba.njit(cache=True, nogil=True)
def _drop_spikes(height_m, step_m, support, kept):  # type: ignore[no-untyped-def]
    rows, columns = height_m.shape
    for row in range(rows):
        for column in range(columns):
            height = height_m[row, column]
            kept[row, column] = height
            if np.isnan(height):
                continue
            inside, alike = 0, 0
            for dr in range(-1, 2):
                for dc in range(-1, 2):
                    r, c = row + dr, column + dc
                    if (dr == 0 and dc == 0) or not (0 <= r < rows and 0 <= c < columns):
                        continue
                    inside += 1
                    if height_m[r, c] >= height - step_m:
                        alike += 1
            if alike * 8 < support * inside:
                kept[row, column] = np.nan


@numba.njit(cache=True, nogil=True)
def _fill_holes(height_m, share, filled):  # type: ignore[no-untyped-def]
    """Flood each hole (8-connected), gather its border, write the quantile of the border."""
    rows, columns = height_m.shape
    visited = np.zeros((rows, columns), dtype=np.uint8)
    on_border = np.zeros((rows, columns), dtype=np.int32)
    stack = np.empty(rows * columns, dtype=np.int32)
    hole = np.empty(rows * columns, dtype=np.int32)
    border = np.empty(rows * columns, dtype=np.float32)
    label = 0
    for first in range(rows * columns):
        if visited[first // columns, first % columns] or not np.isnan(
            height_m[first // columns, first % columns]
        ):
            continue
        label += 1
        depth, hole_size, border_size = 1, 0, 0
        stack[0] = first
        visited[first // columns, first % columns] = 1
        while depth > 0:
            depth -= 1
            cell = stack[depth]
            hole[hole_size] = cell
            hole_size += 1
            row, column = cell // columns, cell % columns
            for r in range(max(row - 1, 0), min(row + 2, rows)):
                for c in range(max(column - 1, 0), min(column + 2, columns)):
                    if np.isnan(height_m[r, c]):
                        if not visited[r, c]:
                            visited[r, c] = 1
                            stack[depth] = r * columns + c
                            depth += 1
                    elif on_border[r, c] != label:
                        on_border[r, c] = label
                        border[border_size] = height_m[r, c]
                        border_size += 1
        value = _quantile(border[:border_size], share)
        for k in range(hole_size):
            filled[hole[k] // columns, hole[k] % columns] = value


@numba.njit(cache=True, nogil=True)
def _quantile(values, share):  # type: ignore[no-untyped-def]
    """Linear interpolation between the two nearest ranks."""
    ordered = np.sort(values)
    position = share * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])
