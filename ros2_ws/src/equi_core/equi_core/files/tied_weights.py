# SPDX-License-Identifier: MIT
"""Weights of an equivariant policy, each tied filter stored once.

In an equivariant layer the filters of one field are rotated copies of each other: for the output
channel of the element g h it is the filter of h, rotated by g, its input channels permuted by g.
`tie_weights` keeps one filter per field (for elements that do not map pixels onto pixels, such as
45 degrees, one more); `untie_weights` makes the copies again. Copies move numbers and compute
nothing, so the policy is the same on every machine.

A tied layer is stored as `<layer>.tied_weight` (fields, filters per field, in, k, k) and
`<layer>.tied_bias` (fields,). Files of earlier exports have `<layer>.weight` alone and pass through
unchanged, as do layers without symmetry and the small layers to and from actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[Any]
"""float32; float64 where copies are averaged."""

_TIED_WEIGHT, _TIED_BIAS = ".tied_weight", ".tied_bias"
_FIRST_LAYER = "history.encoder.0"  # its input, depth and flag, has no channels to permute
_LAYERS_OF_FLAG = {
    "equivariant_encoder": "history.encoder.",
    "equivariant_lstm": "history.lstm",
    "equivariant_heads": "head.",
}
MAX_TIE_ERROR = 1e-5
"""Of the largest weight: how far a copy may be from its filter before it is no copy."""


class TiedWeightsError(ValueError):
    """Weights that are not tied as the contract says; names the layer."""


def tie_weights(
    tensors: Mapping[str, FloatArray], network: Mapping[str, Any]
) -> dict[str, FloatArray]:
    """The tensors of a policy with each tied filter once; `network` is the contract's entry."""
    group = _Group.named(str(network["group"]))
    prefixes = tuple(prefix for flag, prefix in _LAYERS_OF_FLAG.items() if network[flag])
    tied: dict[str, FloatArray] = {}
    for name, tensor in tensors.items():
        layer, _, kind = name.rpartition(".")
        if not prefixes or not layer.startswith(prefixes):
            tied[name] = tensor
        elif kind == "weight":
            tied[layer + _TIED_WEIGHT] = _tied_weight(layer, tensor, group)
        else:
            tied[layer + _TIED_BIAS] = _tied_bias(layer, tensor, group)
    return tied


def untie_weights(tensors: Mapping[str, FloatArray], group_name: str) -> dict[str, FloatArray]:
    """Every filter written out; raises TiedWeightsError for tensors of impossible shape."""
    dense: dict[str, FloatArray] = {}
    for name, tensor in tensors.items():
        if name.endswith(_TIED_WEIGHT):
            layer = name.removesuffix(_TIED_WEIGHT)
            dense[layer + ".weight"] = _untied_weight(layer, tensor, _Group.named(group_name))
        elif name.endswith(_TIED_BIAS):
            order = _Group.named(group_name).order
            dense[name.removesuffix(_TIED_BIAS) + ".bias"] = np.repeat(tensor.reshape(-1), order)
        else:
            dense[name] = tensor
    return dense


