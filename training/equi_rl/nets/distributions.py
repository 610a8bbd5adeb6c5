# SPDX-License-Identifier: MIT
"""Squashed Gaussian over the action (w, x, y, z, r), equivariant as a distribution.

``tanh`` per component commutes with signed permutations, hence with C4 and D4. ``radial``
squashes (x, y) along their direction, ``u -> u tanh(|u|) / |u|``, which commutes with all rotations
of the plane (C8, D8); its price is that (x, y) stay inside the unit disc instead of the square.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

_LOG_2 = math.log(2.0)
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_TINY = 1e-6
_X, _Y = 1, 2


def squash(raw: Tensor, kind: str) -> Tensor:
    """Unbounded (..., 5) to an action inside (-1, 1)."""
    if kind == "tanh":
        return torch.tanh(raw)
    radius = _radius(raw)
    scale = torch.tanh(radius) / radius
    rest = torch.tanh(raw)
    return torch.cat(
        [rest[..., :_X], raw[..., _X : _Y + 1] * scale[..., None], rest[..., _Y + 1 :]], dim=-1
    )


def sample(mean: Tensor, log_std: Tensor, noise: Tensor, kind: str) -> tuple[Tensor, Tensor]:
    """Reparametrised action and its log-density.

    Args:
        mean: (..., 5) mean of the Gaussian before squashing.
        log_std: (..., 5) logarithm of its standard deviations.
        noise: (..., 5) standard normal numbers.
        kind: ``tanh`` or ``radial``.

    Returns:
        action (..., 5) in (-1, 1), log-density (...,).
    """
    raw = mean + log_std.exp() * noise
    gaussian = (-0.5 * noise.square() - log_std - _HALF_LOG_2PI).sum(dim=-1)
    return squash(raw, kind), gaussian - log_slope(raw, kind)


def log_slope(raw: Tensor, kind: str) -> Tensor:
    """Logarithm of the squash's Jacobian determinant, (...,); exact for any size of ``raw``."""
    log_sech2 = _log_sech2(raw)
    if kind == "tanh":
        return log_sech2.sum(dim=-1)
    radius = _radius(raw)
    others = log_sech2.sum(dim=-1) - log_sech2[..., _X] - log_sech2[..., _Y]
    # In polar coordinates: dr' / dr = sech^2(r), and the arc shrinks by tanh(r) / r.
    return others + _log_sech2(radius) + torch.log(torch.tanh(radius) / radius)


def _log_sech2(value: Tensor) -> Tensor:
    """log(1 - tanh^2), written so that saturated values keep their gradient."""
    return 2.0 * (_LOG_2 - value - functional.softplus(-2.0 * value))


def _radius(raw: Tensor) -> Tensor:
    return torch.sqrt(raw[..., _X].square() + raw[..., _Y].square() + _TINY**2)
