# SPDX-License-Identifier: MIT
"""The networks: history encoder (image, previous action, LSTM), actor and critic of several heads.

Each class holds layers and offers two ways to run. ``dense()`` hands out ordinary filters and
matrices for the fast path in ``dense.py``; ``forward`` walks through the layers step by step as
escnn would, and is the definition that the fast path is tested against. Shapes: T steps, B
episodes.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from equi_rl.data.device import HOST
from equi_rl.nets import symmetry
from equi_rl.nets.config import ArchitectureError, NetworkConfig
from equi_rl.nets.layers import Dense, EquivariantLayer, Layer, PlainLayer, make_layer
from equi_rl.nets.memories import LstmState, memory_named
from equi_rl.nets.representations import spread_rows
from equi_rl.nets.symmetry import Layout

_TIED_ROWS = [0, 1, 1, 2, 3]  # (w, xy, z, r) -> (w, x, y, z, r)


class HistoryWeights(NamedTuple):
    """Dense weights of a history encoder; an LSTM's gates are stacked i, f, g, o."""

    encoder: tuple[Dense, ...]
    action: Dense | None
    lstm: Dense


class ActorWeights(NamedTuple):
    """Dense weights of the continuous actor."""

    history: HistoryWeights
    head: tuple[Dense, ...]
    mean: Dense
    log_std: Dense


class CriticWeights(NamedTuple):
    """Dense weights of the critic; each head ends in one number."""

    history: HistoryWeights
    value_action: Dense
    heads: tuple[tuple[Dense, ...], ...]


class HistoryEncoder(nn.Module):
    """o_t, a_{t-1} and the LSTM's state to a feature of the history."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        group = config.symmetry
        layers: list[Layer] = []
        source = config.observation_channels
        for width, kernel, stride in zip(
            config.encoder_channels, config.encoder_kernels, config.encoder_strides, strict=True
        ):
            target = symmetry.regular(width)
            layers.append(
                make_layer(
                    group,
                    source,
                    target,
                    equivariant=config.equivariant_encoder,
                    kernel=kernel,
                    stride=stride,
                )
            )
            source = target
        self.encoder = nn.ModuleList(layers)
        self.action: Layer | None = None
        self.source = source
        if config.action_channels:
            embedded = symmetry.regular(config.action_channels)
            self.action = make_layer(
                group, config.action_components, embedded, equivariant=config.equivariant_heads
            )
            source = source + embedded
        hidden = symmetry.regular(config.recurrent_channels)
        self.lstm = make_layer(
            group,
            source + hidden,
            symmetry.regular(memory_named(config.memory).blocks * config.recurrent_channels),
            equivariant=config.equivariant_lstm,
        )
        if isinstance(self.lstm, PlainLayer):
            nn.init.orthogonal_(self.lstm.weight)

    @property
    def output(self) -> Layout:
        """Layout of what the heads receive: [LSTM output, encoder feature]."""
        hidden = symmetry.regular(self.config.recurrent_channels)
        return hidden + self.source if self.config.skip_connection else hidden

    def dense(self) -> HistoryWeights:
        """Expand every layer."""
        return HistoryWeights(
            tuple(_dense(layer) for layer in self.encoder),
            None if self.action is None else self.action.dense(),
            self.lstm.dense(),
        )

    def forward(
        self, observations: Tensor, previous_actions: Tensor | None, state: LstmState
    ) -> tuple[Tensor, LstmState]:
        """Step through (T, B, ...) observations; returns (T, B, C) features and the last state."""
        steps, batch = observations.shape[:2]
        features = normalise_observation(self.config, observations).flatten(0, 1)
        for layer in self.encoder:
            features = _relu(layer, layer(features))
        inputs = features
        if self.action is not None:
            if previous_actions is None:
                raise ArchitectureError("this network needs previous_actions (T, B, 5), got None")
            embedded = self.action(previous_actions.flatten(0, 1)[..., None, None])
            inputs = torch.cat([features, _relu(self.action, embedded)], dim=1)
        inputs = inputs.unflatten(0, (steps, batch))
        memory = memory_named(self.config.memory)
        state = LstmState(*(part[..., None, None] for part in state))
        outputs = []
        for step in range(steps):
            state = memory.step(self._linear, inputs[step], state)
            outputs.append(state.hidden)
        history = torch.stack(outputs)
        if self.config.skip_connection:
            history = torch.cat([history, features.unflatten(0, (steps, batch))], dim=2)
        return history[..., 0, 0], LstmState(*(part[..., 0, 0] for part in state))

    def _linear(self, inputs: Tensor, hidden: Tensor) -> Tensor:
        output: Tensor = self.lstm(torch.cat([inputs, hidden], dim=1))
        return output


class Actor(nn.Module):
    """Continuous policy: mean and log-std of the action (A components) before squashing."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.history = HistoryEncoder(config)
        self.head = _hidden_layers(config, self.history.output)
        top = symmetry.regular(config.head_channels[-1])
        equivariant = config.equivariant_heads
        action = config.action_components
        self.mean = make_layer(config.symmetry, top, action, equivariant=equivariant)
        self._spread_rows = spread_rows(action) if config.action_layout else _TIED_ROWS
        spread = symmetry.trivial(max(self._spread_rows) + 1)
        if config.log_std_xy == "permuted":
            spread = symmetry.LOG_STD_PERMUTED
        self.log_std = make_layer(config.symmetry, top, spread, equivariant=equivariant)
        _start_small(self.mean, 1e-3)
        _start_small(self.log_std, 1e-3)

    def dense(self) -> ActorWeights:
        """Expand every layer; the log-std always has a row for each component."""
        spread = self.log_std.dense()
        if self.config.log_std_xy == "tied":
            spread = Dense(spread.weight[self._spread_rows], spread.bias[self._spread_rows])
        return ActorWeights(
            self.history.dense(),
            tuple(_dense(layer) for layer in self.head),
            self.mean.dense(),
            spread,
        )

    def forward(
        self, observations: Tensor, previous_actions: Tensor | None, state: LstmState
    ) -> tuple[Tensor, Tensor, LstmState]:
        """(T, B, ...) histories to mean and log-std, each (T, B, 5), and the last state."""
        history, state = self.history(observations, previous_actions, state)
        features = history.flatten(0, 1)[..., None, None]
        for layer in self.head:
            features = _relu(layer, layer(features))
        mean = self.mean(features)[..., 0, 0]
        spread = self.log_std(features)[..., 0, 0]
        if self.config.log_std_xy == "tied":
            spread = spread[:, self._spread_rows]
        spread = spread.clamp(*self.config.log_std_range)
        shape = history.shape[:2]
        return mean.unflatten(0, shape), spread.unflatten(0, shape), state


