# SPDX-License-Identifier: MIT
"""Specification of cloud fusion: the compiled pass agrees with the plain one, drops the robot."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equi_core import geometry as geo
from equi_core.contract import ImageSpec
from equi_core.observation.image import ObservationError, heights_from_points, pixel_centres_m
from equi_core.observation.projection import CameraCloud, fuse_clouds

HEIGHTS_M = (-0.02, 0.45)
IMAGE = ImageSpec()
TCP = np.array([0.5, 0.0, 0.2])
FROM_THE_LEFT = geo.pose_matrix([0.5, 0.8, 0.6], geo.rotvec_to_matrix([2.2, 0.1, 0.2]))
FROM_THE_RIGHT = geo.pose_matrix([0.5, -0.8, 0.6], geo.rotvec_to_matrix([-2.2, 0.1, 0.2]))


def seen_by(base_from_camera, points_base_m) -> CameraCloud:
    points = geo.transform_points(geo.invert(base_from_camera), points_base_m)
    return CameraCloud(points.astype(np.float32), base_from_camera)


def at_pixel_centres(rng, count) -> np.ndarray:
    """Points over pixel centres: rounding to float32 cannot move them to the next pixel."""
    index = rng.integers(0, IMAGE.size_px, size=(count, 2))
    return np.column_stack(
        [TCP[:2] + pixel_centres_m(IMAGE)[index], rng.uniform(0, 0.2, size=count)]
    )


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_two_clouds_give_the_heights_of_all_their_points(seed):
    rng = np.random.default_rng(seed)
    left, right = at_pixel_centres(rng, 300), at_pixel_centres(rng, 200)
    fused = fuse_clouds(
        [seen_by(FROM_THE_LEFT, left), seen_by(FROM_THE_RIGHT, right)],
        TCP,
        IMAGE,
        height_range_m=HEIGHTS_M,
    )
    expected = heights_from_points(np.concatenate([left, right]), TCP, IMAGE)
    np.testing.assert_allclose(fused.height_m, expected, atol=1e-6)
    assert fused.points_in_view == (300, 200)


def test_padding_columns_are_ignored():
    points = at_pixel_centres(np.random.default_rng(0), 100)
    plain = seen_by(FROM_THE_LEFT, points)
    padded = CameraCloud(
        np.column_stack([plain.points_m, np.full((100, 2), np.nan, dtype=np.float32)]),
        FROM_THE_LEFT,
    )
    np.testing.assert_array_equal(
        fuse_clouds([padded], TCP, IMAGE, height_range_m=HEIGHTS_M).height_m,
        fuse_clouds([plain], TCP, IMAGE, height_range_m=HEIGHTS_M).height_m,
    )


@pytest.mark.parametrize(
    "invalid", [(np.nan, 0, 1), (0, np.nan, 1), (0, 0, np.nan), (0, 0, 0), (np.inf, 0, 1)]
)
def test_invalid_points_are_ignored(invalid):
    # A camera that looks straight at the view's centre, so that a slip would leave a mark.
    base_from_camera = geo.top_down_pose([0.5, 0.0, 0.3], 0.0)
    cloud = CameraCloud(np.array([invalid], dtype=np.float32), base_from_camera)
    fused = fuse_clouds([cloud], TCP, IMAGE, height_range_m=HEIGHTS_M)
    assert np.all(np.isnan(fused.height_m))
    assert fused.points_in_view == (0,)


def test_points_on_the_robot_are_dropped_and_counted():
    on_finger, on_table = [0.5, 0.0, 0.15], [0.6, 0.1, 0.0]
    capsule = [[0.5, 0.0, 0.1, 0.5, 0.0, 0.4, 0.03]]
    fused = fuse_clouds(
        [seen_by(FROM_THE_LEFT, [on_finger, on_table])],
        TCP,
        IMAGE,
        robot_capsules_m=capsule,
        height_range_m=HEIGHTS_M,
    )
    assert (fused.points_in_view, fused.points_on_robot) == ((1,), (1,))
    assert np.nanmax(fused.height_m) == pytest.approx(0.0, abs=1e-6)


@given(
    st.tuples(*[st.floats(-0.2, 0.2)] * 3),
    st.tuples(*[st.floats(-0.2, 0.2)] * 3),
    st.floats(0.01, 0.1),
    st.tuples(*[st.floats(-0.19, 0.19)] * 3),
)
@settings(max_examples=200, deadline=None)
def test_a_capsule_is_all_that_lies_within_its_radius_of_its_axis(start, end, radius, offset):
    centre = TCP
    a, b, p = (centre + np.round(v, 4) for v in (start, end, offset))
    fractions = np.linspace(0, 1, 4001)[:, None]
    distance = np.linalg.norm(a + fractions * (b - a) - p, axis=1).min()
    if abs(distance - radius) < 1e-3:
        return  # too close to the surface for sampling to tell
    fused = fuse_clouds(
        [seen_by(FROM_THE_LEFT, [p])],
        TCP,
        IMAGE,
        robot_capsules_m=[[*a, *b, radius]],
        height_range_m=(-1, 1),
    )
    assert fused.points_on_robot == (int(distance < radius),)


@given(st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_a_box_is_all_that_lies_within_its_half_extents(seed):
    rng = np.random.default_rng(seed)
    rotation = geo.rotvec_to_matrix(rng.normal(size=3))
    centre, half = TCP + rng.uniform(-0.05, 0.05, 3), rng.uniform(0.01, 0.1, 3)
    point = TCP + rng.uniform(-0.15, 0.15, 3)
    reach = np.abs(rotation.T @ (point - centre)) - half
    if abs(reach.max()) < 1e-4:
        return  # too close to the surface for single precision
    fused = fuse_clouds(
        [seen_by(FROM_THE_LEFT, [point])],
        TCP,
        IMAGE,
        robot_boxes_m=[[*centre, *half, *rotation.ravel()]],
        height_range_m=(-1, 1),
    )
    assert fused.points_on_robot == (int(reach.max() < 0),)


@pytest.mark.parametrize("offset_px", [0.0, 0.2, 0.4, 0.6, 0.8])
def test_an_object_is_as_wide_as_rays_through_the_pixels_centres_see_it(offset_px):
    """The highest point of each whole pixel would make it up to a pixel wider on both sides."""
    width_m, spacing_m = 0.05, 0.0008
    middle = TCP[:2] + offset_px * IMAGE.pixel_m
    along = np.arange(-0.06, 0.06, spacing_m)
    across, down = np.meshgrid(along, along, indexing="ij")
    on_block = np.maximum(np.abs(across), np.abs(down)) <= width_m / 2
    points = np.column_stack(
        [middle[0] + across.ravel(), middle[1] + down.ravel(), 0.05 * on_block.ravel()]
    )
    fused = fuse_clouds([seen_by(FROM_THE_LEFT, points)], TCP, IMAGE, height_range_m=HEIGHTS_M)

    centres_m = pixel_centres_m(IMAGE) + TCP[0] - middle[0]
    hit = np.abs(centres_m) <= width_m / 2
    seen = (fused.height_m > 0.025).any(axis=0), (fused.height_m > 0.025).any(axis=1)
    assert abs(int(seen[0].sum()) - int(hit.sum())) <= 1
    assert abs(int(seen[1].sum()) - int(hit.sum())) <= 1
    widths = [int(axis.sum()) * IMAGE.pixel_m for axis in seen]
    assert max(widths) - width_m < 0.8 * IMAGE.pixel_m


def test_where_no_point_is_near_a_centre_the_pixel_takes_any():
    corner_m = TCP + 0.45 * IMAGE.pixel_m * np.array([1.0, 1.0, 0.0])
    corner_m[:2] += pixel_centres_m(IMAGE)[10]
    corner_m[2] = 0.03
    fused = fuse_clouds(
        [seen_by(FROM_THE_LEFT, corner_m[None])], TCP, IMAGE, height_range_m=HEIGHTS_M
    )
    assert fused.height_m[10, 10] == pytest.approx(0.03, abs=1e-6)
    assert np.isfinite(fused.height_m).sum() == 1


def test_heights_outside_the_plausible_range_are_dropped():
    fused = fuse_clouds(
        [seen_by(FROM_THE_LEFT, [[0.5, 0, -0.3], [0.5, 0, 0.9]])],
        TCP,
        IMAGE,
        height_range_m=HEIGHTS_M,
    )
    assert fused.points_in_view == (0,)


@pytest.mark.parametrize(
    ("cloud", "word"),
    [
        (CameraCloud(np.zeros((3, 3)), np.eye(4)), "float32"),
        (CameraCloud(np.zeros((3, 2), dtype=np.float32), np.eye(4)), "shape"),
        (CameraCloud(np.zeros((3, 3), dtype=np.float32), np.eye(3)), "pose"),
        (CameraCloud(np.zeros((3, 3), dtype=np.float32), np.full((4, 4), np.nan)), "pose"),
    ],
)
def test_a_cloud_of_the_wrong_form_is_refused(cloud, word):
    with pytest.raises(ObservationError, match=word):
        fuse_clouds([cloud], TCP, IMAGE, height_range_m=HEIGHTS_M)
