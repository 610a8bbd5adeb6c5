# SPDX-License-Identifier: MIT
"""The architecture description: round trip, and refusals that name the field."""

from __future__ import annotations

import json

import pytest
from small_networks import tiny_config

from equi_rl.nets.agent import agent_configs, parameter_matched_twin, plain_parameters
from equi_rl.nets.config import ArchitectureError, Combination, NetworkConfig, reference_config
from equi_rl.nets.layers import count_parameters
from equi_rl.nets.networks import Actor, Critic


@pytest.mark.parametrize("config", [NetworkConfig(), reference_config("D8")])
def test_a_config_survives_json(config):
    assert NetworkConfig.from_mapping(json.loads(json.dumps(config.to_mapping()))) == config


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"group": "C5"}, "network.group"),
        ({"group": "flip"}, "network.group"),
        ({"recurrent_channels": 126}, "network.recurrent_channels = 126.*multiple of 4"),
        ({"encoder_channels": (32, 64, 66, 64, 64, 128)}, r"network.encoder_channels\[2\]"),
        ({"head_channels": (128, 6)}, r"network.head_channels\[1\]"),
        ({"action_channels": 3}, "network.action_channels"),
        ({"encoder_kernels": (8, 4, 3)}, "network.encoder_channels"),
        ({"observation_size": 85}, r"network.encoder_kernels\[0\]"),
        ({"observation_size": 88}, "network.encoder_kernels"),
        ({"squash": "relu"}, "network.squash"),
        ({"squash": "radial"}, "network.squash"),
        ({"log_std_range": (2.0, -20.0)}, "network.log_std_range"),
        ({"initial_state": "learned"}, "network.initial_state"),
        ({"depth_scale_per_m": 0.0}, "network.depth_scale_per_m"),
        ({"n_actions": 4}, "network.n_actions"),
        ({"observation": "grid"}, "network.observation"),
        ({"actions": "discrete"}, "network.actions"),
        ({"recurrent_channels": 0}, "network.recurrent_channels"),
    ],
)
def test_an_impossible_architecture_is_refused_by_field(changes, named):
    with pytest.raises(ArchitectureError, match=named):
        NetworkConfig(**changes)


def test_axis_swapping_deviations_are_refused_for_eighth_turns():
    with pytest.raises(ArchitectureError, match=r"network.log_std_xy.*use 'tied'"):
        NetworkConfig(group="C8")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"format": 7}, "network.format"),
        ({"colour": 1}, "network.colour is not known"),
        ({"squash": 3}, "network.squash"),
        ({"head_channels": "wide"}, "network.head_channels"),
        ({"skip_connection": 1}, "network.skip_connection"),
        ({"recurrent_channels": "128"}, "network.recurrent_channels"),
    ],
)
def test_a_mapping_with_a_foreign_or_mistyped_entry_is_refused(change, named):
    with pytest.raises(ArchitectureError, match=named):
        NetworkConfig.from_mapping({**NetworkConfig().to_mapping(), **change})


def test_a_mapping_without_an_entry_is_refused():
    mapping = NetworkConfig().to_mapping()
    del mapping["squash"]
    with pytest.raises(ArchitectureError, match=r"network.squash is missing"):
        NetworkConfig.from_mapping(mapping)


def test_the_reference_sizes_have_the_published_parameter_counts():
    # Published counts without peepholes; the swapping log-std has one number less than five free.
    actor, critic = Actor(reference_config("C4")), Critic(reference_config("C4"))
    assert count_parameters(actor.history.encoder) == 33_784
    assert count_parameters(actor.history.lstm) == 34_816 + 128
    assert count_parameters(actor) == 81_816 - 384 - 1
    assert count_parameters(critic) == 103_338 - 384


def test_each_combination_makes_exactly_its_parts_plain():
    parts = {}
    for combination in Combination:
        actor, critic = agent_configs(combination, tiny_config())
        parts[combination.value] = (
            (actor.equivariant_encoder, actor.equivariant_lstm, actor.equivariant_heads),
            (critic.equivariant_encoder, critic.equivariant_lstm, critic.equivariant_heads),
        )
    full, none = (True, True, True), (False, False, False)
    assert parts == {
        "equivariant": (full, full),
        "actor-only": (full, none),
        "critic-only": (none, full),
        "plain-lstm": ((True, False, True), (True, False, True)),
        "plain": (none, none),
    }


@pytest.mark.parametrize("kind", ["actor", "critic"])
def test_a_parameter_matched_twin_has_about_as_many_parameters(kind):
    config = tiny_config()
    cls = {"actor": Actor, "critic": Critic}[kind]
    twin = parameter_matched_twin(config, kind)
    wanted, found = count_parameters(cls(config)), count_parameters(cls(twin))
    assert found == plain_parameters(twin, kind)
    assert abs(found - wanted) < 0.05 * wanted
    assert count_parameters(cls(agent_configs("plain", config)[0])) > 2 * wanted


def test_unknown_combinations_and_matches_are_refused():
    with pytest.raises(ArchitectureError, match=r"combination = 'both'.*equivariant"):
        agent_configs("both", tiny_config())
    with pytest.raises(ArchitectureError, match="match = 'flops'"):
        agent_configs("plain", tiny_config(), "flops")


def test_what_only_a_critic_has_is_written_only_where_it_is_not_the_usual():
    # Contracts of policies that were exported before these settings existed stay the same.
    assert not {"critic_heads", "critic_layer_norm"} & NetworkConfig().to_mapping().keys()
    changed = NetworkConfig(critic_heads=5, critic_layer_norm=True)
    assert NetworkConfig.from_mapping(changed.to_mapping()) == changed
    actor, critic = agent_configs("equivariant", changed)
    assert actor == NetworkConfig()
    assert critic == changed
