# SPDX-License-Identifier: MIT
"""Draw the printed board into a camera image, as a camera would see it.

Every output pixel is traced back through the lens to the board's plane and sampled from the print,
several rays per pixel, so edges are anti-aliased and lens distortion is exact.
"""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from equi_calibration.board.board import BoardSpec, default_tcp_from_board
from equi_calibration.board.intrinsics import Intrinsics

FloatArray = NDArray[np.float64]

_TEXTURE_PIXELS_PER_M = 8000.0
_RAYS_PER_PIXEL_SIDE = 3
_PAPER_WHITE = 225.0
_INK_BLACK = 22.0
_BACK_GREY = 120.0
# The plate is this far behind the front of the depth image before it counts as hidden.
_DEPTH_TOLERANCE_M = 0.004


def default_board() -> tuple[BoardSpec, FloatArray]:
    """The board of the simulated cell and its pose (4, 4) in the TCP frame."""
    board = BoardSpec()
    return board, default_tcp_from_board(board)


def draw_board(
    image: NDArray[np.uint8],
    depth_m: NDArray[np.floating] | None,
    board: BoardSpec,
    intrinsics: Intrinsics,
    camera_from_board: FloatArray,
) -> None:
    """Draw the board into a grey (H, W) or colour (H, W, 3) image, in place.

    Args:
        image: 8-bit image to draw into.
        depth_m: depth (H, W) of what is already drawn [m]; the board is drawn only where it is
            nearer, and its depth is written back. None: nothing hides the board.
        board: the print.
        intrinsics: of the camera.
        camera_from_board: pose (4, 4) of the board in the optical frame.
    """
    box = _pixel_box(board, intrinsics, camera_from_board)
    if box is None:
        return
    u0, u1, v0, v1 = box
    weight, value, depth = _trace(board, intrinsics, camera_from_board, box)
    if depth_m is not None:
        behind = np.asarray(depth_m[v0:v1, u0:u1], dtype=np.float64)
        empty = ~np.isfinite(behind) | (behind <= 0.0)
        weight = np.where(empty | (depth < behind + _DEPTH_TOLERANCE_M), weight, 0.0)
        depth_m[v0:v1, u0:u1] = np.where(weight > 0.5, depth, depth_m[v0:v1, u0:u1])
    region = image[v0:v1, u0:u1]
    if image.ndim == 3:
        weight, value = weight[..., None], value[..., None]
    region[:] = np.clip((1.0 - weight) * region + weight * value + 0.5, 0, 255).astype(np.uint8)


def _trace(
    board: BoardSpec,
    intrinsics: Intrinsics,
    camera_from_board: FloatArray,
    box: tuple[int, int, int, int],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Coverage (0..1), brightness and depth per pixel of the box."""
    u0, u1, v0, v1 = box
    rays = _RAYS_PER_PIXEL_SIDE
    inner = (np.arange(rays) + 0.5) / rays - 0.5
    us = (np.arange(u0, u1)[:, None] + inner).ravel()
    vs = (np.arange(v0, v1)[:, None] + inner).ravel()
    grid_u, grid_v = np.meshgrid(us, vs)
    if any(intrinsics.distortion):
        normal = intrinsics.undistort(np.stack([grid_u.ravel(), grid_v.ravel()], axis=1))
        x, y = normal[:, 0].reshape(grid_u.shape), normal[:, 1].reshape(grid_u.shape)
    else:
        x = (grid_u - intrinsics.cx_px) / intrinsics.fx_px
        y = (grid_v - intrinsics.cy_px) / intrinsics.fy_px
    rotation, origin = camera_from_board[:3, :3], camera_from_board[:3, 3]
    normal_axis = rotation[:, 2]
    slope = normal_axis[0] * x + normal_axis[1] * y + normal_axis[2]
    with np.errstate(divide="ignore", invalid="ignore"):
        depth = float(normal_axis @ origin) / slope
    px, py, pz = x * depth - origin[0], y * depth - origin[1], depth - origin[2]
    board_x = rotation[0, 0] * px + rotation[1, 0] * py + rotation[2, 0] * pz
    board_y = rotation[0, 1] * px + rotation[1, 1] * py + rotation[2, 1] * pz
    margin = board.margin_m
    on_plate = (
        (board_x > -margin)
        & (board_x < board.width_m + margin)
        & (board_y > -margin)
        & (board_y < board.height_m + margin)
        & (depth > 0.05)
    )
    if float(normal_axis @ origin) <= 0.0:  # z points into the board: this is its back
        brightness = np.full(depth.shape, _BACK_GREY)
    else:
        # Blur the print to the size of a ray's footprint, else fine markers alias.
        footprint_m = (
            float(np.median(depth[on_plate])) / intrinsics.fx_px / rays
            if (on_plate.any())
            else 1e-3
        )
        texture = _texture(board, round(footprint_m * _TEXTURE_PIXELS_PER_M))
        scale = _TEXTURE_PIXELS_PER_M
        brightness = cv2.remap(
            texture,
            ((board_x + margin) * scale - 0.5).astype(np.float32),
            ((board_y + margin) * scale - 0.5).astype(np.float32),
            cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_REPLICATE,
        ).astype(np.float64)
    shape = (v1 - v0, rays, u1 - u0, rays)
    cover = on_plate.astype(np.float64).reshape(shape)
    weight = cover.mean(axis=(1, 3))
    total = np.maximum(cover.sum(axis=(1, 3)), 1.0)
    value = (brightness.reshape(shape) * cover).sum(axis=(1, 3)) / total
    mean_depth = (np.where(on_plate, depth, 0.0).reshape(shape)).sum(axis=(1, 3)) / total
    return weight, value, mean_depth


@lru_cache(maxsize=16)
def _texture(board: BoardSpec, blur_px: int) -> NDArray[np.uint8]:
    """The print with its white margin, 8 px per mm, blurred by a box of blur_px."""
    scale = _TEXTURE_PIXELS_PER_M
    size = (round(board.width_m * scale), round(board.height_m * scale))
    print_ = board.opencv().generateImage(size, marginSize=0, borderBits=1)
    margin = round(board.margin_m * scale)
    padded = cv2.copyMakeBorder(
        print_, margin, margin, margin, margin, cv2.BORDER_CONSTANT, value=[255.0]
    ).astype(np.float32)
    inked = _INK_BLACK + (_PAPER_WHITE - _INK_BLACK) * padded / 255.0
    if blur_px > 1:
        odd = blur_px | 1
        blurred = cv2.blur(inked, (odd, odd), borderType=cv2.BORDER_REPLICATE)
        inked = np.asarray(blurred, dtype=np.float32)
    return np.clip(inked + 0.5, 0, 255).astype(np.uint8)


def _pixel_box(
    board: BoardSpec, intrinsics: Intrinsics, camera_from_board: FloatArray
) -> tuple[int, int, int, int] | None:
    """Pixels u0, u1, v0, v1 that the plate can cover; None if it is out of view."""
    outline = board.outline_m() @ camera_from_board[:3, :3].T + camera_from_board[:3, 3]
    if np.any(outline[:, 2] < 0.05):
        return None
    pixels = intrinsics.project(outline)
    low = np.floor(pixels.min(axis=0)) - 2
    high = np.ceil(pixels.max(axis=0)) + 3
    u0, v0 = max(0, int(low[0])), max(0, int(low[1]))
    u1 = min(intrinsics.width_px, int(high[0]))
    v1 = min(intrinsics.height_px, int(high[1]))
    return (u0, u1, v0, v1) if u1 > u0 and v1 > v0 else None
