# SPDX-License-Identifier: MIT
"""Images as the latent model sees them: resizing, and the convolutions on either side.

Weights are float32. The convolutions compute in bfloat16 where the device has instructions for it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from equi_rl.nets.dense import convolution_dtype
from equi_rl.slac.config import LatentModelConfig

DEPTH_OFFSET_M = 0.15
DEPTH_SCALE_PER_M = 10.0
"""A pixel is (depth - offset) * scale, as in every other network."""
_NEGATIVE_SLOPE = 0.2


class Frames(NamedTuple):
    """Observations of N frames."""

    pixels: Tensor
    """(N, 1, S, S) scaled depth, at the model's size."""
    holding: Tensor
    """(N,) holding flag, 0 or 1."""


def frames_of(depth_m: Tensor, holding: Tensor, size_px: int) -> Frames:
    """Depth images (N, H, H) [m] and flags (N,) of any type, resized."""
    pixels = (depth_m.to(torch.float32)[:, None] - DEPTH_OFFSET_M) * DEPTH_SCALE_PER_M
    if pixels.shape[-1] != size_px:
        pixels = functional.interpolate(
            pixels, size=(size_px, size_px), mode="bilinear", antialias=True, align_corners=False
        )
    return Frames(pixels, holding.to(torch.float32))


def depth_of(pixels: Tensor) -> Tensor:
    """Scaled pixels as depth [m], in their shape."""
    return pixels / DEPTH_SCALE_PER_M + DEPTH_OFFSET_M


class Encoder(nn.Module):
    """A feature of an image and the holding flag."""

    def __init__(self, config: LatentModelConfig) -> None:
        super().__init__()
        widths = (1, *config.channels)
        self.convolutions = nn.ModuleList(
            nn.Conv2d(before, after, kernel, stride=2, padding=kernel // 2)
            for before, after, kernel in zip(
                widths, widths[1:], (5, *[3] * len(config.channels)), strict=False
            )
        )
        self.cells = config.image_size // 2 ** len(config.channels)
        self.output = nn.Linear(config.channels[-1] * self.cells**2 + 1, config.feature_size)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, frames: Frames) -> Tensor:
        """Features (N, C)."""
        with _mixed_precision(frames.pixels):
            seen = frames.pixels.to(memory_format=torch.channels_last)
            for convolution in self.convolutions:
                seen = functional.leaky_relu(convolution(seen), _NEGATIVE_SLOPE)
        flat = torch.cat([seen.float().flatten(1), frames.holding[:, None]], dim=1)
        return functional.leaky_relu(self.output(flat), _NEGATIVE_SLOPE)


class Decoder(nn.Module):
    """Mean of an image and logit of the holding flag, given a latent state."""

    def __init__(self, config: LatentModelConfig) -> None:
        super().__init__()
        widths = (*reversed(config.channels), 1)
        self.cells = config.image_size // 2 ** len(config.channels)
        self.input = nn.Linear(config.latent_size, widths[0] * self.cells**2)
        self.convolutions = nn.ModuleList(
            nn.ConvTranspose2d(before, after, 4, stride=2, padding=1)
            for before, after in pairwise(widths)
        )
        self.holding = nn.Linear(config.latent_size, 1)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, latent: Tensor) -> tuple[Tensor, Tensor]:
        """Pixels (N, 1, S, S) and logits (N,) of latent states (N, Z)."""
        cells = self.cells
        seen = self.input(latent).reshape(len(latent), -1, cells, cells)
        seen = seen.to(memory_format=torch.channels_last)
        with _mixed_precision(seen):
            for convolution in self.convolutions:
                seen = convolution(functional.leaky_relu(seen, _NEGATIVE_SLOPE))
        return seen.float(), self.holding(latent)[:, 0]


def _mixed_precision(tensor: Tensor) -> torch.autocast:
    dtype = convolution_dtype(tensor.device)
    return torch.autocast(tensor.device.type, dtype=dtype, enabled=dtype is torch.bfloat16)
