# SPDX-License-Identifier: MIT
"""Augmentation of whole episodes on the fly: one random rotation, crop or shift per episode.

Rotating the world by an angle rotates every depth image about the TCP (which lies between pixels,
at 41.5 of 84; `image_kernels.rotate_into`) and the x, y part of every action; gripper, height and
yaw steps stay. Multiples of a quarter turn are exact permutations. A step that was made is never
shortened, because the images show all of it: it may leave the square [-1, 1] of actions that a
policy can ask for, or another angle is drawn. A label is shortened to the square, which is where a
policy can follow it.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from equi_rl.data.image_kernels import rotation_cos_sin

_ANGLES_TRIED = 8
"""Random angles before a quarter turn is taken, which fits always."""

Images = TypeVar("Images", Tensor, NDArray[Any])
"""Depth images (T, S, S) in any unit."""


def rotate_actions(actions: Tensor, angle_rad: float) -> Tensor:
    """Policy vectors (T, 5) of a world rotated counter-clockwise by angle_rad."""
    cos, sin = rotation_cos_sin(angle_rad)
    rotated = actions.clone()
    rotated[:, 1] = cos * actions[:, 1] - sin * actions[:, 2]
    rotated[:, 2] = sin * actions[:, 1] + cos * actions[:, 2]
    return rotated


def rotate_labels(labels: Tensor, angle_rad: float) -> Tensor:
    """Actions to imitate (T, 5), rotated; what would leave the square keeps its direction only."""
    rotated = rotate_actions(labels, angle_rad)
    longest = rotated[:, 1:3].abs().amax(dim=1, keepdim=True).clamp(min=1.0)
    rotated[:, 1:3] /= longest
    return rotated


def random_angle_rad(rng: np.random.Generator) -> float:
    """An angle drawn uniformly from the circle [rad]."""
    return float(rng.uniform(0.0, 2 * math.pi))


def random_fitting_angle_rad(rng: np.random.Generator, *actions: NDArray[np.float32]) -> float:
    """An angle [rad] by which no step leaves the square; a quarter turn if few others do.

    Args:
        rng: source of randomness.
        actions: policy vectors (T, 5) each; rows of NaN do not count.
    """
    steps = np.concatenate([rows[:, 1:3] for rows in actions])
    for _ in range(_ANGLES_TRIED):
        angle_rad = random_angle_rad(rng)
        cos, sin = rotation_cos_sin(angle_rad)
        rotated = steps @ np.array([[cos, sin], [-sin, cos]], dtype=np.float32)
        if not np.any(np.abs(rotated) > 1.0):  # false for NaN
            return angle_rad
    return float(rng.integers(4)) * math.pi / 2


def crop(depth: Images, offset_px: tuple[int, int], size_px: int) -> Images:
    """A window (T, size, size) of depth images (T, S, S) that starts at `offset_px` (RAD)."""
    row, column = offset_px
    _check_window(depth.shape[-1], offset_px, size_px)
    return depth[:, row : row + size_px, column : column + size_px]


def random_crop_offset_px(rng: np.random.Generator, from_px: int, to_px: int) -> tuple[int, int]:
    """Start of a random window; every position is equally likely."""
    row, column = rng.integers(from_px - to_px + 1, size=2)
    return int(row), int(column)


def centre_crop(depth: Images, size_px: int) -> Images:
    """The middle window (T, size, size): what an agent trained on crops sees when it acts."""
    margin = (depth.shape[-1] - size_px) // 2
    return crop(depth, (margin, margin), size_px)


def shift(depth: NDArray[Any], offset_px: tuple[int, int]) -> NDArray[Any]:
    """Depth images (T, S, S) moved by whole pixels; the border is repeated (DrQ)."""
    rows, columns = offset_px
    size = depth.shape[-1]
    reach = max(abs(rows), abs(columns))
    padded = np.pad(depth, ((0, 0), (reach, reach), (reach, reach)), mode="edge")
    return crop(padded, (reach - rows, reach - columns), size)


def random_shift_px(rng: np.random.Generator, reach_px: int = 4) -> tuple[int, int]:
    """A shift of at most `reach_px` along each axis; every shift is equally likely."""
    rows, columns = rng.integers(-reach_px, reach_px + 1, size=2)
    return int(rows), int(columns)


def _check_window(size: int, offset_px: tuple[int, int], size_px: int) -> None:
    if not all(0 <= offset <= size - size_px for offset in offset_px):
        raise ValueError(
            f"a window of {size_px} px at {offset_px} does not lie in an image of {size} px"
        )
