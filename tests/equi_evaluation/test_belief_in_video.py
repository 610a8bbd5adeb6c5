# SPDX-License-Identifier: MIT
"""What the policy believed is drawn where the objects are, and turns with the scene."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from equi_evaluation.episode_video import _beliefs, draw_beliefs

SIZE, VIEW_M = 400, 0.4


def ring(place_m: tuple[float, float]) -> tuple[float, float]:
    """Middle (row, column) of what is drawn for an object, without its text."""
    blank = np.full((SIZE, SIZE, 3), 255, dtype=np.uint8)
    drawn = draw_beliefs(blank.copy(), [(*place_m, 1.0)], VIEW_M)
    row = int(SIZE * (0.5 + place_m[0] / VIEW_M))
    column = int(SIZE * (0.5 + place_m[1] / VIEW_M))
    reach = SIZE // 14 + 3
    window = drawn[row - reach : row + reach + 1, column - reach : column + reach + 1]
    rows, columns = np.nonzero((window != 255).any(axis=2))
    below = rows > reach  # the text stands above
    return row - reach + float(rows[below].max()), column - reach + float(columns[below].mean())


def test_rows_grow_with_x_and_columns_with_y() -> None:
    bottom, column = ring((0.1, -0.05))
    assert abs(bottom - (300 + SIZE // 14)) <= 2
    assert abs(column - 150) <= 2


def test_a_turned_scene_has_its_rings_turned() -> None:
    x, y = 0.1, -0.05
    bottom, column = ring((x, y))
    turned_bottom, turned_column = ring((-y, x))  # counter-clockwise by a quarter
    assert abs((turned_bottom - SIZE // 14) - (SIZE * (0.5 + 0.05 / VIEW_M))) <= 2
    assert abs(turned_column - (bottom - SIZE // 14)) <= 3
    assert abs(column - 150) <= 2


def marker(x: float, y: float, text: str, second: int) -> Any:
    stamp = SimpleNamespace(sec=second, nanosec=0)
    position = SimpleNamespace(x=x, y=y)
    return SimpleNamespace(
        header=SimpleNamespace(stamp=stamp), pose=SimpleNamespace(position=position), text=text
    )


def test_recorded_markers_belong_to_the_step_of_their_observation() -> None:
    gripper_at = {(7, 0): (3, 0.5, 0.1)}
    message = SimpleNamespace(
        markers=[
            marker(0.0, 0.0, "", 7),  # deletes the markers before
            marker(0.6, 0.0, "0.92", 7),
            marker(0.4, 0.2, "0.08", 7),
            marker(0.4, 0.2, "0.50", 99),  # of no recorded observation
        ]
    )
    found = _beliefs([message], gripper_at)
    assert list(found) == [3]
    np.testing.assert_allclose(found[3], [(0.1, -0.1, 0.92), (-0.1, 0.1, 0.08)], atol=1e-12)


def test_the_text_stays_in_the_picture_for_an_object_at_its_edge() -> None:
    whole = _text_pixels((0.0, 0.0))
    for place_m in ((0.25, 0.0), (-0.25, 0.0), (0.0, 0.25), (0.0, -0.27)):
        assert _text_pixels(place_m) >= whole


def _text_pixels(place_m: tuple[float, float]) -> int:
    """Pixels of the text's black outline."""
    blank = np.full((SIZE, SIZE, 3), 255, dtype=np.uint8)
    drawn = draw_beliefs(blank, [(*place_m, 1.0)], VIEW_M)
    return int((drawn < 30).all(axis=2).sum())
