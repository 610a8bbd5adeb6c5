# SPDX-License-Identifier: MIT
"""Passes over the pixels of many images, compiled, each reading and writing a pixel once."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

_QUARTER = math.pi / 2
# Closer than this to a quarter turn, an angle is treated as one and moves pixels without rounding.
_EXACT_TOLERANCE_RAD = 1e-9


def rotation_cos_sin(angle_rad: float) -> tuple[float, float]:
    """Cosine and sine of an angle; whole numbers for quarter turns."""
    cos, sin = math.cos(angle_rad), math.sin(angle_rad)
    quarters = round(angle_rad / _QUARTER)
    if abs(angle_rad - quarters * _QUARTER) < _EXACT_TOLERANCE_RAD:
        return float(round(cos)), float(round(sin))
    return cos, sin


def rotate_into(
    out: NDArray[np.float32],
    rows: NDArray[np.int64],
    images: NDArray[np.float32] | NDArray[np.uint16],
    angle_rad: float,
    unit: float = 1.0,
) -> None:
    """Rotate images (T, S, S) counter-clockwise about their centre into ``out[rows]``.

    As ``symmetry.rotate_images``: bilinear with the border repeated, exact for quarter turns.

    Args:
        out: (F, S, S) where rotated images go.
        rows: (T,) row of ``out`` for each image.
        images: stored or ready images.
        angle_rad: angle of the rotation.
        unit: what one step of a stored image is worth.
    """
    cos, sin = rotation_cos_sin(angle_rad)
    _rotate_into(out, rows, images, cos, sin, np.float32(unit))


@njit(cache=True, nogil=True)
def _rotate_into(out, rows, images, cos, sin, unit):  # type: ignore[no-untyped-def]
    frames, size, _ = images.shape
    last = size - 1
    middle = 0.5 * last
    # The source has one more row and column, so that the right and lower neighbour always exist;
    # on the border their weight is zero.
    width = size + 1
    corner = np.empty(size * size, np.int32)
    right = np.empty(size * size, np.float32)
    down = np.empty(size * size, np.float32)
    for i in range(size):
        for j in range(size):
            x = cos * (j - middle) - sin * (i - middle) + middle
            y = sin * (j - middle) + cos * (i - middle) + middle
            x = min(max(x, 0.0), float(last))
            y = min(max(y, 0.0), float(last))
            pixel = i * size + j
            corner[pixel] = int(y) * width + int(x)
            right[pixel] = x - int(x)
            down[pixel] = y - int(y)
    source = np.zeros(width * width, np.float32)
    for frame in range(frames):
        for i in range(size):
            for j in range(size):
                source[i * width + j] = unit * images[frame, i, j]
        rotated = out[rows[frame]].reshape(-1)
        for pixel in range(size * size):
            at = corner[pixel]
            above = source[at] + right[pixel] * (source[at + 1] - source[at])
            at += width
            below = source[at] + right[pixel] * (source[at + 1] - source[at])
            rotated[pixel] = above + down[pixel] * (below - above)


def blocks_into(
    out: NDArray[np.float32],
    images: NDArray[np.float32],
    block: int,
    offset: float,
    scale: float,
) -> None:
    """Write (images - offset) * scale, (N, S, S), as blocks of b x b pixels.

    ``out`` is (N, S / b, S / b, b^2) with a block's pixels in the last axis, row by row.
    """
    _blocks_kernel(block)(out, images, np.float32(offset), np.float32(scale))


@cache
def _blocks_kernel(side: int) -> Any:
    """The compiled pass for one size of block, known to the compiler, which unrolls over it."""

    @njit(cache=True, nogil=True)
    def kernel(out, images, offset, scale):  # type: ignore[no-untyped-def]
        frames, size, _ = images.shape
        for frame in range(frames):
            for i in range(size):
                first = i % side * side
                for cell in range(size // side):
                    for j in range(side):
                        depth = images[frame, i, cell * side + j]
                        out[frame, i // side, cell, first + j] = (depth - offset) * scale

    return kernel
