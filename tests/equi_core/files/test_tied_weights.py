# SPDX-License-Identifier: MIT
"""Tied filters are stored once: what comes back is what the network expands to."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from equi_core.files.tied_weights import TiedWeightsError, tie_weights, untie_weights
from equi_rl.nets import dense
from equi_rl.nets.config import NetworkConfig, plain_twin
from equi_rl.nets.networks import Actor

SMALL = {
    "encoder_channels": (16, 32),
    "encoder_kernels": (4, 3),
    "encoder_strides": (2, 1),
    "observation_size": 8,
    "action_channels": 16,
    "recurrent_channels": 32,
    "head_channels": (32,),
    "critic_action_channels": 16,
}


def expanded(config: NetworkConfig) -> dict[str, np.ndarray]:
    """Dense weights of a fresh actor, as escnn expands them."""
    torch.manual_seed(0)
    found = {}
    for name, tensor in dense.named_tensors(Actor(config).dense()):
        is_matrix = tensor.dim() == 4 and not name.startswith("history.encoder.")
        found[name] = (tensor.flatten(1) if is_matrix else tensor).detach().numpy()
    return found


def config_of(group: str) -> NetworkConfig:
    return NetworkConfig(group=group, log_std_xy="tied", **SMALL)


@pytest.mark.parametrize(("group", "order", "pixel_filters"), [("C4", 4, 1), ("C8", 8, 2)])
def test_a_field_keeps_one_filter_and_one_more_where_rotation_mixes_pixels(
    group, order, pixel_filters
):
    config = config_of(group)
    tied = tie_weights(expanded(config), config.to_mapping())
    assert tied["history.encoder.1.tied_weight"].shape == (32 // order, pixel_filters, 16, 3, 3)
    assert tied["history.lstm.tied_weight"].shape == (4 * 32 // order, 1, 80, 1, 1)
    assert tied["head.0.tied_bias"].shape == (32 // order,)


@pytest.mark.parametrize("group", ["C4", "C8", "D4", "D8"])
def test_untying_gives_back_what_the_network_expands_to(group):
    config = config_of(group)
    weights = expanded(config)
    again = untie_weights(tie_weights(weights, config.to_mapping()), group)
    assert again.keys() == weights.keys()
    for name, weight in weights.items():
        assert again[name].shape == weight.shape
        np.testing.assert_allclose(again[name], weight, atol=1e-6, err_msg=name)


def test_tying_twice_changes_no_bit():
    config = config_of("C4")
    once = untie_weights(tie_weights(expanded(config), config.to_mapping()), "C4")
    twice = untie_weights(tie_weights(once, config.to_mapping()), "C4")
    assert all(np.array_equal(once[name], twice[name]) for name in once)


def test_layers_without_symmetry_and_files_of_earlier_exports_stay_as_they_are():
    config = plain_twin(config_of("C4"))
    weights = expanded(config)
    assert tie_weights(weights, config.to_mapping()).keys() == weights.keys()
    again = untie_weights(weights, "C4")
    assert all(np.array_equal(again[name], weights[name]) for name in weights)


def test_a_plain_memory_between_equivariant_layers_stays_dense():
    config = dataclasses.replace(config_of("C4"), equivariant_lstm=False)
    tied = tie_weights(expanded(config), config.to_mapping())
    assert "history.lstm.weight" in tied
    assert "history.encoder.0.tied_weight" in tied


def test_weights_that_are_not_copies_of_each_other_are_refused_by_layer():
    config = config_of("C4")
    weights = expanded(config)
    weights["head.0.weight"] = weights["head.0.weight"].copy()
    weights["head.0.weight"][3, 5] += 0.01
    with pytest.raises(TiedWeightsError, match=r"head\.0.*rotated copies"):
        tie_weights(weights, config.to_mapping())


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((8, 64), "it must be"),
        ((8, 2, 64, 1, 1), "2 filters per field"),
        ((8, 1, 63, 1, 1), "do not form fields"),
    ],
)
def test_tied_filters_of_impossible_shape_are_refused(shape, said):
    with pytest.raises(TiedWeightsError, match=said):
        untie_weights({"head.0.tied_weight": np.zeros(shape, np.float32)}, "C4")
