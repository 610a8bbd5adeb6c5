# SPDX-License-Identifier: MIT
"""Specification of the observation: where things are drawn, and that it turns with the world."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equi_core.contract import ImageSpec
from equi_core.observation.image import (
    ObservationError,
    compose_observation,
    finger_mask,
    heights_from_points,
    pixel_centres_m,
)

IMAGE = ImageSpec()
TCP = np.array([0.5, 0.0, 0.2])
FLAT = np.zeros((84, 84), dtype=np.float32)


def quarter_turn(xy_m: np.ndarray, turns: int) -> np.ndarray:
    """Positions (..., 2) turned counter-clockwise about the TCP; exact in floating point."""
    relative = xy_m - TCP[:2]
    for _ in range(turns % 4):
        relative = np.stack([-relative[..., 1], relative[..., 0]], axis=-1)
    return relative + TCP[:2]


def test_depth_counts_from_the_virtual_camera_to_the_surface():
    heights = FLAT.copy()
    heights[10:20, 30:40] = 0.05
    observation = compose_observation(heights, TCP, 0.0, 1.0, False, IMAGE)
    assert observation.shape == (2, 84, 84)
    assert observation.dtype == np.float32
    assert observation[0, 0, 0] == pytest.approx(0.26)
    assert observation[0, 15, 35] == pytest.approx(0.21)


def test_a_surface_above_the_camera_has_depth_zero():
    observation = compose_observation(FLAT + 1.0, TCP, 0.0, 1.0, False, IMAGE)
    assert np.all(observation[0] == 0.0)


@pytest.mark.parametrize("holding", [False, True])
def test_the_second_channel_is_the_holding_flag(holding):
    observation = compose_observation(FLAT, TCP, 0.0, 1.0, holding, IMAGE)
    assert np.all(observation[1] == float(holding))


def test_a_point_lands_on_the_pixel_that_covers_it():
    centres = pixel_centres_m(IMAGE)
    point = [TCP[0] + centres[70], TCP[1] + centres[5], 0.03]
    heights = heights_from_points([point], TCP, IMAGE)
    assert heights[70, 5] == np.float32(0.03)
    assert np.count_nonzero(np.isfinite(heights)) == 1


def test_rows_grow_with_x_and_columns_with_y():
    ahead = heights_from_points([[0.6, 0.0, 0.1]], TCP, IMAGE)
    left = heights_from_points([[0.5, 0.1, 0.1]], TCP, IMAGE)
    assert np.argwhere(np.isfinite(ahead))[0][0] > 42
    assert np.argwhere(np.isfinite(left))[0][1] > 42


def test_the_highest_point_over_a_pixel_wins():
    points = [[0.5001, 0.0001, z] for z in (0.01, 0.07, 0.02)]
    assert np.nanmax(heights_from_points(points, TCP, IMAGE)) == np.float32(0.07)


def test_points_outside_the_view_and_invalid_points_are_ignored():
    points = [
        [0.5, 0.3, 0.1],
        [1e30, -1e30, 0.1],
        [np.nan, 0.0, 0.1],
        [0.5, 0.0, np.nan],
        [np.inf, 0.0, 0.1],
    ]
    assert np.all(np.isnan(heights_from_points(points, TCP, IMAGE)))
    assert np.all(np.isnan(heights_from_points(np.empty((0, 3)), TCP, IMAGE)))


@pytest.mark.parametrize("opening", [0.0, 0.3, 1.0])
def test_fingers_are_drawn_where_the_fingers_are(opening):
    # Independent expectation: the centroid of one finger lies half a gap plus half a thickness out.
    fine = ImageSpec(size_px=840)
    mask = finger_mask(0.0, opening, fine)
    x, y = np.meshgrid(pixel_centres_m(fine), pixel_centres_m(fine), indexing="ij")
    one = mask & (x > 0)
    expected_m = opening * fine.max_opening_m / 2 + fine.finger_thickness_m / 2
    assert x[one].mean() == pytest.approx(expected_m, abs=fine.pixel_m)
    assert y[one].mean() == pytest.approx(0.0, abs=1e-9)
    area_m2 = np.count_nonzero(one) * fine.pixel_m**2
    assert area_m2 == pytest.approx(fine.finger_width_m * fine.finger_thickness_m, rel=0.1)


def test_fingers_turn_with_the_yaw_and_the_image_does_not():
    along_x = finger_mask(0.0, 1.0, IMAGE)
    along_y = finger_mask(math.pi / 2, 1.0, IMAGE)
    np.testing.assert_array_equal(along_y, np.rot90(along_x, 1))
    np.testing.assert_array_equal(finger_mask(math.pi, 1.0, IMAGE), along_x)


@given(
    turns=st.integers(1, 3),
    yaw=st.floats(-math.pi, math.pi),
    opening=st.floats(0.0, 1.0),
    goal=st.tuples(st.floats(-0.25, 0.25), st.floats(-0.25, 0.25)),
    seed=st.integers(0, 1000),
)
def test_turning_the_world_turns_the_observation(turns, yaw, opening, goal, seed):
    rng = np.random.default_rng(seed)
    heights = rng.uniform(0, 0.1, size=(84, 84)).astype(np.float32)
    goal_m = TCP[:2] + np.round(goal, 3)
    still = compose_observation(heights, TCP, yaw, opening, True, IMAGE, goal_m)
    turned = compose_observation(
        np.rot90(heights, turns),
        TCP,
        yaw + turns * math.pi / 2,
        opening,
        True,
        IMAGE,
        quarter_turn(goal_m, turns),
    )
    different = np.count_nonzero(np.rot90(still, turns, axes=(-2, -1)) != turned)
    # An edge that passes within rounding of a pixel centre may fall to either side.
    assert different <= 4


def test_turning_points_turns_their_height_map():
    rng = np.random.default_rng(1)
    # Pixel centres, so that no point sits on a border between two pixels.
    index = rng.integers(0, 84, size=(500, 2))
    points = np.column_stack(
        [TCP[:2] + pixel_centres_m(IMAGE)[index], rng.uniform(0, 0.2, size=500)]
    )
    turned = np.column_stack([quarter_turn(points[:, :2], 1), points[:, 2]])
    np.testing.assert_array_equal(
        np.rot90(heights_from_points(points, TCP, IMAGE), 1),
        heights_from_points(turned, TCP, IMAGE),
    )


def test_the_goal_pad_is_a_shallow_pit_where_the_goal_is():
    with_pad = compose_observation(FLAT, TCP, 0.0, 1.0, False, IMAGE, (0.6, 0.1))
    without = compose_observation(FLAT, TCP, 0.0, 1.0, False, IMAGE)
    pit = with_pad[0] - without[0]
    rows, columns = np.nonzero(pit > 0)
    np.testing.assert_allclose(pit[rows, columns], 0.02, atol=1e-6)
    centres = pixel_centres_m(IMAGE)
    assert centres[rows].mean() == pytest.approx(0.1, abs=IMAGE.pixel_m)
    assert centres[columns].mean() == pytest.approx(0.1, abs=IMAGE.pixel_m)
    assert np.ptp(centres[rows]) + IMAGE.pixel_m == pytest.approx(0.09, abs=IMAGE.pixel_m)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"height_m": np.zeros((3, 3))}, "shape"),
        ({"height_m": FLAT * np.nan}, "holes"),
        ({"tcp_position_m": (0.5, 0.0)}, "TCP"),
        ({"tcp_position_m": (0.5, 0.0, np.inf)}, "TCP"),
        ({"yaw_rad": np.nan}, "yaw"),
        ({"goal_xy_m": (np.nan, 0.0)}, "goal"),
    ],
)
def test_inputs_without_meaning_are_refused_by_name(change, word):
    arguments = {
        "height_m": FLAT,
        "tcp_position_m": TCP,
        "yaw_rad": 0.0,
        "opening": 1.0,
        "holding": False,
        "image": IMAGE,
    }
    with pytest.raises(ObservationError, match=word):
        compose_observation(**{**arguments, **change})