class Critic(nn.Module):
    """Invariant action values Q(h, a), twin by default; the heads share the history encoder.

    With ``config.critic_layer_norm`` the hidden layers of the heads are normalised over their
    channels, without parameters of its own: the group permutes the channels of regular fields,
    which changes neither their mean nor their variance, so this commutes with it.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.history = HistoryEncoder(config)
        embedded = symmetry.regular(config.critic_action_channels)
        self.value_action = make_layer(
            config.symmetry,
            config.action_components,
            embedded,
            equivariant=config.equivariant_heads,
        )
        self.heads = nn.ModuleList(
            _head(config, self.history.output + embedded, symmetry.trivial(1), 3e-3)
            for _ in range(config.critic_heads)
        )

    def dense(self) -> CriticWeights:
        """Expand every layer."""
        return CriticWeights(
            self.history.dense(),
            self.value_action.dense(),
            tuple(tuple(_dense(layer) for layer in _children(head)) for head in self.heads),
        )

    def forward(
        self,
        observations: Tensor,
        previous_actions: Tensor | None,
        actions: Tensor,
        state: LstmState,
    ) -> tuple[Tensor, LstmState]:
        """Values (heads, T, B) of ``actions`` (T, B, 5) after each history."""
        history, state = self.history(observations, previous_actions, state)
        embedded = self.value_action(actions.flatten(0, 1)[..., None, None])
        embedded = _relu(self.value_action, embedded)
        features = torch.cat([history.flatten(0, 1)[..., None, None], embedded], dim=1)
        norm = self.config.critic_layer_norm
        values = [_run_head(_children(head), features, norm)[:, 0, 0, 0] for head in self.heads]
        return torch.stack(values).unflatten(1, history.shape[:2]), state


def initial_state(
    config: NetworkConfig,
    batch: int,
    generator: torch.Generator | None = None,
    device: torch.device = HOST,
) -> LstmState:
    """State at the start of an episode: zero, or standard normal numbers for the ablation."""
    shape = (batch, config.recurrent_channels)
    if config.initial_state == "random":
        hidden, cell = (
            torch.randn(shape, generator=generator, device=HOST).to(device) for _ in range(2)
        )
        return LstmState(hidden, cell)
    return LstmState(torch.zeros(shape, device=device), torch.zeros(shape, device=device))


def normalise_observation(config: NetworkConfig, observation: Tensor) -> Tensor:
    """(..., 2, S, S): shift and scale the depth channel as the contract says; arrays stay."""
    if config.observation != "depth":
        return observation
    depth = (observation[..., :1, :, :] - config.depth_offset_m) * config.depth_scale_per_m
    return torch.cat([depth, observation[..., 1:, :, :]], dim=-3)


def _hidden_layers(config: NetworkConfig, source: Layout) -> nn.ModuleList:
    layers = nn.ModuleList()
    for width in config.head_channels:
        target = symmetry.regular(width)
        layers.append(
            make_layer(config.symmetry, source, target, equivariant=config.equivariant_heads)
        )
        source = target
    return layers


def _head(config: NetworkConfig, source: Layout, target: Layout, bound: float) -> nn.ModuleList:
    layers = _hidden_layers(config, source)
    top = symmetry.regular(config.head_channels[-1])
    last = make_layer(config.symmetry, top, target, equivariant=config.equivariant_heads)
    _start_small(last, bound)
    layers.append(last)
    return layers


def _run_head(layers: nn.ModuleList, features: Tensor, layer_norm: bool) -> Tensor:
    for layer in layers[:-1]:
        features = layer(features)
        if layer_norm:
            features = functional.layer_norm(features, features.shape[1:])
        features = _relu(layer, features)
    output: Tensor = layers[-1](features)
    return output


def _start_small(layer: Layer, bound: float) -> None:
    """Plain output layers start near zero, as in the reference; equivariant ones as escnn does."""
    if isinstance(layer, PlainLayer):
        nn.init.uniform_(layer.weight, -bound, bound)
        nn.init.uniform_(layer.bias, -bound, bound)


def _relu(layer: nn.Module, features: Tensor) -> Tensor:
    if not isinstance(layer, EquivariantLayer):
        return torch.relu(features)
    from escnn import nn as escnn_nn

    kind = layer.convolution.out_type
    output: Tensor = escnn_nn.ReLU(kind)(escnn_nn.GeometricTensor(features, kind)).tensor
    return output


def _dense(layer: nn.Module) -> Dense:
    if not isinstance(layer, EquivariantLayer | PlainLayer):
        raise TypeError(f"{type(layer).__name__} has no dense weights")
    return layer.dense()


def _children(head: nn.Module) -> nn.ModuleList:
    if not isinstance(head, nn.ModuleList):
        raise TypeError(f"{type(head).__name__} is not a head")
    return head
