# SPDX-License-Identifier: MIT
"""Specification of augmentation: image and action turn together, quarter turns exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from equi_core.contract import ImageSpec
from equi_core.observation.image import compose_observation
from equi_rl.data import augmentation as augment
from equi_rl.data.image_kernels import rotate_into
from equi_rl.nets import symmetry


def rotated(depth: torch.Tensor, angle_rad: float) -> torch.Tensor:
    out = np.empty(depth.shape, dtype=np.float32)
    rotate_into(out, np.arange(len(depth)), depth.numpy(), angle_rad)
    return torch.from_numpy(out)


def a_scene(angle_rad: float) -> torch.Tensor:
    """Depth image (1, 84, 84) of a smooth hill beside the gripper, rotated with the world."""
    image = ImageSpec()
    hill = 0.1 * np.array([math.cos(0.4 + angle_rad), math.sin(0.4 + angle_rad)])
    centres = (np.arange(84) - 41.5) * image.pixel_m
    x, y = np.meshgrid(centres, centres, indexing="ij")
    height = 0.05 * np.exp(-((x - hill[0]) ** 2 + (y - hill[1]) ** 2) / (2 * 0.03**2))
    observation = compose_observation(height, (0.5, 0, 0.2), angle_rad, 1.0, False, image)
    return torch.from_numpy(observation[:1])


@pytest.mark.parametrize("turns", range(-4, 5))
def test_a_quarter_turn_permutes_pixels_exactly(turns):
    depth = torch.rand(3, 84, 84)
    result = rotated(depth, turns * math.pi / 2)
    np.testing.assert_array_equal(result, np.rot90(depth, turns, axes=(1, 2)))


@pytest.mark.parametrize("degrees", [10, 45, 123, 200, 300])
def test_any_turn_agrees_with_drawing_the_turned_world(degrees):
    angle = math.radians(degrees)
    result = rotated(a_scene(0.0), angle)
    drawn = a_scene(angle)
    # Interpolation blurs the sharp finger edges; elsewhere the hill agrees to a tenth of a mm.
    agree = (result - drawn).abs() < 1e-4
    assert agree.float().mean() > 0.97


@pytest.mark.parametrize("angle", [0.3, 1.2, 2.0, 4.5])
def test_turning_agrees_with_the_action_of_the_group_on_images(angle):
    stored = np.random.default_rng(0).integers(0, 3000, (3, 84, 84), dtype=np.uint16)
    out = np.full((5, 84, 84), np.nan, dtype=np.float32)
    rotate_into(out, np.array([4, 0, 2]), stored, angle, unit=1e-4)
    expected = symmetry.rotate_images(torch.from_numpy(stored.astype(np.float32) * 1e-4), angle)
    np.testing.assert_allclose(out[[4, 0, 2]], expected, atol=1e-5)
    assert np.isnan(out[[1, 3]]).all()


def test_interpolation_meets_the_exact_quarter_turn():
    depth = a_scene(0.0)
    almost = rotated(depth, math.pi / 2 + 1e-5)
    exact = rotated(depth, math.pi / 2)
    assert (almost - exact).abs().max() < 2e-3


def test_actions_turn_like_the_world():
    ahead = torch.tensor([[0.3, 1.0, 0.0, -0.5, 0.7]])
    rotated = augment.rotate_actions(ahead, math.pi / 2)
    assert torch.equal(rotated, torch.tensor([[0.3, 0.0, 1.0, -0.5, 0.7]]))


@pytest.mark.parametrize("reach", [0.5, 0.9, 1.0])
def test_an_angle_that_fits_keeps_every_step_whole_and_inside_the_square(reach):
    rng = np.random.default_rng(0)
    angles = []
    for _ in range(200):
        actions = rng.uniform(-reach, reach, size=(3, 5)).astype(np.float32)
        unknown = np.full((3, 5), np.nan, dtype=np.float32)
        angle = augment.random_fitting_angle_rad(rng, actions, unknown)
        rotated = augment.rotate_actions(torch.from_numpy(actions), angle).numpy()
        lengths = np.linalg.norm(actions[:, 1:3], axis=1)
        np.testing.assert_allclose(np.linalg.norm(rotated[:, 1:3], axis=1), lengths, rtol=1e-5)
        assert np.abs(rotated[:, 1:3]).max() <= 1.0
        angles.append(angle)
    assert len(set(angles)) > 150


def test_a_label_that_would_leave_the_square_keeps_its_direction():
    corner = torch.tensor([[0.0, 1.0, 1.0, 0.0, 0.0]])
    angle = math.pi / 4 + 0.1
    rotated = augment.rotate_labels(corner, angle)[0]
    assert rotated[1:3].abs().max() == pytest.approx(1.0)
    expected = math.atan2(1, 1) + angle
    assert math.atan2(rotated[2], rotated[1]) == pytest.approx(expected, abs=1e-6)


def test_where_no_angle_fits_a_quarter_turn_is_taken_exactly():
    corner = np.array([[0.0, 1.0, -1.0, 0.0, 0.0]], dtype=np.float32)
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(40):
        angle = augment.random_fitting_angle_rad(rng, corner)
        rotated = augment.rotate_actions(torch.from_numpy(corner), angle)[0]
        seen.add((float(rotated[1]), float(rotated[2])))
    assert seen == {(1.0, -1.0), (1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0)}


def test_the_original_is_left_alone():
    actions = torch.ones(2, 5)
    augment.rotate_actions(actions, 1.0)
    assert torch.all(actions == 1.0)


def test_a_shift_moves_the_image_and_repeats_the_border():
    depth = np.arange(25.0).reshape(1, 5, 5)
    moved = augment.shift(depth, (1, -2))
    np.testing.assert_array_equal(moved[0, 1:, :3], depth[0, :-1, 2:])
    np.testing.assert_array_equal(moved[0, 0], moved[0, 1])  # the row above is repeated
    np.testing.assert_array_equal(moved[0, :, 3:], np.repeat(moved[0, :, 2:3], 2, axis=1))
    np.testing.assert_array_equal(augment.shift(depth, (0, 0)), depth)


def test_shifts_reach_both_ends_equally():
    rng = np.random.default_rng(0)
    shifts = np.array([augment.random_shift_px(rng, 4) for _ in range(3000)])
    assert set(shifts.ravel()) == set(range(-4, 5))
    assert abs(shifts.mean()) < 0.15


def test_the_centre_crop_is_the_middle_window():
    depth = torch.rand(2, 90, 90)
    np.testing.assert_array_equal(augment.centre_crop(depth, 84), depth[:, 3:87, 3:87])


def test_crops_cover_every_position():
    rng = np.random.default_rng(0)
    offsets = {augment.random_crop_offset_px(rng, 90, 84) for _ in range(2000)}
    assert offsets == {(r, c) for r in range(7) for c in range(7)}


def test_a_window_outside_the_image_is_refused():
    with pytest.raises(ValueError, match="84 px"):
        augment.crop(torch.zeros(1, 90, 90), (7, 0), 84)
