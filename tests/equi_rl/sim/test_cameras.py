# SPDX-License-Identifier: MIT
"""Side cameras: depth is geometry, segmentation names bodies, the robot is in view."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from equi_core.geometry import transform_points
from equi_rl.sim.cameras import (
    GOAL_BODY,
    NOTHING,
    TABLE_BODY,
    PinholeCamera,
    render,
    render_rgb,
    side_view_camera,
)
from equi_rl.sim.scene import ObjectKind, Scene, SceneObject
from equi_rl.sim.world import World


@pytest.fixture(scope="module")
def world():
    world = World()
    blocks = tuple(
        SceneObject(ObjectKind.BLOCK, (x, y, 0.025), 0.3, movable)
        for x, y, movable in ((0.45, 0.1, True), (0.58, -0.08, False))
    )
    world.reset(Scene(objects=blocks, goal_xy_m=(0.4, -0.1)))
    yield world
    world.close()


CAMERA = PinholeCamera.looking_at((1.1, 0.5, 0.7), (0.45, 0.0, 0.1), (320, 240), 1.2)


def test_every_body_of_the_scene_is_seen(world):
    image = render(world, CAMERA)
    assert set(np.unique(image.segmentation)) == {NOTHING, GOAL_BODY, TABLE_BODY, 0, 1, 2}
    assert image.colour.shape == (240, 320, 3)
    assert np.all(np.isinf(image.depth_m) == (image.segmentation == NOTHING))


def test_points_lifted_from_depth_lie_on_what_they_show(world):
    image = render(world, CAMERA)
    rows, columns = np.nonzero(np.isfinite(image.depth_m))
    depth = image.depth_m[rows, columns].astype(np.float64)
    points = np.stack(
        [
            (columns - CAMERA.cx_px) / CAMERA.fx_px * depth,
            (rows - CAMERA.cy_px) / CAMERA.fy_px * depth,
            depth,
        ],
        axis=-1,
    )
    points = transform_points(CAMERA.base_from_optical, points)
    body = image.segmentation[rows, columns]
    on_top = (body == 1) & (points[:, 2] > 0.0499)
    assert np.count_nonzero(on_top) > 50
    assert_allclose(points[on_top][:, :2].mean(axis=0), (0.45, 0.1), atol=0.01)
    assert points[body == 1][:, 2].max() == pytest.approx(0.05, abs=1e-6)
    table = points[body == TABLE_BODY][:, 2]
    assert np.mean(np.abs(table) < 1e-3) > 0.95  # the rest is the table's edge


def test_both_blocks_have_the_same_colour(world):
    image = render(world, CAMERA)
    first, second = (image.colour[image.segmentation == body] for body in (1, 2))
    assert {tuple(c) for c in first} == {tuple(c) for c in second}


def test_a_scaled_camera_sees_the_same_view():
    camera = side_view_camera((120, 90))
    fine = camera.scaled(3)
    # The centre of a coarse pixel is the centre of its middle fine pixel.
    assert (3 * 40 + 1 - fine.cx_px) / fine.fx_px == pytest.approx(
        (40 - camera.cx_px) / camera.fx_px
    )


def test_a_image_has_the_camera_s_size(world):
    assert render_rgb(world, side_view_camera((120, 90))).shape == (90, 120, 3)


def test_a_camera_cannot_look_straight_down():
    with pytest.raises(ValueError, match="straight"):
        PinholeCamera.looking_at((0.5, 0.0, 1.0), (0.5, 0.0, 0.0), (10, 10), 1.0)
