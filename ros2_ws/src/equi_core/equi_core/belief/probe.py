# SPDX-License-Identifier: MIT
"""An equivariant linear probe: from the LSTM state to "the movable object is over there".

The state consists of regular fields of a group of rotations (and mirrors) of the table. The score
of a place `d`, relative to the gripper, is linear in the state:

    score(h, d) = sum over fields f, elements g:  h[f, g] * K_f(g^-1 d)

with `K_f` a combination of a few fixed functions of the plane. Rotating the scene by an element
permutes the state and rotates the places, which only renames the terms of the sum: the score turns
with the scene, exactly. The belief that the first of two objects is the movable one is the logistic
function of the difference of their scores, so nothing that both share can count.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

PARTS = ("hidden", "cell")
"""Of the LSTM state, in the order in which a probe takes them."""
_NEAR_M = 0.01
"""Nearer to the gripper than this a direction fades."""
N_ANGULAR = 5


class ProbeError(ValueError):
    """A probe that cannot be used; says what is wrong and what to do."""


@dataclass(frozen=True)
class PlaneBasis:
    """Functions of a place relative to the gripper: bells of some widths, times directions."""

    widths_m: tuple[float, ...] = (0.04, 0.12)
    """Of the bells [m]; a function that is 1 everywhere comes first."""

    def __post_init__(self) -> None:
        if not self.widths_m or any(not 0.001 <= width <= 10.0 for width in self.widths_m):
            raise ProbeError(f"widths_m is {self.widths_m}; each must be 0.001 to 10 m")

    @property
    def count(self) -> int:
        """Number of functions: that which is 1 everywhere says nothing and is left out."""
        return (1 + len(self.widths_m)) * N_ANGULAR - 1

    def values(self, places_m: ArrayLike) -> FloatArray:
        """The functions (..., count) at places (..., 2) [m] relative to the gripper."""
        places = np.asarray(places_m, dtype=np.float64)
        squared = np.sum(places**2, axis=-1)
        x, y = np.moveaxis(places / np.sqrt(squared + _NEAR_M**2)[..., None], -1, 0)
        angular = np.stack([np.ones_like(x), x, y, x * x - y * y, 2 * x * y], axis=-1)
        bells = [np.ones_like(squared), *(np.exp(-squared / w**2) for w in self.widths_m)]
        products = np.stack(bells, axis=-1)[..., :, None] * angular[..., None, :]
        values: FloatArray = products.reshape(*places.shape[:-1], -1)[..., 1:]
        return values


def group_matrices(group: str) -> FloatArray:
    """The elements (order, 2, 2) of C_n or D_n on the plane, in the order of regular fields.

    Raises:
        ProbeError: the group is none of them.
    """
    found = re.fullmatch(r"([CD])([1-9]\d?)", group)
    if found is None:
        raise ProbeError(f"group is '{group}'; a probe knows C_n and D_n, such as C4")
    count = int(found[2])
    matrices = []
    for mirror in (1.0, -1.0)[: 1 + (found[1] == "D")]:
        for step in range(count):
            angle = 2.0 * math.pi * step / count
            cos, sin = math.cos(angle), math.sin(angle)
            if (4 * step) % count == 0:  # quarter turns without rounding error
                cos, sin = float(round(cos)), float(round(sin))
            matrices.append([[cos, -sin * mirror], [sin, cos * mirror]])
    return np.array(matrices)


@dataclass(frozen=True, eq=False)
class BeliefProbe:
    """A fitted probe."""

    group: str
    parts: tuple[str, ...]
    """Which parts of the LSTM state it reads."""
    channels: int
    """Channels of each part."""
    basis: PlaneBasis
    weights: FloatArray
    """(fields, functions): the coefficients of `K_f`."""

    def __post_init__(self) -> None:
        if not self.parts or any(part not in PARTS for part in self.parts):
            raise ProbeError(f"parts is {self.parts}; it must be of {', '.join(PARTS)}")
        order = len(self._matrices)
        if self.channels < order or self.channels % order:
            raise ProbeError(
                f"channels is {self.channels}; it must be a multiple of {order} for {self.group}"
            )
        wanted = (len(self.parts) * self.channels // order, self.basis.count)
        if self.weights.shape != wanted or not np.isfinite(self.weights).all():
            raise ProbeError(
                f"weights have shape {self.weights.shape}; {wanted} finite numbers are needed"
            )

    @cached_property
    def _matrices(self) -> FloatArray:
        return group_matrices(self.group)

    def score(self, state: ArrayLike, places_m: ArrayLike) -> FloatArray:
        """How much speaks for the movable object being there, as a logit.

        Args:
            state: (parts * channels,) of the LSTM.
            places_m: (..., 2) relative to the gripper, along the axes of the task frame [m].

        Returns:
            (...) scores; only differences between places of one state mean something.
        """
        places = np.asarray(places_m, dtype=np.float64)
        seen = regular_features(self._fields(state), places, self.basis, self._matrices)
        scores: FloatArray = np.tensordot(seen, self.weights, axes=2)
        return scores

    def belief(self, state: ArrayLike, places_m: ArrayLike) -> FloatArray:
        """Probability (n,) of each of n places (n, 2) to be that of the movable object."""
        scores = self.score(state, places_m)
        scores = np.exp(scores - scores.max())
        shares: FloatArray = scores / scores.sum()
        return shares

    def _fields(self, state: ArrayLike) -> FloatArray:
        values = np.asarray(state, dtype=np.float64)
        if values.shape != (len(self.parts) * self.channels,):
            raise ProbeError(
                f"state has shape {values.shape}; this probe reads {' and '.join(self.parts)} of "
                f"{self.channels} channels: is it of another policy?"
            )
        return values.reshape(-1, len(self._matrices))


def regular_features(
    fields: FloatArray, places_m: FloatArray, basis: PlaneBasis, matrices: FloatArray
) -> FloatArray:
    """What a probe is linear in: (..., fields, functions) for places (..., 2).

    Args:
        fields: (fields, order) of the state.
        places_m: relative to the gripper [m].
        basis: functions of the plane.
        matrices: (order, 2, 2) of the group.
    """
    # g^-1 d: the matrices are orthogonal.
    moved = np.einsum("gji,...j->...gi", matrices, places_m)
    features: FloatArray = np.einsum("fg,...gb->...fb", fields, basis.values(moved))
    return features