@dataclass(frozen=True)
class _Group:
    """C_n or D_n; element number m * n + k mirrors first (m), then rotates by k / n of a turn."""

    rotations: int
    mirrored: bool

    @classmethod
    def named(cls, name: str) -> _Group:
        kind, rotations = name[:1], name[1:]
        if kind not in ("C", "D") or rotations not in ("4", "8"):
            raise TiedWeightsError(f"group {name!r} is unknown; known: C4, C8, D4, D8")
        return cls(int(rotations), kind == "D")

    @property
    def order(self) -> int:
        return self.rotations * (2 if self.mirrored else 1)

    def product(self, left: int, right: int) -> int:
        n = self.rotations
        turn = -(right % n) if left >= n else right % n
        return (left % n + turn) % n + n * ((left >= n) != (right >= n))

    def inverse(self, g: int) -> int:
        return g if g >= self.rotations else -g % self.rotations

    def exact(self, has_pixels: bool) -> list[int]:
        """Elements that move the numbers of a filter without mixing them."""
        return [g for g in range(self.order) if not has_pixels or 4 * g % self.rotations == 0]

    def sources(self, has_pixels: bool) -> tuple[list[int], list[tuple[int, int]]]:
        """Elements whose filters are kept, and of each element (rotation g, kept filter)."""
        kept: list[int] = []
        origin: dict[int, tuple[int, int]] = {}
        for h in range(self.order):
            if h not in origin:
                kept.append(h)
                for g in self.exact(has_pixels):
                    origin.setdefault(self.product(g, h), (g, len(kept) - 1))
        return kept, [origin[h] for h in range(self.order)]

    def moved(self, g: int, filters: FloatArray, permutes_input: bool) -> FloatArray:
        """(fields, in, k, k) filters acted on by g."""
        if permutes_input:
            fields, channels = filters.shape[:2]
            order = [self.product(self.inverse(g), h) for h in range(self.order)]
            split = filters.reshape(fields, channels // self.order, self.order, *filters.shape[2:])
            filters = split[:, :, order].reshape(filters.shape)
        if g >= self.rotations:
            filters = filters[..., ::-1]
        return np.rot90(filters, 4 * (g % self.rotations) // self.rotations, axes=(-2, -1))


def _tied_weight(layer: str, weight: FloatArray, group: _Group) -> FloatArray:
    filters = weight if weight.ndim == 4 else weight[..., None, None]
    if len(filters) % group.order or (layer != _FIRST_LAYER and filters.shape[1] % group.order):
        raise TiedWeightsError(
            f"layer {layer}: {filters.shape[:2]} channels do not divide by {group.order}"
        )
    kept, origins = group.sources(filters.shape[-1] > 1)
    by_element = filters.reshape(-1, group.order, *filters.shape[1:]).astype(np.float64)
    # Expansion rounds each copy a little differently: the mean of them is nearest to all.
    sums = np.zeros((len(by_element), len(kept), *filters.shape[1:]))
    for h, (g, source) in enumerate(origins):
        sums[:, source] += group.moved(group.inverse(g), by_element[:, h], layer != _FIRST_LAYER)
    tied = (sums * len(kept) / group.order).astype(np.float32)
    error = float(np.abs(_untied_weight(layer, tied, group) - weight).max())
    if error > MAX_TIE_ERROR * float(np.abs(weight).max()):
        raise TiedWeightsError(
            f"layer {layer}: its filters differ from rotated copies by {error:.1e}; the contract"
            " calls it equivariant"
        )
    return tied


def _tied_bias(layer: str, bias: FloatArray, group: _Group) -> FloatArray:
    by_field = bias.reshape(-1, group.order).astype(np.float64)
    if np.abs(by_field - by_field[:, :1]).max() > MAX_TIE_ERROR * max(1.0, np.abs(bias).max()):
        raise TiedWeightsError(f"layer {layer}: its bias is not constant over a field")
    mean: FloatArray = by_field.mean(axis=1).astype(np.float32)
    return mean


def _untied_weight(layer: str, tied: FloatArray, group: _Group) -> FloatArray:
    if tied.ndim != 5 or tied.shape[-1] != tied.shape[-2]:
        raise TiedWeightsError(
            f"layer {layer}: tied_weight has shape {tied.shape}; it must be (fields, filters, in,"
            " k, k)"
        )
    permutes_input = layer != _FIRST_LAYER
    if permutes_input and tied.shape[2] % group.order:
        raise TiedWeightsError(f"layer {layer}: {tied.shape[2]} input channels do not form fields")
    has_pixels = tied.shape[-1] > 1
    kept, origins = group.sources(has_pixels)
    if tied.shape[1] != len(kept):
        raise TiedWeightsError(
            f"layer {layer}: {tied.shape[1]} filters per field; this group has {len(kept)}"
        )
    copies = [group.moved(g, tied[:, source], permutes_input) for g, source in origins]
    filters = np.stack(copies, axis=1).reshape(-1, *tied.shape[2:])
    return np.ascontiguousarray(filters if has_pixels else filters[..., 0, 0])
