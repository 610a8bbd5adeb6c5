"""Augmentation of whole episodes on the fly: one random rotation, crop or shift per episode.

Image and action turn together: rotating the world by an angle rotates every depth image about the
TCP (which lies between pixels, at 41.5 of 84) and the x, y part of every action; gripper, height
and yaw steps stay. Multiples of a quarter turn are exact permutations of pixels.
"""

from __future__ import annotations

import math

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from equi_rl.nets.symmetry import turn_images

_QUARTER = math.pi / 2
# Closer than this to a quarter turn, an angle is treated as one and rotates without rounding.
_EXACT_TOLERANCE_RAD = 1e-9


def rotate_depth(depth_m: Tensor, angle_rad: float) -> Tensor:
    """Depth images (T, S, S) of a world turned counter-clockwise by angle_rad about the TCP.

    Pixels from outside the view repeat the nearest border pixel.
    """
    return turn_images(depth_m, angle_rad)


def rotate_actions(actions: Tensor, angle_rad: float) -> Tensor:
    """Policy vectors (T, 5) of a world turned counter-clockwise by angle_rad.

    Where a turned x or y step would leave [-1, 1], the pair is shortened and keeps its direction.
    """
    turns = round(angle_rad / _QUARTER)
    cos, sin = math.cos(angle_rad), math.sin(angle_rad)
    if abs(angle_rad - turns * _QUARTER) < _EXACT_TOLERANCE_RAD:
        cos, sin = float(round(cos)), float(round(sin))
    turned = actions.clone()
    turned[:, 1] = cos * actions[:, 1] - sin * actions[:, 2]
    turned[:, 2] = sin * actions[:, 1] + cos * actions[:, 2]
    longest = turned[:, 1:3].abs().amax(dim=1, keepdim=True).clamp(min=1.0)
    turned[:, 1:3] /= longest
    return turned


def random_angle_rad(rng: np.random.Generator) -> float:
    """An angle drawn uniformly from the circle [rad]."""
    return float(rng.uniform(0.0, 2 * math.pi))


def crop(depth_m: Tensor, offset_px: tuple[int, int], size_px: int) -> Tensor:
    """A window (T, size, size) of depth images (T, S, S) that starts at `offset_px` (RAD)."""
    row, column = offset_px
    _check_window(depth_m, offset_px, size_px)
    return depth_m[:, row : row + size_px, column : column + size_px]


def random_crop_offset_px(rng: np.random.Generator, from_px: int, to_px: int) -> tuple[int, int]:
    """Start of a random window; every position is equally likely."""
    row, column = rng.integers(from_px - to_px + 1, size=2)
    return int(row), int(column)


def centre_crop(depth_m: Tensor, size_px: int) -> Tensor:
    """The middle window (T, size, size): what an agent trained on crops sees when it acts."""
    margin = (depth_m.shape[-1] - size_px) // 2
    return crop(depth_m, (margin, margin), size_px)


def shift(depth_m: Tensor, offset_px: tuple[int, int]) -> Tensor:
    """Depth images (T, S, S) moved by whole pixels; the border is repeated (DrQ)."""
    rows, columns = offset_px
    size = depth_m.shape[-1]
    reach = max(abs(rows), abs(columns))
    padded = F.pad(depth_m[None], (reach,) * 4, mode="replicate")[0]
    return crop(padded, (reach - rows, reach - columns), size)


def random_shift_px(rng: np.random.Generator, reach_px: int = 4) -> tuple[int, int]:
    """A shift of at most `reach_px` along each axis; every shift is equally likely."""
    rows, columns = rng.integers(-reach_px, reach_px + 1, size=2)
    return int(rows), int(columns)


def _check_window(depth_m: Tensor, offset_px: tuple[int, int], size_px: int) -> None:
    size = depth_m.shape[-1]
    if not all(0 <= offset <= size - size_px for offset in offset_px):
        raise ValueError(
            f"a window of {size_px} px at {offset_px} does not lie in an image of {size} px"
        )
