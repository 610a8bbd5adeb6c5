# SPDX-License-Identifier: MIT
"""One linear layer, with or without symmetry, that can hand out its dense weights.

``dense()`` is the bridge between the two ways of running a network: the equivariant layer expands
its few free coefficients into an ordinary filter (differentiably, once per update), after which
everything is plain convolution and matrix product. ``forward`` is the escnn way and serves as the
reference that the fast path is tested against.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from equi_rl.nets.symmetry import Group, Layout


class Dense(NamedTuple):
    """Expanded weights: filter (out, in, k, k) or matrix (out, in), and bias (out,)."""

    weight: Tensor
    bias: Tensor

    @property
    def matrix(self) -> Tensor:
        """The (out, in) matrix of a 1x1 layer."""
        return self.weight.flatten(1)


class EquivariantLayer(nn.Module):
    """escnn convolution between two layouts."""

    def __init__(
        self, group: Group, source: Layout, target: Layout, kernel: int = 1, stride: int = 1
    ) -> None:
        from escnn import nn as escnn_nn

        super().__init__()
        self.convolution = escnn_nn.R2Conv(
            source.field_type(group), target.field_type(group), kernel, stride=stride
        )

    def dense(self) -> Dense:
        """Expand the free coefficients; gradients flow back through the expansion."""
        weight, bias = self.convolution.expand_parameters()
        if bias is None:  # no trivial component in the target, hence no bias
            bias = weight.new_zeros(weight.shape[0])
        return Dense(weight, bias)

    def forward(self, features: Tensor) -> Tensor:
        """Run (N, in, H, W) through escnn itself, which expands its filters at every call."""
        from escnn import nn as escnn_nn

        output: Tensor = self.convolution(
            escnn_nn.GeometricTensor(features, self.convolution.in_type)
        ).tensor
        return output

    def train(self, mode: bool = True) -> EquivariantLayer:
        """Leave escnn in training mode: its eval mode caches filters and renames the state."""
        self.training = mode
        return self


class PlainLayer(nn.Module):
    """Ordinary convolution with the same interface."""

    def __init__(self, source: int, target: int, kernel: int = 1, stride: int = 1) -> None:
        super().__init__()
        self.stride = stride
        self.weight = nn.Parameter(torch.empty(target, source, kernel, kernel))
        self.bias = nn.Parameter(torch.zeros(target))
        nn.init.kaiming_normal_(self.weight, nonlinearity="relu")

    def dense(self) -> Dense:
        """The parameters themselves."""
        return Dense(self.weight, self.bias)

    def forward(self, features: Tensor) -> Tensor:
        """Run (N, in, H, W)."""
        return functional.conv2d(features, self.weight, self.bias, self.stride)


Layer = EquivariantLayer | PlainLayer


def make_layer(
    group: Group,
    source: Layout,
    target: Layout,
    *,
    equivariant: bool,
    kernel: int = 1,
    stride: int = 1,
) -> Layer:
    """A layer between two layouts; the plain one only looks at the channel counts."""
    if equivariant:
        return EquivariantLayer(group, source, target, kernel, stride)
    return PlainLayer(source.channels, target.channels, kernel, stride)


def count_parameters(module: nn.Module) -> int:
    """Number of trainable numbers."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)
