# SPDX-License-Identifier: MIT
"""Equivariance as weight tying: the weights of a dense layer as signed copies of few free numbers.

Every representation used on grids and lines (trivial, regular, sign) permutes coordinates and at
most changes signs. For such representations the law of an equivariant layer,

    W = rho_out(g) (g . W) rho_in(g)^-1      for every g of the group,

where g also turns the filter, says that entries of W in one orbit of the group are equal up to
sign. So an equivariant layer *is* a dense layer whose entries are tied: ``W[e] = sign[e] *
free[index[e]]``.
This gives the full space of solutions (no band limit), costs one gather per update, and lets the
equivariant and the plain network run the very same code; the plain one simply ties nothing.

The robots' networks (`equi_rl.nets`) get their filters from escnn instead: they have
representations that do not permute (actions, rotations by 45 degrees), strides and a band limit,
and one network per process. Here several learners train side by side, so every weight has an axis
of learners, which escnn's modules do not. Every filter of escnn is one of the tied ones (tested).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from equi_rl.nets.symmetry import Element, Group, Layout, SymmetryError, transform_images


@dataclass(frozen=True)
class Tie:
    """How the entries of one dense array derive from free numbers.

    Attributes:
        index: dense shape, int64, number of the free parameter behind each entry.
        sign: dense shape, float32, +1 or -1, or 0 where the symmetry forces the entry to vanish.
        free: how many free parameters there are.
    """

    index: np.ndarray
    sign: np.ndarray
    free: int

    def reshape(self, *shape: int) -> Tie:
        """The same tie with the dense array in another shape."""
        return Tie(self.index.reshape(shape), self.sign.reshape(shape), self.free)


def untied(shape: tuple[int, ...]) -> Tie:
    """No symmetry: every entry is its own free parameter."""
    count = int(np.prod(shape))
    return Tie(np.arange(count).reshape(shape), np.ones(shape, dtype=np.float32), count)


def tie_filter(group: Group, source: Layout, target: Layout, kernel: int = 1) -> Tie:
    """Tie of an equivariant filter in the order (kernel, kernel, in, out)."""
    shape = (target.channels, source.channels, kernel, kernel)
    entry = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    images, signs = [], []
    for g in group:
        to, to_sign = signed_permutation(group, target, g)
        of, of_sign = signed_permutation(group, source, g)
        moved = entry[np.ix_(to, of)]
        # The flip of a line has no image to mirror; elsewhere the filter turns with the group.
        images.append(moved if group.on_line else transform_images(group, g, moved))
        signs.append(np.broadcast_to(np.outer(to_sign, of_sign)[:, :, None, None], shape))
    tie = _tie_orbits(np.stack(images), np.stack(signs))
    return Tie(tie.index.transpose(2, 3, 1, 0), tie.sign.transpose(2, 3, 1, 0), tie.free)


def tie_bias(group: Group, target: Layout) -> Tie:
    """Tie of an equivariant bias (out,): only what every g leaves alone may be added."""
    permutations = [signed_permutation(group, target, g) for g in group]
    return _tie_orbits(
        np.stack([p for p, _ in permutations]), np.stack([s for _, s in permutations])
    )


def signed_permutation(group: Group, layout: Layout, g: Element) -> tuple[np.ndarray, np.ndarray]:
    """Arrays (source, sign), each (channels,), with ``(rho(g) v) = sign * v[source]``."""
    sources, signs = [np.empty(0, dtype=np.int64)], [np.empty(0)]
    start = 0
    for kind, channels in layout.parts:
        own = np.arange(channels)
        sign = np.ones(channels)
        if kind == "regular" and channels % group.order == 0:
            fields = own.reshape(-1, group.order)
            own = fields[:, group.regular_permutation(g)].ravel()
        elif kind == "sign" and group.on_line:
            sign *= -1.0 if g.mirror else 1.0
        elif kind != "trivial":
            raise SymmetryError(
                f"{channels} {kind} channels cannot be tied for the group {group.name}; use trivial"
                f" channels, regular ones in multiples of {group.order}, or sign on a line"
            )
        sources.append(start + own)
        signs.append(sign)
        start += channels
    return np.concatenate(sources), np.concatenate(signs)


def _tie_orbits(images: np.ndarray, signs: np.ndarray) -> Tie:
    """From the image of every entry under every g, (order, ...), name one free number per orbit."""
    representative = images.min(axis=0)
    at_representative = images == representative
    # Sign with which the representative enters; two different signs cancel, the entry must vanish.
    positive = (at_representative & (signs > 0)).any(axis=0)
    negative = (at_representative & (signs < 0)).any(axis=0)
    sign = positive.astype(np.float32) - negative.astype(np.float32)
    names, index = np.unique(np.where(sign == 0, -1, representative), return_inverse=True)
    index = index.reshape(sign.shape)
    if names[0] == -1:  # entries that vanish need no parameter of their own
        names, index = names[1:], np.maximum(index - 1, 0)
    return Tie(index, sign, len(names))


class Expansion:
    """Expands the free parameters of several arrays at once: (learners, free) -> (learners, dense).

    ``pull_back`` is the adjoint, which turns gradients of dense entries into gradients of free
    numbers. It gathers from the known places of each free number, many times faster on a CPU than
    scattering.
    """

    def __init__(self, ties: list[Tie]) -> None:
        offsets = np.cumsum([0] + [tie.free for tie in ties])
        self.free = int(offsets[-1])
        index = np.concatenate([t.index.ravel() + o for t, o in zip(ties, offsets, strict=False)])
        sign = np.concatenate([tie.sign.ravel() for tie in ties])
        index[sign == 0] = 0  # an array may have no free number to point to
        self.is_identity = len(index) == self.free and bool((sign == 1).all())
        self._index = torch.from_numpy(index)
        self._sign = torch.from_numpy(sign)
        self._places = torch.from_numpy(_places(index, sign, self.free))

    @torch.no_grad()
    def expand(self, free: Tensor) -> Tensor:
        """Dense = sign * free[index]; a new tensor."""
        if self.is_identity:
            return free.clone()
        return free.index_select(1, self._index).mul_(self._sign)

    @torch.no_grad()
    def pull_back(self, gradient: Tensor) -> Tensor:
        """The gradient of a free number sums over its places, with their signs."""
        if self.is_identity:
            return gradient
        signed = torch.nn.functional.pad(
            gradient * self._sign, (0, 1)
        )  # one more place, worth zero
        parts = signed.index_select(1, self._places.flatten())
        return parts.view(len(gradient), *self._places.shape).sum(dim=1)


def _places(index: np.ndarray, sign: np.ndarray, free: int) -> np.ndarray:
    """(most copies, free) int64: where each free number stands; unused slots point past the end."""
    used = np.flatnonzero(sign)
    order = used[np.argsort(index[used], kind="stable")]
    counts = np.bincount(index[order], minlength=free)
    rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    places = np.full((counts.max(), free), len(index), dtype=np.int64)
    places[rank, index[order]] = order
    return places
