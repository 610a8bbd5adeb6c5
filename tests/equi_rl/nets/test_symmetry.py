# SPDX-License-Identifier: MIT
"""Groups, their action on arrays, and their agreement with escnn."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from escnn import nn as escnn_nn
from hypothesis import given
from hypothesis import strategies as st

from equi_rl.nets import symmetry
from equi_rl.nets.symmetry import GROUP_NAMES, Element, SymmetryError, group_named

PLANAR = ("C4", "C8", "D4", "D8")
groups = st.sampled_from(GROUP_NAMES).map(group_named)


@given(groups, st.data())
def test_composition_is_associative_and_inverses_undo(group, data):
    a, b, c = (data.draw(st.sampled_from(group.elements)) for _ in range(3))
    assert group.compose(group.compose(a, b), c) == group.compose(a, group.compose(b, c))
    assert group.compose(group.inverse(a), a) == Element(0)


@given(st.sampled_from(PLANAR).map(group_named), st.data())
def test_every_matrix_is_a_homomorphism(group, data):
    g, h = (data.draw(st.sampled_from(group.elements)) for _ in range(2))
    product = group.compose(g, h)
    for matrix in (group.plane_matrix, group.action_matrix):
        np.testing.assert_allclose(matrix(g) @ matrix(h), matrix(product), atol=1e-12)
    if group.permutes_axes:
        swap = group.log_std_matrix
        np.testing.assert_allclose(swap(g) @ swap(h), swap(product), atol=1e-12)


@given(groups, st.data())
def test_the_regular_representation_is_a_homomorphism(group, data):
    g, h = (data.draw(st.sampled_from(group.elements)) for _ in range(2))
    field = np.arange(2.0 * group.order)
    twice = symmetry.transform_regular(group, g, symmetry.transform_regular(group, h, field))
    once = symmetry.transform_regular(group, group.compose(g, h), field)
    np.testing.assert_array_equal(twice, once)


def test_a_quarter_turn_of_the_world_is_rot90_of_the_image():
    # A surface patch ahead of the gripper (+x, below the centre) moves to its left (+y, right).
    image = np.zeros((5, 5), dtype=np.float32)
    image[4, 2] = 1.0
    rotated = symmetry.transform_images(group_named("C4"), Element(1), image)
    assert rotated[2, 4] == 1.0
    np.testing.assert_array_equal(rotated, np.rot90(image))
    action = symmetry.transform_action(group_named("C4"), Element(1), np.array([0, 1.0, 0, 0, 0]))
    np.testing.assert_array_equal(action, [0, 0, 1, 0, 0])


def test_a_mirror_flips_y_and_the_sense_of_yaw_only():
    action = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    mirrored = symmetry.transform_action(group_named("D4"), Element(0, True), action)
    np.testing.assert_allclose(mirrored, [0.1, 0.2, -0.3, 0.4, -0.5])


@pytest.mark.parametrize("name", PLANAR)
def test_images_vectors_and_fields_move_as_in_escnn(name):
    group = group_named(name)
    space = symmetry.escnn_space(group)
    scalar = escnn_nn.FieldType(space, [space.trivial_repr])
    image = torch.arange(49.0).view(1, 1, 7, 7)
    for g in group:
        element = symmetry.escnn_element(group, g)
        action = symmetry.ACTION.field_type(group).representation(element)
        np.testing.assert_allclose(action, group.action_matrix(g), atol=1e-6)
        field = np.random.default_rng(0).normal(size=group.order)
        np.testing.assert_allclose(
            space.regular_repr(element) @ field,
            symmetry.transform_regular(group, g, field),
            atol=1e-6,
        )
        if group.permutes_axes:
            spread = symmetry.LOG_STD_PERMUTED.field_type(group).representation(element)
            np.testing.assert_allclose(spread, group.log_std_matrix(g), atol=1e-6)
        if group.is_exact_on_pixels(g):
            expected = escnn_nn.GeometricTensor(image, scalar).transform(element).tensor
            assert torch.equal(symmetry.transform_images(group, g, image), expected.round())


def test_turning_by_eighths_twice_is_close_to_a_quarter_turn():
    grid = torch.linspace(-1, 1, 41)
    bump = torch.exp(-((grid[:, None] - 0.3) ** 2 + (grid[None, :] + 0.1) ** 2) / 0.1)
    twice = symmetry.rotate_images(symmetry.rotate_images(bump, math.pi / 4), math.pi / 4)
    difference = (twice - torch.rot90(bump, 1, (-2, -1))).abs()
    assert difference[6:-6, 6:-6].max() < 0.03  # corners leave the image and do not come back


def test_a_transformed_discrete_action_is_the_transformed_one_hot():
    for name in GROUP_NAMES:
        group = group_named(name)
        for g in group:
            for action in range(group.order):
                one_hot = np.eye(group.order)[action]
                moved = symmetry.transform_regular(group, g, one_hot)
                index = symmetry.transform_discrete_action(group, g, np.array(action))
                assert moved[index] == 1.0


def test_counter_clockwise_moves_shift_by_one_under_a_quarter_turn():
    index = symmetry.transform_discrete_action(group_named("C4"), Element(1), np.arange(4))
    np.testing.assert_array_equal(index, [1, 2, 3, 0])


def test_an_unknown_group_is_refused_with_the_known_ones():
    with pytest.raises(SymmetryError, match=r"'SO2'.*C4, C8, D4, D8, flip"):
        group_named("SO2")


@pytest.mark.parametrize(
    "call",
    [
        lambda: symmetry.transform_action(group_named("C4"), Element(1), np.zeros(4)),
        lambda: symmetry.transform_images(group_named("C4"), Element(1), np.zeros((3, 4))),
        lambda: symmetry.transform_regular(group_named("D4"), Element(1), np.zeros(12)),
        lambda: symmetry.regular(10).field_type(group_named("C4")),
        lambda: symmetry.LOG_STD_PERMUTED.field_type(group_named("C8")),
        lambda: symmetry.ACTION.field_type(group_named("flip")),
    ],
)
def test_arrays_and_layouts_that_do_not_fit_the_group_are_refused(call):
    with pytest.raises(SymmetryError):
        call()
