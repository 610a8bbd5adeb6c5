# SPDX-License-Identifier: MIT
"""Specification of depth images as input: the same points, hence the same observation."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest

from equi_calibration.synthetic.depth_camera import cloud_of
from equi_cell_sim.camera_model import CameraRig
from equi_cell_sim.depth_camera import DepthCamera
from equi_core.contract import ImageSpec
from equi_core.motion.ur5_kinematics import HOME_RAD
from equi_core.observation.builder import ObservationBuilder, RobotPose
from equi_perception.cloud_layout import CloudLayoutError
from equi_perception.depth_image import DepthImage, PinholeInfo
from equi_rl.envs import make_env

ROBOT = RobotPose(tuple(HOME_RAD), (0.5, 0.0, 0.2), 0.0, 1.0, False)


def depth_image(frame, spec, encoding="16UC1", is_bigendian=False) -> DepthImage:
    cx, cy = spec.centre_px
    info = PinholeInfo("f", spec.width_px, spec.height_px, spec.focal_px, spec.focal_px, cx, cy)
    order = ">" if is_bigendian else "<"
    units = frame.depth_units
    pixels = (
        units.astype(f"{order}u2")
        if encoding == "16UC1"
        else np.where(units > 0, units * frame.unit_m, np.nan).astype(f"{order}f4")
    )
    step = pixels.strides[0]
    height, width = units.shape
    return DepthImage(1, "f", height, width, encoding, is_bigendian, step, pixels.tobytes(), info)


@cache
def rendered():
    """What both cameras of the simulated cell see of a scene, with their usual errors."""
    env = make_env("block_picking")
    env.reset(seed=5)
    shapes = env.world.shapes(with_robot=True)
    frames = {
        spec.name: (
            spec,
            DepthCamera(spec, CameraRig().noise, spec.base_from_camera, seed=1).capture(
                shapes, with_colour=False
            ),
        )
        for spec in CameraRig().cameras
    }
    env.close()
    return frames


def test_rendered_depth_images_give_bit_for_bit_the_observation_of_the_clouds():
    builder = ObservationBuilder(
        ImageSpec(), {name: spec.base_from_camera for name, (spec, _) in rendered().items()}
    )
    clouds = {name: cloud_of(spec, frame) for name, (spec, frame) in rendered().items()}
    depths = {name: depth_image(frame, spec).points for name, (spec, frame) in rendered().items()}
    for name in clouds:
        assert len(depths[name]) > 10_000
        np.testing.assert_array_equal(depths[name], clouds[name][:, :3])
    from_clouds, from_depths = builder.build(clouds, ROBOT), builder.build(depths, ROBOT)
    np.testing.assert_array_equal(from_depths.image, from_clouds.image)
    assert from_depths.points_on_robot == from_clouds.points_on_robot


@pytest.mark.parametrize(("encoding", "is_bigendian"), [("32FC1", False), ("16UC1", True)])
def test_metres_and_either_endianness_are_read_too(encoding, is_bigendian):
    spec, frame = rendered()["cam_left"]
    points = depth_image(frame, spec, encoding, is_bigendian).points
    np.testing.assert_allclose(points, cloud_of(spec, frame)[:, :3], rtol=1e-6)


def test_the_padding_of_rows_is_left_out():
    spec, frame = rendered()["cam_left"]
    image = depth_image(frame, spec)
    rows = np.frombuffer(image.data, np.uint8).reshape(image.height, image.step)
    padded = np.pad(rows, ((0, 0), (0, 12)), constant_values=255)
    wider = dataclasses.replace(image, step=image.step + 12, data=padded.tobytes())
    np.testing.assert_array_equal(wider.points, image.points)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"encoding": "rgb8"}, "rgb8"),
        ({"height": 3}, "camera_info is for"),
        ({"step": 3}, "3 bytes each"),
        ({"data": b"x"}, "1 bytes"),
    ],
)
def test_an_image_that_cannot_be_read_is_refused_with_a_sentence(change, word):
    spec, frame = rendered()["cam_left"]
    with pytest.raises(CloudLayoutError, match=word):
        _ = dataclasses.replace(depth_image(frame, spec), **change).points


@pytest.mark.parametrize(
    ("change", "word"),
    [({"fx": 0.0}, "positive"), ({"cy": float("nan")}, "nan"), ({"distorted": True}, "rectified")],
)
def test_a_camera_that_places_no_points_is_refused(change, word):
    lens = PinholeInfo("f", 640, 480, 380.0, 380.0, 319.5, 239.5)
    with pytest.raises(CloudLayoutError, match=word):
        dataclasses.replace(lens, **change)
