# SPDX-License-Identifier: MIT
"""The cameras' own error, read off the arm: found to a fraction of a millimetre, or refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest
from equi_console.scene.arm_surface import ArmSurface
from equi_console.scene.camera_correction import NoCorrectionError, measure_camera
from equi_console.scene.placement import check_placement
from looked_at_scenes import RIG, Look, layout_of, look

from equi_cell_sim.camera_model import CameraRig, Miscalibration
from equi_rl.envs import HiddenPropertyEnv, make_env
from equi_rl.sim.robot_model import robot_model

PLACES_M = [np.array(place) for place in ((0.5, 0.0, 0.05), (0.4, -0.15, 0.05), (0.6, 0.15, 0.05))]


@pytest.fixture(scope="module")
def env() -> Iterator[HiddenPropertyEnv]:
    made = make_env("block_picking")
    yield made
    made.close()


@pytest.fixture(scope="module")
def seen(env: HiddenPropertyEnv) -> Look:
    return look(env, env.scene_of_seed(900_100_030), 3)


def rig(position_mm: float, rotation_deg: float, seed: int = 0) -> CameraRig:
    return dataclasses.replace(
        RIG, miscalibration=Miscalibration(position_mm, rotation_deg, seed=seed)
    )


@pytest.mark.parametrize(("size", "seed"), [((0.0, 0.0), 0), ((2.0, 0.15), 0), ((2.0, 0.15), 3)])
def test_a_cameras_error_is_read_off_the_arm(
    env: HiddenPropertyEnv, size: tuple[float, float], seed: int
) -> None:
    cameras = rig(*size, seed=seed)
    found = look(env, env.scene_of_seed(900_100_031), 4, cameras).correction
    for spec in cameras.cameras:
        calibrated = spec.base_from_camera
        true_pose = cameras.miscalibration.true_pose(calibrated, spec.name)
        for place in PLACES_M:
            in_camera = np.linalg.inv(true_pose) @ np.array([*place, 1.0])
            expected = (calibrated @ in_camera)[:3] - place
            error_mm = 1e3 * np.abs(found.cameras[spec.name].error_at(place) - expected).max()
            assert error_mm < 0.4, f"{spec.name}: {error_mm:.2f} mm"


def test_the_surface_is_the_one_that_the_simulator_draws(env: HiddenPropertyEnv) -> None:
    joints, opening = (0.3, -1.4, 1.5, -1.7, -1.5, 0.4), 0.6
    fingers = [opening * 0.085 / 2] * 2
    shapes = robot_model().posed_shapes([*joints, *fingers])
    surface = ArmSurface().posed(joints, opening)
    tops = shapes.position_m + shapes.rotation[:, :, 2] * shapes.size_m[:, [2]]
    boxes = shapes.kind == 0
    inside = surface.distance_m(shapes.position_m)
    assert np.all(inside < 0)  # the middle of every shape
    # The middle of a box's upper face is on the surface, unless another shape covers it.
    assert 1e3 * np.abs(surface.distance_m(tops[boxes]).max()) < 0.01


def test_a_camera_that_was_moved_is_not_corrected_but_named(env: HiddenPropertyEnv) -> None:
    off = look(env, env.scene_of_seed(900_100_032), 5, rig(9.0, 0.0))
    with pytest.raises(NoCorrectionError, match=r"cam_left sees the arm .* calibrate again"):
        _ = off.correction


def test_an_arm_that_looks_otherwise_is_no_reference(seen: Look) -> None:
    points = seen.clouds_m["cam_left"]
    rng = np.random.default_rng(0)
    high = points[:, 2] > 0.06
    rough = points.copy()
    rough[high] += rng.normal(scale=0.006, size=(int(high.sum()), 3))
    with pytest.raises(NoCorrectionError, match="does not look like its description"):
        measure_camera("cam_left", rough, seen.surface, seen.tcp_m)


def test_a_hidden_arm_is_no_reference(seen: Look) -> None:
    points = seen.clouds_m["cam_right"]
    table = points[points[:, 2] < 0.03]
    with pytest.raises(NoCorrectionError, match="cam_right sees too little of the arm"):
        measure_camera("cam_right", table, seen.surface, seen.tcp_m)


def test_the_operator_reads_what_was_taken_out_and_why_nothing_was(
    env: HiddenPropertyEnv, seen: Look
) -> None:
    layout = layout_of(env.scene_of_seed(900_100_030))
    corrected = str(check_placement(layout, seen.view, seen.correction))
    assert ". The cameras see the arm off by cam_left -2." in corrected
    assert corrected.endswith("(taken out)")
    why = "The cameras' own error is not taken out: cam_left: no cloud"
    assert str(check_placement(layout, seen.view, why)).endswith(why)
