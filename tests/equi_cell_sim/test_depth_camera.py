# SPDX-License-Identifier: MIT
"""Specification of the simulated cameras: exact without noise, with it wrong as stereo is wrong."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from equi_cell_sim.camera_model import (
    CameraConfigError,
    CameraRig,
    CameraSpec,
    Miscalibration,
    NoiseSpec,
    Timing,
)
from equi_cell_sim.depth_camera import DepthCamera, points_of
from equi_core import geometry as geo
from equi_rl.sim.raycast import Kind, ShapeTable

SPEC = CameraSpec("cam_left", (0.60, 0.72, 0.62), width_px=320, height_px=240, focal_px=192.0)
CUBE = 0.05


def cube(x=0.5, y=0.0, side=CUBE) -> ShapeTable:
    return ShapeTable(
        kind=np.array([Kind.BOX], dtype=np.int64),
        size_m=np.full((1, 3), side / 2),
        rotation=np.eye(3)[None],
        position_m=np.array([[x, y, side / 2]]),
        colour=np.full((1, 3), 0.5),
        body=np.array([1], dtype=np.int64),
    )


def camera(noise: NoiseSpec, spec: CameraSpec = SPEC, seed=0) -> DepthCamera:
    return DepthCamera(spec, noise, spec.base_from_camera, seed)


def base_points(spec: CameraSpec, frame) -> np.ndarray:
    points = np.empty((frame.depth_units.size, 4), dtype=np.float32)
    count = points_of(
        frame.depth_units,
        frame.unit_m,
        spec.focal_px,
        *spec.centre_px,
        False,
        4,
        frame.colour,
        points,
    )
    return geo.transform_points(spec.base_from_camera, points[:count, :3].astype(float))


def test_the_camera_looks_at_its_target_with_level_rows():
    pose = SPEC.base_from_camera
    towards = np.array(SPEC.target_m) - SPEC.position_m
    np.testing.assert_allclose(pose[:3, 2], towards / np.linalg.norm(towards), atol=1e-12)
    assert pose[2, 0] == pytest.approx(0.0), "image rows are level"
    assert pose[2, 1] < 0, "and the image is not upside down"
    np.testing.assert_allclose(pose[:3, :3] @ pose[:3, :3].T, np.eye(3), atol=1e-12)


def test_without_errors_every_point_lies_on_table_or_cube():
    frame = camera(NoiseSpec.ideal()).capture(cube())
    points = base_points(SPEC, frame)
    inside = np.abs(points[:, :2] - [0.5, 0.0]).max(axis=1) < CUBE / 2 + 1e-3
    np.testing.assert_allclose(points[~inside, 2], 0.0, atol=2e-4)
    assert points[inside, 2].max() == pytest.approx(CUBE, abs=2e-4)
    assert np.count_nonzero(np.abs(points[inside, 2] - CUBE) < 3e-4) > 50


def test_noise_grows_with_the_square_of_the_distance():
    noise = dataclasses.replace(NoiseSpec.ideal(), subpixel_px=0.08)
    exact = camera(NoiseSpec.ideal()).capture(ShapeTable.empty()).depth_units * 1e-4
    noisy_camera = camera(noise)
    error = []
    for _ in range(20):
        noisy = noisy_camera.capture(ShapeTable.empty()).depth_units * 1e-4
        error.append(noisy - exact)
    seen = exact > 0
    for low, high in ((0.6, 0.7), (1.0, 1.1)):
        band = seen & (exact > low) & (exact < high)
        z = float(exact[band].mean())
        expected = z**2 * 0.08 / (SPEC.focal_px * SPEC.baseline_m)
        assert np.std(np.array(error)[:, band]) == pytest.approx(expected, rel=0.15)


def test_what_the_second_imager_cannot_see_is_missing():
    noise = dataclasses.replace(NoiseSpec.ideal(), stereo_shadow=True)
    whole = camera(NoiseSpec.ideal()).capture(cube(side=0.2)).depth_units > 0
    seen = camera(noise).capture(cube(side=0.2)).depth_units > 0
    missing = whole & ~seen
    # A band at the left border as wide as the disparity there, ...
    row = SPEC.height_px // 2
    depth = camera(NoiseSpec.ideal()).capture(cube(side=0.2)).depth_units[row] * 1e-4
    disparity = SPEC.focal_px * SPEC.baseline_m / depth[depth > 0].max()
    first = np.flatnonzero(whole[row])[0]
    assert np.all(missing[row, first : max(first, int(disparity) - 1)])
    # ... and a shadow left of the cube's edge, never right of it.
    with_cube = camera(NoiseSpec.ideal()).capture(cube(side=0.2)).depth_units
    without = camera(NoiseSpec.ideal()).capture(ShapeTable.empty()).depth_units
    on_cube = np.flatnonzero(with_cube[row] != without[row])
    assert missing[row, on_cube[0] - 3 : on_cube[0]].all()
    assert not missing[row, on_cube[-1] + 1 : on_cube[-1] + 6].any()


def test_edges_lose_and_mix_pixels():
    noise = dataclasses.replace(NoiseSpec.ideal(), edge_missing=0.5, edge_mixed=0.3)
    frame = camera(noise).capture(cube(side=0.15))
    exact = camera(NoiseSpec.ideal()).capture(cube(side=0.15))
    lost = (exact.depth_units > 0) & (frame.depth_units == 0)
    changed = (frame.depth_units > 0) & (
        np.abs(frame.depth_units.astype(int) - exact.depth_units) > 20
    )
    assert lost.sum() > 50
    assert changed.sum() > 10
    # Far from edges nothing is lost: the middle of the bare table.
    assert not lost[200:, 100:140].any()


def test_the_same_seed_gives_the_same_frames_and_another_does_not():
    def shoot(seed):
        return camera(NoiseSpec(), seed=seed).capture(cube()).depth_units

    np.testing.assert_array_equal(shoot(1), shoot(1))
    assert (shoot(1) != shoot(2)).any()


def test_ordered_clouds_mark_missing_points_by_zeros_and_keep_their_grid():
    frame = camera(NoiseSpec()).capture(cube())
    points = np.full((SPEC.width_px * SPEC.height_px, 5), 7.0, dtype=np.float32)
    count = points_of(
        frame.depth_units,
        frame.unit_m,
        SPEC.focal_px,
        *SPEC.centre_px,
        True,
        5,
        frame.colour,
        points,
    )
    assert count == SPEC.width_px * SPEC.height_px
    missing = frame.depth_units.ravel() == 0
    assert missing.any()
    np.testing.assert_array_equal(points[missing, :3], 0.0)
    colour = points.view(np.uint32)[~missing, 4]
    np.testing.assert_array_equal((colour >> 16) & 0xFF, frame.colour.reshape(-1, 3)[~missing, 0])


def test_miscalibration_has_its_size_and_is_repeatable():
    nominal = SPEC.base_from_camera
    moved = Miscalibration(position_mm=5.0, rotation_deg=0.5, seed=3).true_pose(nominal, "cam_left")
    assert np.linalg.norm(moved[:3, 3] - nominal[:3, 3]) == pytest.approx(0.005)
    turn = geo.matrix_to_rotvec(moved[:3, :3] @ nominal[:3, :3].T)
    assert np.degrees(np.linalg.norm(turn)) == pytest.approx(0.5)
    again = Miscalibration(5.0, 0.5, 3).true_pose(nominal, "cam_left")
    np.testing.assert_array_equal(moved, again)
    other = Miscalibration(5.0, 0.5, 3).true_pose(nominal, "cam_right")
    assert not np.allclose(moved, other)


def test_a_rig_without_errors_stands_where_it_should():
    rig = CameraRig().without_errors()
    pose = rig.cameras[0].base_from_camera
    np.testing.assert_allclose(rig.miscalibration.true_pose(pose, "x"), pose, atol=1e-15)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: CameraSpec("", (0, 0, 1)), "name"),
        (lambda: CameraSpec("a", (0.5, 0, 1), target_m=(0.5, 0, 0)), "vertical"),
        (lambda: CameraSpec("a", (0.6, 0.7, 0.6), focal_px=0), "focal_px"),
        (lambda: CameraSpec("a", (0.6, 0.7, 0.6), min_depth_m=5.0), "min_depth_m"),
        (lambda: NoiseSpec(missing=2.0), "missing"),
        (lambda: NoiseSpec(edge_missing=0.8, edge_mixed=0.8), "exceed"),
        (lambda: Timing(rate_hz=0.0), "rate_hz"),
    ],
)
def test_an_impossible_camera_is_refused_by_name(make, word):
    with pytest.raises(CameraConfigError, match=word):
        make()
