# SPDX-License-Identifier: MIT
"""Specification of height repair: holes become their surroundings, lone spikes disappear."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from equi_core.observation.height_repair import drop_spikes, fill_holes
from equi_core.observation.image import ObservationError


def table() -> np.ndarray:
    return np.zeros((84, 84), dtype=np.float32)


def block(heights: np.ndarray) -> np.ndarray:
    heights[30:40, 30:40] = 0.05
    return heights


def test_a_hole_behind_an_object_becomes_table_not_object():
    heights = np.zeros((84, 84), dtype=np.float32)
    heights[30:40, 30:40] = 0.05
    heights[40:46, 30:40] = np.nan  # the shadow
    filled = fill_holes(heights)
    np.testing.assert_array_equal(filled[40:46, 30:40], 0.0)
    np.testing.assert_array_equal(filled[30:40, 30:40], np.float32(0.05))


def test_a_hole_inside_a_top_face_becomes_that_face():
    heights = np.zeros((84, 84), dtype=np.float32)
    heights[30:40, 30:40] = 0.05
    heights[34:36, 34:36] = np.nan
    assert np.all(fill_holes(heights)[30:40, 30:40] == np.float32(0.05))


def test_a_map_that_nobody_saw_is_refused():
    with pytest.raises(ObservationError, match="seen"):
        fill_holes(np.full((84, 84), np.nan, dtype=np.float32))


@given(st.integers(0, 10_000), st.floats(0.01, 0.7))
@settings(max_examples=30, deadline=None)
def test_every_hole_takes_the_low_decile_of_its_border(seed, hole_share):
    rng = np.random.default_rng(seed)
    heights = rng.uniform(0, 0.1, (20, 20)).astype(np.float32)
    heights[rng.uniform(size=(20, 20)) < hole_share] = np.nan
    heights[0, 0] = 0.0
    filled = fill_holes(heights)
    # The same by scipy's labelling and numpy's percentile.
    labels, count = ndimage.label(np.isnan(heights), structure=np.ones((3, 3)))
    expected = heights.copy()
    for label in range(1, count + 1):
        hole = labels == label
        border = ndimage.binary_dilation(hole, structure=np.ones((3, 3))) & ~hole
        expected[hole] = np.percentile(heights[border].astype(np.float64), 10)
    np.testing.assert_allclose(filled, expected, atol=1e-6)


def test_the_map_itself_is_left_untouched():
    heights = block(table())
    heights[5, 5] = np.nan
    before = heights.copy()
    fill_holes(heights)
    drop_spikes(heights)
    np.testing.assert_array_equal(heights, before)


def test_a_flying_pixel_is_forgotten():
    heights = table()
    heights[10, 10] = 0.12
    heights[60, 61] = heights[60, 62] = 0.08
    kept = drop_spikes(heights)
    assert np.isnan(kept[10, 10])
    assert np.isnan(kept[60, 61])
    assert np.isnan(kept[60, 62])
    assert np.count_nonzero(np.isnan(kept)) == 3


def test_surfaces_keep_their_corners_and_thin_bars_stay():
    heights = block(table())
    heights[50:80, 20:22] = 0.03  # a bar two pixels wide
    np.testing.assert_array_equal(drop_spikes(heights), heights)


def test_an_object_at_the_image_border_stays():
    heights = table()
    heights[:6, :6] = 0.05
    np.testing.assert_array_equal(drop_spikes(heights), heights)


def test_noise_of_a_surface_is_no_spike():
    noisy = np.random.default_rng(0).normal(0, 0.002, (84, 84)).astype(np.float32)
    assert np.mean(np.isnan(drop_spikes(noisy))) < 0.001
