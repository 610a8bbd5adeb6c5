# SPDX-License-Identifier: MIT
"""A critic that sees the simulator's state: an ensemble of small networks with LayerNorm.

State and action are given in a frame of the scene (`equi_rl.envs.privileged_state`), so a value
does not change when scene and action are rotated together: the symmetry is built into the input.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

ACTION_SIZE = 5


class StateCritic(nn.Module):
    """Values of actions in states, by `heads` networks of two hidden layers each."""

    def __init__(self, state_size: int, heads: int, width: int) -> None:
        super().__init__()
        self.state_size, self.heads = state_size, heads
        self.from_state = _matrix(heads, state_size, width, state_size + ACTION_SIZE)
        self.from_action = _matrix(heads, ACTION_SIZE, width, state_size + ACTION_SIZE)
        self.first_bias = nn.Parameter(torch.zeros(heads, 1, width))
        self.hidden = _matrix(heads, width, width, width)
        self.hidden_bias = nn.Parameter(torch.zeros(heads, 1, width))
        self.out = _matrix(heads, width, 1, 100 * width)  # starts near zero
        self.out_bias = nn.Parameter(torch.zeros(heads, 1, 1))

    def forward(self, states: Tensor, actions: Tensor) -> Tensor:
        """Values (heads, K, N) of actions (K, N, 5) in states (N, S): K candidates in each."""
        candidates, count = actions.shape[:2]
        seen = torch.matmul(states, self.from_state) + self.first_bias
        asked = torch.matmul(actions.reshape(1, candidates * count, -1), self.from_action)
        first = seen[:, None] + asked.reshape(self.heads, candidates, count, -1)
        first = _normalised(first.reshape(self.heads, candidates * count, -1))
        second = _normalised(torch.baddbmm(self.hidden_bias, first, self.hidden))
        values = torch.baddbmm(self.out_bias, second, self.out)
        return values.reshape(self.heads, candidates, count)


def rotate_horizontally(actions: Tensor, angle_rad: Tensor) -> Tensor:
    """Actions (..., 5) with their horizontal part rotated counter-clockwise by angles (...)."""
    c, s = torch.cos(angle_rad), torch.sin(angle_rad)
    closing, x, y, z, yaw = actions.unbind(dim=-1)
    return torch.stack([closing, c * x - s * y, s * x + c * y, z, yaw], dim=-1)


def _matrix(heads: int, inputs: int, outputs: int, fan_in: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(heads, inputs, outputs) * math.sqrt(2.0 / fan_in))


def _normalised(hidden: Tensor) -> Tensor:
    return functional.layer_norm(hidden, hidden.shape[-1:]).relu()
