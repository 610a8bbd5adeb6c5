# SPDX-License-Identifier: MIT
"""Builds the actor and critic of every agent the paper compares, from one architecture config."""

from __future__ import annotations

import copy
import dataclasses
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

import torch
from torch import nn

from equi_rl.data.device import HOST
from equi_rl.nets.config import (
    ArchitectureError,
    Combination,
    NetworkConfig,
    plain_twin,
    scaled_plain_twin,
)
from equi_rl.nets.layers import count_parameters
from equi_rl.nets.memories import memory_named
from equi_rl.nets.networks import Actor, Critic
from equi_rl.nets.representations import spread_rows

_FACTORS = [step / 200.0 for step in range(20, 301)]  # width factors tried, 0.10 to 1.50
T = TypeVar("T", bound=nn.Module)
_KINDS: dict[str, type[nn.Module]] = {"actor": Actor, "critic": Critic}


def agent_configs(
    combination: Combination | str, config: NetworkConfig, match: str = "channels"
) -> tuple[NetworkConfig, NetworkConfig]:
    """Configs of actor and critic for one combination.

    Args:
        combination: which parts respect the symmetry. ``plain-lstm`` replaces the LSTM alone and
            keeps the equivariant encoder, action embeddings and heads.
        config: the fully equivariant architecture.
        match: a plain twin has the same ``channels``, or about the same number of ``parameters``.
    """
    if not config.is_equivariant:
        raise ArchitectureError("agent_configs starts from the fully equivariant config")
    if match not in ("channels", "parameters"):
        raise ArchitectureError(f"match = {match!r}; allowed: channels, parameters")
    try:
        combination = Combination(combination)
    except ValueError as error:
        allowed = ", ".join(item.value for item in Combination)
        raise ArchitectureError(f"combination = {combination!r}; allowed: {allowed}") from error
    if combination is Combination.PLAIN_LSTM:
        mixed = dataclasses.replace(config, equivariant_lstm=False)
        return _of_actor(mixed), mixed
    actor, critic = _of_actor(config), config
    if combination in (Combination.PLAIN, Combination.CRITIC_ONLY):
        actor = _plain(actor, "actor", match)
    if combination in (Combination.PLAIN, Combination.ACTOR_ONLY):
        critic = _plain(config, "critic", match)
    return actor, critic


def _of_actor(config: NetworkConfig) -> NetworkConfig:
    """The configuration without what says nothing of an actor."""
    return dataclasses.replace(config, critic_heads=2, critic_layer_norm=False)


def build_agent(
    combination: Combination | str, config: NetworkConfig, match: str = "channels"
) -> tuple[Actor, Critic]:
    """Fresh actor and critic; see ``agent_configs``."""
    actor, critic = agent_configs(combination, config, match)
    return Actor(actor), Critic(critic)


@lru_cache(maxsize=64)
def parameter_matched_twin(config: NetworkConfig, kind: str) -> NetworkConfig:
    """The plain config whose ``actor`` or ``critic`` has the nearest number of parameters."""
    wanted = count_parameters(_KINDS[kind](config))
    candidates = [scaled_plain_twin(config, factor) for factor in _FACTORS]
    return min(candidates, key=lambda twin: abs(plain_parameters(twin, kind) - wanted))


def plain_parameters(config: NetworkConfig, kind: str) -> int:
    """Number of parameters of a plain ``actor`` or ``critic``, computed from its widths."""
    actions = config.n_actions
    total, source = 0, config.observation_channels.channels
    for width, kernel in zip(config.encoder_channels, config.encoder_kernels, strict=True):
        total += width * (source * kernel**2 + 1)
        source = width
    total += config.action_channels * (actions + 1)
    recurrent = config.recurrent_channels
    total += (
        memory_named(config.memory).blocks
        * recurrent
        * (config.recurrent_input_channels + recurrent + 1)
    )
    spread = 5 if config.log_std_xy == "permuted" else 4
    if config.action_layout:
        spread = max(spread_rows(config.action_components)) + 1
    if kind == "actor":
        outputs = actions + spread
        return total + _chain([config.head_input_channels, *config.head_channels, outputs])
    embedded = config.critic_action_channels
    head = _chain([config.head_input_channels + embedded, *config.head_channels, 1])
    return total + embedded * (actions + 1) + config.critic_heads * head


def on_device(network: T, device: torch.device) -> T:
    """The network on a device; elsewhere than on the host, a copy of it.

    escnn shares the bases of its filters among all networks of a process. Moved with one of them,
    they would be missing in the others.
    """
    return network if device == HOST else copy.deepcopy(network).to(device)


def share_encoder(actor: Actor, critic: Critic) -> None:
    """Give both networks the actor's image encoder; refuses networks of different kinds."""
    names = ("encoder_channels", "encoder_kernels", "encoder_strides", "equivariant_encoder")
    for name in names:
        if getattr(actor.config, name) != getattr(critic.config, name):
            raise ArchitectureError(
                f"network.{name} differs: actor {getattr(actor.config, name)!r}, critic"
                f" {getattr(critic.config, name)!r}; use the encoder 'separate'"
            )
    critic.history.encoder = actor.history.encoder


def require_same_input(actor: NetworkConfig, critic: NetworkConfig) -> None:
    """Refuse networks that would not see the same image."""
    names = ("observation", "observation_size", "depth_offset_m", "depth_scale_per_m")
    for name in names:
        if getattr(actor, name) != getattr(critic, name):
            raise ArchitectureError(
                f"network.{name} differs: actor {getattr(actor, name)!r},"
                f" critic {getattr(critic, name)!r}"
            )
    if actor.encoder_kernels[0] != critic.encoder_kernels[0]:
        raise ArchitectureError("network.encoder_kernels[0] differs between actor and critic")
    if actor.encoder_strides[0] != critic.encoder_strides[0]:
        raise ArchitectureError("network.encoder_strides[0] differs between actor and critic")


def _plain(config: NetworkConfig, kind: str, match: str) -> NetworkConfig:
    return plain_twin(config) if match == "channels" else parameter_matched_twin(config, kind)


def _chain(widths: list[int]) -> int:
    return sum(target * (source + 1) for source, target in pairwise(widths))
