# SPDX-License-Identifier: MIT
"""Unpacking and rotating images on the device that learns; the CPU has faster kernels of its own.

Only the stored 16-bit steps cross to the device, from pinned memory where it can read that; what a
rotated image is, `image_kernels.rotate_into` says, to which this agrees up to rounding.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from equi_rl.data.device import HOST, Device
from equi_rl.data.episode import DEPTH_STEP_M
from equi_rl.data.image_kernels import rotation_cos_sin

_UNSIGNED = 0xFFFF


def host_steps(frames: int, size_px: int, device: torch.device) -> Tensor:
    """Room on the host for (F, S, S) stored depths, as int16 bits, from where the device copies."""
    pinned = device.type == Device.CUDA.value
    return torch.empty(frames, size_px, size_px, dtype=torch.int16, device=HOST, pin_memory=pinned)


def unpack(steps: Tensor, device: torch.device) -> Tensor:
    """Stored depths (F, S, S) as int16 bits to depths [m] on the device."""
    moved = steps.to(device, non_blocking=True).to(torch.int32)
    return moved.bitwise_and(_UNSIGNED).to(torch.float32) * DEPTH_STEP_M


def rotate_frames(depth_m: Tensor, angles_rad: list[float], episode_of_frame: Tensor) -> Tensor:
    """Images (F, S, S), each rotated counter-clockwise about its centre by its episode's angle.

    Bilinear with the border repeated.

    Args:
        depth_m: images.
        angles_rad: one for each episode.
        episode_of_frame: (F,) which episode a frame belongs to.
    """
    turns = torch.tensor([_matrix(angle) for angle in angles_rad], device=HOST)
    of_frame = turns.to(depth_m.device)[episode_of_frame]
    frames, size, _ = depth_m.shape
    grid = functional.affine_grid(of_frame, [frames, 1, size, size], align_corners=True)
    rotated = functional.grid_sample(
        depth_m[:, None], grid, mode="bilinear", padding_mode="border", align_corners=True
    )
    return rotated[:, 0]


def _matrix(angle_rad: float) -> list[list[float]]:
    """Where a pixel of the rotated image comes from, about the centre."""
    cos, sin = rotation_cos_sin(angle_rad)
    return [[cos, -sin, 0.0], [sin, cos, 0.0]]
