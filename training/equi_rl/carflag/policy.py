# SPDX-License-Identifier: MIT
"""Recurrent actor-critic for the CarFlag worlds, for several learners at once.

    o_t -> encoder (2-D only) -> memory -> actor: logits over actions (regular representation)
                                        -> critic: value (trivial representation)

The memory is an LSTM, or for comparison a particle filter (`memories`).

The layers follow the paper: no previous action (it can be read off the observations), no skip
connections, zero initial state. In 1-D the observation enters the memory directly in the sign
representation of the flip; in 2-D a convolutional encoder 2 -> 2 -> 4 -> 8 -> 16 regular fields
of C4 shrinks the 9 x 9 grid to one cell with 3 x 3 filters (larger grids repeat the last layer
until one cell is left). The plain network has the same widths without the symmetry.

Every weight has a leading axis of learners that share nothing but the program: small networks spend
their time in overhead, and four seeds side by side cost little more than one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from equi_rl.carflag.memories.memory import Memory
from equi_rl.carflag.memories.recorded_lstm import GATES, LstmMemory
from equi_rl.carflag.tied_weights import Expansion, Tie, tie_bias, tie_filter, untied
from equi_rl.carflag.worlds import CarFlag1D, World
from equi_rl.nets.symmetry import Group, Layout, group_named, regular, sign, trivial

ENCODER_WIDTHS = (8, 16, 32, 64)  # channels: 2, 4, 8, 16 regular fields of C4
KERNEL = 3
ACTOR_INIT_SCALE = 0.01  # nearly uniform first policy


@dataclass(frozen=True)
class _Array:
    """One dense array of the network and how it starts."""

    name: str
    tie: Tie
    init_bound: float  # entries start uniform in +- this

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tie.index.shape


Weights = dict[str, Tensor]  # dense arrays by name, each (learners, ...)


class GridPolicy:
    """Layout of the network for one world; holds no weights, so it can run any learner's."""

    def __init__(self, world: World, *, equivariant: bool, memory: Memory | None = None) -> None:
        self.world = world
        self.memory: Memory = LstmMemory() if memory is None else memory
        self.equivariant = equivariant
        on_line = isinstance(world, CarFlag1D)
        self.group: Group = group_named("flip" if on_line else "C4")
        self._arrays: list[_Array] = []
        # On the line the network sees cells: neighbours differ by 1, not by a 26th of it, or what
        # it does around the hint could hardly depend on the cell.
        self._line_scale = world.position_scale if isinstance(world, CarFlag1D) else 1.0
        features = sign(2) if on_line else self._add_encoder(world.size)
        specs = self.memory.arrays(features)
        self._embedding = specs[0].name
        for spec in specs:
            self._add(spec.name, spec.source, spec.target, spec.init_bound, bias=spec.bias)
        seen = self.memory.outputs
        bound = 1 / math.sqrt(seen.channels)
        self._add("actor", seen, regular(world.NUM_ACTIONS), ACTOR_INIT_SCALE * bound)
        self._add("critic", seen, trivial(1), bound)
        self._expansion = Expansion([array.tie for array in self._arrays])
        self.num_parameters = self._expansion.free
        self.has_encoder = not on_line

    def count_parameters(self, part: str) -> int:
        """Free numbers of one learner in a part: encoder, lstm or memory, actor, critic."""
        return sum(array.tie.free for array in self._arrays if array.name.startswith(part))

    def initial_parameters(
        self, generators: list[np.random.Generator], forget_bias: float = 1.0
    ) -> Tensor:
        """Free parameters (learners, free): dense entries start alike in both agents.

        A fresh LSTM keeps sigmoid(forget_bias) of its memory from one step to the next.
        """
        rows = [
            np.concatenate(
                [g.uniform(-a.init_bound, a.init_bound, a.tie.free) for a in self._arrays]
            )
            for g in generators
        ]
        parameters = np.stack(rows).astype(np.float32)
        ends = np.cumsum([a.tie.free for a in self._arrays])
        for array, end in zip(self._arrays, ends, strict=True):
            if array.name == "lstm_x_b":
                quarter = array.tie.free // 4
                start = end - array.tie.free + GATES.index("forget") * quarter
                parameters[:, start : start + quarter] = forget_bias
        return torch.from_numpy(parameters)

    def initial_state(self, learners: int, batch: int) -> Any:
        """Of the memory, at the start of an episode."""
        return self.memory.initial_state(learners, batch)

    def expand(self, parameters: Tensor) -> Tensor:
        """Dense numbers (learners, dense) from free ones (learners, free); once per update."""
        return self._expansion.expand(parameters)

    def pull_back(self, gradient: Tensor) -> Tensor:
        """Gradient of the free parameters from that of the dense numbers."""
        return self._expansion.pull_back(gradient)

    def weights(self, dense: Tensor) -> Weights:
        """Name the parts of what ``expand`` returned."""
        sizes = [math.prod(array.shape) for array in self._arrays]
        return {
            array.name: piece.reshape(-1, *array.shape)
            for array, piece in zip(self._arrays, dense.split(sizes, dim=1), strict=True)
        }

    def step(
        self, weights: Weights, observation: Tensor, state: Any, noise: Any = None
    ) -> tuple[Tensor, Tensor, Any]:
        """One time step from observations (learners, batch, ...): embed, recur, read out."""
        state = self.memory.recur(weights, self.embed(weights, observation), state, noise)
        return (*self.heads(weights, self.memory.output(weights, state)), state)

    def embed(self, weights: Weights, observation: Tensor) -> Tensor:
        """All that depends on the observation alone: what it adds to a step of the memory.

        (learners, batch, ...) -> (learners, batch, channels). The encoder of the 2-D world has
        no padding and a ReLU after each layer.
        """
        if self.has_encoder:
            features = self._encode(weights, observation)
        else:
            features = observation * self._line_scale
        return torch.baddbmm(weights[f"{self._embedding}_b"], features, weights[self._embedding])

    def _encode(self, weights: Weights, images: Tensor) -> Tensor:
        """(learners, batch, 2, size, size) to features (learners, batch, channels)."""
        learners, batch = images.shape[:2]
        features = images.permute(0, 1, 3, 4, 2).contiguous()
        for layer in range((self.world.size - 1) // 2):
            cells = features.shape[2] - KERNEL + 1
            patches: Tensor = _Patches.apply(features)
            filters, bias = weights[f"encoder{layer}"], weights[f"encoder{layer}_b"]
            features = torch.baddbmm(bias, patches, filters).relu_()
            features = features.view(learners, batch, cells, cells, -1)
        return features.view(learners, batch, -1)

    def heads(self, weights: Weights, remembered: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (learners, batch, actions) and value (learners, batch) of a memory's output."""
        value = torch.baddbmm(weights["critic_b"], remembered, weights["critic"])
        return self.logits(weights, remembered), value.squeeze(-1)

    def logits(self, weights: Weights, remembered: Tensor) -> Tensor:
        """Logits (learners, batch, actions) alone: all that playing needs."""
        return torch.baddbmm(weights["actor_b"], remembered, weights["actor"])

    def _add_encoder(self, size: int) -> Layout:
        source = trivial(2)
        for layer in range((size - 1) // 2):
            target = regular(ENCODER_WIDTHS[min(layer, len(ENCODER_WIDTHS) - 1)])
            fan_in = KERNEL**2 * source.channels
            self._add(f"encoder{layer}", source, target, math.sqrt(6 / fan_in), KERNEL)
            source = target
        return source

    def _add(
        self,
        name: str,
        source: Layout,
        target: Layout,
        init_bound: float,
        kernel: int = 1,
        bias: bool = True,
    ) -> None:
        if self.equivariant:
            tie, offset = (
                tie_filter(self.group, source, target, kernel),
                tie_bias(self.group, target),
            )
        else:
            tie = untied((kernel, kernel, source.channels, target.channels))
            offset = untied((target.channels,))
        self._arrays.append(_Array(name, tie.reshape(-1, target.channels), init_bound))
        if bias:
            self._arrays.append(_Array(f"{name}_b", offset.reshape(1, target.channels), 0.0))


class _Patches(torch.autograd.Function):
    """All 3 x 3 patches of (L, B, n, n, C) as rows: (L, B * m * m, 9 * C), m = n - 2.

    With patches as rows a convolution with one filter per learner is a batched matrix product;
    torch's own backward of this rearrangement is several times slower.
    """

    @staticmethod
    def forward(ctx: Any, features: Tensor) -> Tensor:
        learners, batch, size, _, channels = features.shape
        cells = size - KERNEL + 1
        ctx.sizes = (learners, batch, size, cells, channels)
        # Three neighbours of a row lie side by side in memory, so a patch is three pieces of it.
        row = size * channels
        patches = features.contiguous().as_strided(
            (learners * batch, cells, cells, KERNEL, KERNEL * channels),
            (size * row, row, channels, row, 1),
        )
        return patches.reshape(learners, -1, KERNEL**2 * channels)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        learners, batch, size, cells, channels = ctx.sizes
        parts = gradients[0].view(learners, batch, cells, cells, KERNEL, KERNEL, channels)
        total = parts.new_zeros(learners, batch, size, size, channels)
        for row in range(KERNEL):
            for column in range(KERNEL):
                window = total[:, :, row : row + cells, column : column + cells]
                window += parts[:, :, :, :, row, column]
        return total
