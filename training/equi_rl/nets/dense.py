# SPDX-License-Identifier: MIT
"""The fast path: the same networks on expanded weights, over packed frames.

Each distinct frame is encoded once per network. The first convolution (8x8, stride 4) becomes a 2x2
convolution on 4x4 blocks of pixels; the holding plane, being constant over the image, becomes a
bias per frame. Frames go through the encoder in chunks
small enough to stay in the cache, in channels_last order. The LSTM is torch's own, with its input
product batched over all steps. bfloat16 is used for the convolutions only where the device computes
in it; elsewhere everything is float32. On an accelerator all frames go at once, and nothing is used
that only the CPU has.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from equi_rl.data.array_episode import ArrayBatch
from equi_rl.data.device import HOST, is_host
from equi_rl.data.episode_batch import EpisodeBatch
from equi_rl.data.image_kernels import blocks_into
from equi_rl.nets.config import ArchitectureError, NetworkConfig
from equi_rl.nets.encoder_kernel import EncodeChunk
from equi_rl.nets.layers import Dense
from equi_rl.nets.memories import LstmState, memory_named
from equi_rl.nets.networks import (
    ActorWeights,
    CriticWeights,
    HistoryWeights,
    initial_state,
)

CHUNK_FRAMES = 128  # the largest activation of a chunk is 6.5 MB: it stays in the L3 cache


@dataclass(frozen=True)
class Frames:
    """Images for any network of one config; cut into blocks chunk by chunk, in the cache.

    Attributes:
        pixels: (N, S, S) depth [m].
        holding: (N,) holding flag as a number.
        block: side b of a block of pixels that the first layer takes for one.
        offset_m, scale_per_m: how depth is normalised.
    """

    pixels: Tensor
    holding: Tensor
    block: int
    offset_m: float
    scale_per_m: float

    def __len__(self) -> int:
        return len(self.pixels)

    def first(self, count: int) -> Frames:
        """The first ``count`` frames, without copying."""
        return dataclasses.replace(self, pixels=self.pixels[:count], holding=self.holding[:count])

    def images(self, chosen: Any) -> Tensor:
        """(n, b^2, S / b, S / b) of the chosen frames, channels_last."""
        pixels = self.pixels[chosen]
        cells = pixels.shape[-1] // self.block
        if not is_host(pixels):
            return self._images_on_device(pixels, cells)
        blocks = torch.empty(len(pixels), cells, cells, self.block**2, device=HOST)
        blocks_into(blocks.numpy(), pixels.numpy(), self.block, self.offset_m, self.scale_per_m)
        return blocks.permute(0, 3, 1, 2)

    def _images_on_device(self, pixels: Tensor, cells: int) -> Tensor:
        """As `images`, in operations that every device has."""
        side = self.block
        normalised = (pixels - self.offset_m) * self.scale_per_m
        blocks = normalised.reshape(len(pixels), cells, side, cells, side).permute(0, 1, 3, 2, 4)
        # Contiguous in this order, the block's pixels last: channels_last after the permutation.
        return blocks.reshape(len(pixels), cells, cells, side * side).permute(0, 3, 1, 2)


def convolution_dtype(device: torch.device = HOST) -> torch.dtype:
    """bfloat16 where the device has instructions for it, else float32."""
    if device == HOST:
        capable = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    else:
        capable = getattr(getattr(torch, device.type, None), "is_bf16_supported", None)
    return torch.bfloat16 if capable is not None and capable() else torch.float32


def chunk_frames(frames: Frames) -> int:
    """Frames that go through the encoder at once: what a cache holds, or all on an accelerator."""
    return CHUNK_FRAMES if is_host(frames.pixels) else max(1, len(frames))


def prepare_depth(config: NetworkConfig, depth_m: Tensor, holding: Tensor) -> Frames:
    """Frames of (N, S, S) depth [m] of any floating type; ``holding`` is (N,)."""
    size = config.observation_size
    if depth_m.shape[1:] != (size, size) or holding.shape != depth_m.shape[:1]:
        raise ArchitectureError(
            f"expected depth (N, {size}, {size}) and holding (N,), got {tuple(depth_m.shape)}"
            f" and {tuple(holding.shape)}"
        )
    return Frames(
        depth_m.to(torch.float32),
        holding.to(torch.float32),
        _block_size(config),
        config.depth_offset_m,
        config.depth_scale_per_m,
    )


def prepare_observation(config: NetworkConfig, observation: Tensor) -> Frames:
    """(N, 2, S, S) observations, as an environment returns them."""
    return prepare_depth(config, observation[:, 0], observation[:, 1, 0, 0])


def frames_of(config: NetworkConfig, batch: EpisodeBatch | ArrayBatch) -> Frames | Tensor:
    """Every frame of a batch, as `encode` takes them."""
    if isinstance(batch, EpisodeBatch):
        return prepare_depth(config, batch.depth_m, batch.holding)
    return prepare_arrays(config, batch.observations)


def prepare_arrays(config: NetworkConfig, observations: Tensor) -> Tensor:
    """(N, C) vectors or (N, C, S, S) images as images (N, C, S, S)."""
    size, channels = config.observation_size, config.observation_channels.channels
    images = observations.to(torch.float32)
    images = images[..., None, None] if images.dim() == 2 else images
    if images.shape[1:] != (channels, size, size):
        raise ArchitectureError(
            f"expected observations (N, {channels}, {size}, {size}), or (N, {channels}) if they are"
            f" vectors, got {tuple(observations.shape)}"
        )
    return images


def encode(
    config: NetworkConfig,
    layers: tuple[Dense, ...],
    frames: Frames | Tensor,
    rows: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Feature (M, C) of the frames, or of the frames listed in ``rows``."""
    if isinstance(frames, Tensor):
        return _encode_arrays(config, layers, frames if rows is None else frames[rows])
    first = _first_layer(layers[0], frames)
    filters = [first, *(layer.weight for layer in layers[1:])]
    parameters = [
        tensor
        for weight, layer in zip(filters, layers, strict=True)
        for tensor in (_channels_last(weight.to(dtype)), layer.bias.to(dtype))
    ]
    strides = (config.encoder_strides[0] // frames.block, *config.encoder_strides[1:])
    # The holding plane is constant over the image: a bias per frame.
    flag_weight = layers[0].weight[:, 1].sum(dim=(1, 2)).to(dtype)
    if rows is not None and _is_a_prefix(rows):
        frames, rows = frames.first(len(rows)), None
    total = len(frames) if rows is None else len(rows)
    features = []
    chunk = chunk_frames(frames)
    for start in range(0, total, chunk):
        chosen: Any = slice(start, start + chunk)
        if rows is not None:
            chosen = rows[chosen]
        images = frames.images(chosen).to(dtype)
        flags = frames.holding[chosen].to(dtype)
        features.append(EncodeChunk.apply(images, flags, flag_weight, strides, *parameters))
    return torch.cat(features).float()


def _encode_arrays(config: NetworkConfig, layers: tuple[Dense, ...], images: Tensor) -> Tensor:
    """Plain convolutions over (N, C, S, S); a vector is an image of one pixel."""
    if config.observation_size == 1:
        features = images.flatten(1)
        for layer in layers:
            features = apply_relu(layer, features)
        return features
    for layer, stride in zip(layers, config.encoder_strides, strict=True):
        images = functional.conv2d(images, layer.weight, layer.bias, stride).relu_()
    return images.flatten(1)


def run_history(
    config: NetworkConfig,
    weights: HistoryWeights,
    features: Tensor,
    previous_actions: Tensor | None,
    counts: Tensor,
    state: LstmState | None = None,
) -> tuple[Tensor, LstmState]:
    """Run the LSTM, or what the config has in its place, over packed features.

    Args:
        config: the network's architecture.
        weights: dense weights.
        features: (F, C) packed encoder features.
        previous_actions: (F, A) packed, or None.
        counts: (T,) int64 number of episodes alive at each step, not increasing.
        state: (B, H) states of the episodes in packed order; default: start of an episode.

    Returns:
        (F, head_input) packed [LSTM output, feature], and the final states.
    """
    inputs = features
    if weights.action is not None:
        if previous_actions is None:
            raise ArchitectureError("this network needs the previous actions, got None")
        inputs = torch.cat([features, apply_relu(weights.action, previous_actions)], dim=1)
    if state is None:
        state = initial_state(config, int(counts[0]), device=features.device)
    memory = memory_named(config.memory)
    output, state = memory.run(weights.lstm.matrix, weights.lstm.bias, inputs, counts, state)
    history = torch.cat([output, features], dim=1) if config.skip_connection else output
    return history, state


def actor_outputs(
    config: NetworkConfig, weights: ActorWeights, history: Tensor
) -> tuple[Tensor, Tensor]:
    """Mean and log-std (N, 5) from history features (N, C)."""
    for layer in weights.head:
        history = apply_relu(layer, history)
    spread = apply(weights.log_std, history).clamp(*config.log_std_range)
    return apply(weights.mean, history), spread


def critic_values(
    config: NetworkConfig, weights: CriticWeights, history: Tensor, actions: Tensor
) -> Tensor:
    """Values (heads, N) of actions (N, A) after histories (N, C)."""
    features = torch.cat([history, apply_relu(weights.value_action, actions)], dim=1)
    norm = config.critic_layer_norm
    return torch.stack([_run_head(head, features, norm)[:, 0] for head in weights.heads])


def apply(layer: Dense, features: Tensor) -> Tensor:
    """1x1 layer on (N, in)."""
    return torch.addmm(layer.bias, features, layer.matrix.t())


def apply_relu(layer: Dense, features: Tensor) -> Tensor:
    """1x1 layer on (N, in) followed by a rectifier."""
    return apply(layer, features).relu_()


def named_tensors(weights: Any, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
    """Dotted name and tensor of every weight, e.g. ``history.encoder.0.weight``."""
    if isinstance(weights, Tensor):
        yield prefix, weights
    elif hasattr(weights, "_fields"):
        for name in weights._fields:
            yield from named_tensors(getattr(weights, name), f"{prefix}.{name}" if prefix else name)
    elif isinstance(weights, tuple):
        for index, item in enumerate(weights):
            yield from named_tensors(item, f"{prefix}.{index}")


def map_tensors(weights: Any, function: Any) -> Any:
    """The same structure with ``function`` applied to every tensor."""
    if weights is None or isinstance(weights, Tensor):
        return None if weights is None else function(weights)
    items = [map_tensors(item, function) for item in weights]
    return type(weights)(*items) if hasattr(weights, "_fields") else tuple(items)


def _run_head(layers: tuple[Dense, ...], features: Tensor, layer_norm: bool) -> Tensor:
    for layer in layers[:-1]:
        features = _normalised_relu(apply(layer, features), layer_norm)
    return apply(layers[-1], features)


def _normalised_relu(features: Tensor, layer_norm: bool) -> Tensor:
    if layer_norm:
        features = functional.layer_norm(features, features.shape[-1:])
    return features.relu_()


def _is_a_prefix(rows: Tensor) -> bool:
    """Whether rows = 0, 1, 2, ...: a slice is cheaper than gathering, e.g. for equal lengths."""
    return bool((rows == torch.arange(len(rows), device=rows.device)).all())


def _block_size(config: NetworkConfig) -> int:
    kernel, stride = config.encoder_kernels[0], config.encoder_strides[0]
    fits = kernel % stride == 0 and config.observation_size % stride == 0
    return stride if fits else 1


def _first_layer(layer: Dense, frames: Frames) -> Tensor:
    """The depth channel of the first filter, rearranged for blocks of pixels."""
    weight = layer.weight[:, :1]
    out, source, kernel, _ = weight.shape
    block = frames.block
    cells = kernel // block
    # The block's pixels are channels of Frames.images, row by row.
    blocks = weight.reshape(out, source, cells, block, cells, block).permute(0, 1, 3, 5, 2, 4)
    return blocks.reshape(out, source * block * block, cells, cells)


def _channels_last(weight: Tensor) -> Tensor:
    return weight.contiguous(memory_format=torch.channels_last)
