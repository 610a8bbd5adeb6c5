# SPDX-License-Identifier: MIT
"""One chunk of frames through the convolutional encoder, with a hand-written backward pass.

Exactly a chain of convolutions and rectifiers; autograd could differentiate it as well. Writing the
backward pass by hand allows the weight gradient of the small layers to be one matrix product over
gathered patches, which is up to twice as fast as the convolution library's own, and
saves the bookkeeping between layers. The images themselves never need a gradient.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

_GATHER_UP_TO_PX = 7  # layers with at most this many output pixels a side gather patches


class EncodeChunk(torch.autograd.Function):
    """(n, C, H, W) images in channels_last order to (n, features)."""

    @staticmethod
    def forward(
        ctx: Any,
        images: Tensor,
        flags: Tensor | None,
        flag_weight: Tensor | None,
        strides: tuple[int, ...],
        *parameters: Tensor,
    ) -> Tensor:
        """Run the layers.

        Args:
            ctx: autograd's notebook.
            images: (n, C, H, W), channels_last.
            flags: (n,) one number per frame that shifts the first layer, or None.
            flag_weight: (channels,) how much a flag of 1 shifts each channel, or None.
            strides: stride of each layer.
            parameters: filter and bias of each layer in turn; filters channels_last.
        """
        activation = images
        activations = [images]
        for layer, stride in enumerate(strides):
            weight, bias = parameters[2 * layer], parameters[2 * layer + 1]
            activation = _convolve(activation, weight, bias, stride)
            if layer == 0 and flags is not None and flag_weight is not None:
                activation.add_((flags[:, None] * flag_weight)[:, :, None, None])
            activations.append(activation.relu_())
        ctx.strides = strides
        ctx.flags = flags
        ctx.save_for_backward(*activations, *parameters[::2])
        return activation.flatten(1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of the parameters (never of the images)."""
        layers = len(ctx.strides)
        activations = ctx.saved_tensors[: layers + 1]
        weights = ctx.saved_tensors[layers + 1 :]
        parameter_gradients: list[Tensor | None] = [None] * (2 * layers)
        flag_gradient = None
        gradient = gradients[0].view_as(activations[-1])
        for layer in reversed(range(layers)):
            source, result = activations[layer], activations[layer + 1]
            gradient = torch.ops.aten.threshold_backward(gradient, result, 0)
            weight, stride = weights[layer], ctx.strides[layer]
            per_frame = gradient.sum(dim=(2, 3))
            parameter_gradients[2 * layer + 1] = per_frame.sum(dim=0)
            if layer == 0 and ctx.flags is not None:
                flag_gradient = ctx.flags @ per_frame
            data, own = _gradients(gradient, source, weight, stride, with_data=layer > 0)
            parameter_gradients[2 * layer] = own
            if data is not None:
                gradient = data
        return (None, None, flag_gradient, None, *parameter_gradients)


def _convolve(features: Tensor, weight: Tensor, bias: Tensor, stride: int) -> Tensor:
    kernel = weight.shape[-1]
    if features.shape[-1] == kernel:  # one output pixel: a plain matrix product
        rows = _pixels_last(features).flatten(1)
        return functional.linear(rows, _pixels_last(weight).flatten(1), bias)[:, :, None, None]
    return functional.conv2d(features, weight, bias, stride)


def _gradients(
    gradient: Tensor, source: Tensor, weight: Tensor, stride: int, with_data: bool
) -> tuple[Tensor | None, Tensor]:
    """Gradient of a convolution's input (if asked) and filter."""
    out, channels, kernel, _ = weight.shape
    size = gradient.shape[-1]
    if size == 1 and source.shape[-1] == kernel:
        flat, matrix = gradient.flatten(1), _pixels_last(weight).flatten(1)
        rows = _pixels_last(source)
        own = (flat.t() @ rows.flatten(1)).view(out, kernel, kernel, channels)
        data = (flat @ matrix).view(rows.shape).permute(0, 3, 1, 2) if with_data else None
        return data, own.permute(0, 3, 1, 2)
    gathers = size <= _GATHER_UP_TO_PX
    data, own, _ = torch.ops.aten.convolution_backward(
        gradient,
        source,
        weight,
        None,
        [stride, stride],
        [0, 0],
        [1, 1],
        False,
        [0, 0],
        1,
        [with_data, not gathers, False],
    )
    if gathers:
        flat = _pixels_last(gradient).reshape(-1, out)
        own = (flat.t() @ _patches(source, kernel, stride, size)).view(
            out, kernel, kernel, channels
        )
        own = own.permute(0, 3, 1, 2)
    return data, own


def _patches(source: Tensor, kernel: int, stride: int, size: int) -> Tensor:
    """(n * size * size, kernel * kernel * channels) of a channels_last input."""
    pixels = _pixels_last(source)
    frames, height, width, channels = pixels.shape
    row = width * channels
    windows = pixels.as_strided(
        (frames, size, size, kernel, kernel * channels),
        (height * row, stride * row, stride * channels, row, 1),
    )
    return windows.reshape(frames * size * size, kernel * kernel * channels)


def _pixels_last(tensor: Tensor) -> Tensor:
    """(a, h, w, b) view of a channels_last (a, b, h, w) tensor; copies only if it is not one."""
    return tensor.permute(0, 2, 3, 1).contiguous()
