# SPDX-License-Identifier: MIT
"""Specification of weight tying: the tied arrays are exactly the equivariant ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from equi_rl.carflag.tied_weights import (
    Expansion,
    signed_permutation,
    tie_bias,
    tie_filter,
    untied,
)
from equi_rl.nets.layers import EquivariantLayer
from equi_rl.nets.symmetry import (
    ACTION,
    SymmetryError,
    group_named,
    regular,
    sign,
    transform_images,
    trivial,
)

CASES = [
    ("C4", trivial(2), regular(8), 3),
    ("C4", regular(8), regular(12), 3),
    ("C4", regular(8), trivial(3), 1),
    ("D4", regular(8), regular(16), 3),
    ("flip", sign(2), regular(6), 1),
    ("flip", regular(4), regular(2), 1),
    ("flip", sign(1), trivial(1), 1),
]


def dense(tie, seed=0):
    free = np.random.default_rng(seed).normal(size=tie.free)
    return tie.sign * (free[tie.index] if tie.free else np.zeros(tie.index.shape))


def matrix_of(group, layout, g):
    source, signs = signed_permutation(group, layout, g)
    matrix = np.zeros((layout.channels, layout.channels))
    matrix[np.arange(layout.channels), source] = signs
    return matrix


@pytest.mark.parametrize(("name", "source", "target", "kernel"), CASES, ids=str)
def test_a_tied_filter_commutes_with_every_group_element(name, source, target, kernel):
    group = group_named(name)
    filters = dense(tie_filter(group, source, target, kernel)).transpose(3, 2, 0, 1)
    bias = dense(tie_bias(group, target), seed=1)
    weight, offset = torch.tensor(filters), torch.tensor(bias)
    image = torch.randn(1, source.channels, 5, 5, dtype=torch.float64)

    def act(g, layout, x):
        rotated = x if group.on_line else transform_images(group, g, x)
        return torch.einsum("ij,bjrc->birc", torch.tensor(matrix_of(group, layout, g)), rotated)

    for g in group:
        one = functional.conv2d(act(g, source, image), weight, offset)
        two = act(g, target, functional.conv2d(image, weight, offset))
        torch.testing.assert_close(one, two, atol=1e-12, rtol=0)


@pytest.mark.parametrize(("name", "source", "target", "kernel"), CASES, ids=str)
def test_no_equivariant_filter_is_left_out(name, source, target, kernel):
    # The dimension of that space is the mean trace of the group's action on filters.
    group = group_named(name)
    trace = 0.0
    for g in group:
        cells = np.arange(kernel**2).reshape(kernel, kernel)
        moved = cells if group.on_line else np.ascontiguousarray(transform_images(group, g, cells))
        fixed = (cells == moved).sum()
        trace += (
            np.trace(matrix_of(group, source, g)) * np.trace(matrix_of(group, target, g)) * fixed
        )
    assert tie_filter(group, source, target, kernel).free == round(trace / group.order)


def test_a_bias_on_a_sign_channel_must_vanish():
    tie = tie_bias(group_named("flip"), sign(2))
    assert tie.free == 0
    assert not tie.sign.any()


def test_a_representation_that_does_not_permute_is_refused():
    with pytest.raises(SymmetryError, match="action"):
        tie_filter(group_named("C4"), ACTION, regular(4))


def test_channels_that_are_not_whole_fields_are_refused():
    with pytest.raises(SymmetryError, match="multiples of 4"):
        tie_bias(group_named("C4"), regular(6))


def test_pulling_back_is_the_adjoint_of_expanding():
    group = group_named("C4")
    expansion = Expansion(
        [tie_filter(group, trivial(2), regular(8), 3), tie_bias(group, regular(8)), untied((3, 2))]
    )
    free = torch.randn(2, expansion.free, dtype=torch.float64)
    image = expansion.expand(free)
    probe = torch.randn_like(image)
    torch.testing.assert_close((image * probe).sum(), (free * expansion.pull_back(probe)).sum())


def test_entries_without_a_free_number_expand_to_zero():
    group = group_named("flip")
    expansion = Expansion([untied((2,)), tie_bias(group, sign(3))])
    assert expansion.expand(torch.ones(1, 2)).tolist() == [[1, 1, 0, 0, 0]]


def test_expanding_untied_weights_returns_a_copy():
    expansion = Expansion([untied((2, 3))])
    free = torch.randn(1, 6)
    image = expansion.expand(free)
    assert torch.equal(image, free)
    image += 1
    assert not torch.equal(image, free)


@pytest.mark.parametrize(("name", "source", "target", "kernel"), CASES[:-1], ids=str)
def test_every_filter_that_escnn_finds_equivariant_is_a_tied_one(name, source, target, kernel):
    # The robots' networks take their filters from escnn; both must mean the same symmetry. (In the
    # last case there is no such filter, which escnn refuses to build.)
    group = group_named(name)
    torch.manual_seed(0)
    theirs = EquivariantLayer(group, source, target, kernel).dense()
    for array, tie in (
        (theirs.weight.permute(2, 3, 1, 0), tie_filter(group, source, target, kernel)),
        (theirs.bias, tie_bias(group, target)),
    ):
        entries = array.detach().numpy()
        # Any entry tells its free number; all entries must then follow from these.
        free = np.zeros(max(tie.free, 1))
        free[tie.index[tie.sign != 0]] = (entries * tie.sign)[tie.sign != 0]
        np.testing.assert_allclose(entries, tie.sign * free[tie.index], atol=1e-6)
        assert entries.any() or tie.free == 0 or array is theirs.bias
