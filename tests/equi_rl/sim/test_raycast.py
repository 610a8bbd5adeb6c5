# SPDX-License-Identifier: MIT
"""The ray caster, against geometry done by hand and PyBullet's own ray test and renderer."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.transform import Rotation

from equi_rl.sim.bullet import new_client, pybullet
from equi_rl.sim.cameras import PinholeCamera
from equi_rl.sim.raycast import Kind, ShapeTable, cast_heights, cast_pinhole

GRID = np.linspace(-0.2, 0.2, 84)


def table_of(*rows: tuple[Kind, tuple[float, ...], Rotation, tuple[float, ...]]) -> ShapeTable:
    kinds, sizes, rotations, positions = zip(*rows, strict=True)
    return ShapeTable(
        np.array(kinds, dtype=np.int64),
        np.array(sizes, dtype=np.float64),
        np.array([rotation.as_matrix() for rotation in rotations]),
        np.array(positions, dtype=np.float64),
        np.ones((len(rows), 3)),
        np.arange(len(rows), dtype=np.int64),
    )


def heights_of(table: ShapeTable) -> np.ndarray:
    heights = np.empty((len(GRID), len(GRID)))
    cast_heights(
        table.kind, table.size_m, table.rotation, table.position_m, GRID, GRID, 0.0, heights
    )
    return heights


def random_table(seed: int, count: int = 8, kinds: tuple[Kind, ...] = tuple(Kind)) -> ShapeTable:
    rng = np.random.default_rng(seed)
    rotations = Rotation.random(count, random_state=seed)
    return table_of(
        *(
            (
                kinds[int(rng.integers(len(kinds)))],
                tuple(rng.uniform(0.02, 0.05, 3)),
                rotations[i],
                tuple(rng.uniform((-0.18, -0.18, 0.05), (0.18, 0.18, 0.2))),
            )
            for i in range(count)
        )
    )


def bullet_shape(client, kind: Kind, size: np.ndarray, visual: bool) -> int:
    create = client.createVisualShape if visual else client.createCollisionShape
    length = {"length": 2 * size[1]} if visual else {"height": 2 * size[1]}
    if kind is Kind.BOX:
        return create(pybullet.GEOM_BOX, halfExtents=size.tolist())
    if kind is Kind.SPHERE:
        return create(pybullet.GEOM_SPHERE, radius=size[0])
    geometry = pybullet.GEOM_CYLINDER if kind is Kind.CYLINDER else pybullet.GEOM_CAPSULE
    return create(geometry, radius=size[0], **length)


def bullet_scene(table: ShapeTable, visual: bool):
    client = new_client()
    for kind, size, rotation, position in zip(
        table.kind, table.size_m, table.rotation, table.position_m, strict=True
    ):
        shape = bullet_shape(client, Kind(int(kind)), size, visual)
        client.createMultiBody(
            0.0,
            -1 if visual else shape,
            shape if visual else -1,
            basePosition=position.tolist(),
            baseOrientation=Rotation.from_matrix(rotation).as_quat().tolist(),
        )
    return client


def test_an_upright_box_shows_its_exact_height():
    heights = heights_of(
        table_of((Kind.BOX, (0.025, 0.025, 0.025), Rotation.identity(), (0.0, 0.0, 0.025)))
    )
    assert heights.max() == 0.05
    inside = np.abs(GRID) < 0.025
    assert_array_equal(heights[np.ix_(inside, inside)], 0.05)
    assert np.count_nonzero(heights) == np.count_nonzero(inside) ** 2


def test_a_ball_shows_its_upper_half():
    heights = heights_of(
        table_of((Kind.SPHERE, (0.1, 0.0, 0.0), Rotation.identity(), (0.02, -0.03, 0.1)))
    )
    x, y = np.meshgrid(GRID - 0.02, GRID + 0.03, indexing="ij")
    inside = x**2 + y**2 < 0.1**2
    expected = np.where(inside, 0.1 + np.sqrt(np.where(inside, 0.1**2 - x**2 - y**2, 0)), 0.0)
    assert_allclose(heights, expected, atol=1e-12)


def test_the_order_of_the_shapes_does_not_matter():
    table = random_table(seed=3)
    shuffled = np.random.default_rng(0).permutation(len(table))
    again = ShapeTable(
        table.kind[shuffled],
        table.size_m[shuffled],
        table.rotation[shuffled],
        table.position_m[shuffled],
        table.colour[shuffled],
        table.body[shuffled],
    )
    assert_array_equal(heights_of(table), heights_of(again))


@pytest.mark.parametrize("seed", range(4))
def test_heights_agree_with_pybullets_ray_test_for_every_kind_of_shape(seed):
    table = random_table(seed)
    client = bullet_scene(table, visual=False)
    heights = heights_of(table)
    points = [(x, y) for x in GRID for y in GRID]
    found = []
    for start in range(0, len(points), 4096):
        chunk = points[start : start + 4096]
        found += client.rayTestBatch(
            [(x, y, 1.0) for x, y in chunk], [(x, y, 0.0) for x, y in chunk]
        )
    client.disconnect()
    expected = np.array([hit[3][2] if hit[0] >= 0 else 0.0 for hit in found]).reshape(84, 84)
    # PyBullet approximates its hits to a tenth of a millimetre along the surface, which steep
    # flanks and silhouettes turn into millimetres of height.
    difference = np.abs(heights - expected)[(heights > 0) | (expected > 0)]
    assert np.median(difference) < 2e-4
    assert np.mean(difference > 1.5e-3) < 0.15


@pytest.mark.parametrize("seed", range(3))
def test_a_camera_sees_the_depth_that_pybullets_renderer_sees(seed):
    # Boxes only: PyBullet draws round shapes as coarse polyhedra, millimetres inside the surface.
    table = random_table(seed, kinds=(Kind.BOX,))
    camera = PinholeCamera.looking_at((0.6, 0.4, 0.5), (0.0, 0.0, 0.1), (160, 120), 0.8)
    fx, fy, cx, cy = camera.intrinsics
    depth, index = np.empty((120, 160)), np.empty((120, 160), dtype=np.int64)
    cast_pinhole(
        table.kind,
        table.size_m,
        table.rotation,
        table.position_m,
        camera.base_from_optical,
        # PyBullet's renderer samples a pixel at its corner, ours at its centre.
        (fx, fy, cx + 0.5, cy - 0.5),
        0.05,
        depth,
        index,
        np.zeros((120, 160, 3)),
    )
    client = bullet_scene(table, visual=True)
    near, far = 0.05, 3.0
    view = client.computeViewMatrix((0.6, 0.4, 0.5), (0.0, 0.0, 0.1), (0, 0, 1))
    vertical = 2 * np.degrees(np.arctan(60 / fy))
    projection = client.computeProjectionMatrixFOV(vertical, 160 / 120, near, far)
    _, _, _, buffer, _ = client.getCameraImage(
        160, 120, view, projection, renderer=pybullet.ER_TINY_RENDERER
    )
    client.disconnect()
    buffer = np.asarray(buffer, dtype=np.float64).reshape(120, 160)
    expected = far * near / (far - (far - near) * buffer)
    seen, rendered = np.isfinite(depth), expected < far * 0.99
    assert np.count_nonzero(seen) > 1000
    assert np.mean(seen != rendered) < 0.01
    difference = np.abs(depth - expected)[seen & rendered]
    assert np.median(difference) < 3e-4
    assert np.mean(difference > 3e-3) < 0.03
