# SPDX-License-Identifier: MIT
"""What a stereo camera makes of exact depth: the errors of its disparity, in device order.

Shadow of the second imager, failing edges, grazing surfaces, noise and steps of the disparity,
whole depth units. `NoiseSpec` describes the parameters.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numba
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

_NOISE_FIELDS = 6


@lru_cache(maxsize=4)
def noise_fields(shape: tuple[int, int], correlation_px: float) -> NDArray[np.float32]:
    """A few unit-variance fields; each frame takes one of them, shifted at random."""
    fields = np.random.default_rng(0).standard_normal((_NOISE_FIELDS, *shape))
    if correlation_px > 0:
        fields = ndimage.gaussian_filter(fields, (0.0, correlation_px, correlation_px), mode="wrap")
    return (fields / fields.std()).astype(np.float32)


@numba.njit(cache=True, nogil=True)
def to_disparity(depth, near, far, focal_baseline, disparity):  # type: ignore[no-untyped-def]
    """Disparity per pixel [px]; 0 where nothing lies within range."""
    rows, cols = depth.shape
    for v in range(rows):
        for u in range(cols):
            z = depth[v, u]
            disparity[v, u] = focal_baseline / z if near <= z <= far else 0.0


@numba.njit(cache=True, nogil=True)
def add_stereo_errors(  # type: ignore[no-untyped-def]  # noqa: C901 - one pass over the image, in device order
    disparity,
    normal,
    pose,
    intrinsics,
    focal_baseline,
    field,
    shift_v,
    shift_u,
    p,
    band,
    shadow,
    seed,
    units,
):
    """Write into `units` what a stereo camera reports for an exact disparity."""
    subpixel, step, edge_step, edge_missing, edge_mixed = p[0], p[1], p[2], p[3], p[4]
    grazing, missing, unit, scale = p[5], p[6], p[7], p[8]
    rows, cols = disparity.shape
    focal, cx, cy = intrinsics[0], intrinsics[2], intrinsics[3]
    edges_fail = edge_missing + edge_mixed > 0.0
    # A xorshift generator: a library call per pixel would cost more than the image.
    state = np.uint64(seed)
    for v in range(rows):
        leftmost = math.inf
        noise_row = field[(v + shift_v) % rows]
        for u in range(cols - 1, -1, -1):
            d = disparity[v, u]
            if d == 0.0:
                continue
            if shadow:
                # Where this point lands in the right image: hidden if something nearer landed
                # at or left of it, unseen if it falls off the image.
                landed = u - d
                if landed >= leftmost or landed < 0.0:
                    continue
                leftmost = landed
            state = _xorshift(state)
            chance = (state >> np.uint64(40)) * 2.0**-24
            if chance < missing:
                continue
            if grazing > 0.0 and _cosine(normal[v, u], pose, focal, u - cx, v - cy) < grazing:
                continue
            if edges_fail:
                low, high = _neighbour_range(disparity, v, u, band)
                if high - low > edge_step:
                    state = _xorshift(state)
                    chance = (state >> np.uint64(40)) * 2.0**-24
                    if chance < edge_missing:
                        continue
                    if chance < edge_missing + edge_mixed and low > 0.0:
                        share = (chance - edge_missing) / edge_mixed
                        d = share * low + (1.0 - share) * high
            d += subpixel * noise_row[(u + shift_u) % cols]
            if step > 0.0:
                d = math.floor(d / step + 0.5) * step
            if d <= 0.0:
                continue
            count = math.floor(focal_baseline / d * scale / unit + 0.5)
            if 0 < count < 65536:
                units[v, u] = count


@numba.njit(cache=True, nogil=True)
def _xorshift(state):  # type: ignore[no-untyped-def]
    """Next state of a 64-bit xorshift generator; its upper bits are the random number."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state


@numba.njit(cache=True, nogil=True)
def _cosine(normal, pose, focal, du, dv):  # type: ignore[no-untyped-def]
    """Cosine between the view ray of a pixel and the surface normal."""
    x, y = du / focal, dv / focal
    dx = pose[0, 0] * x + pose[0, 1] * y + pose[0, 2]
    dy = pose[1, 0] * x + pose[1, 1] * y + pose[1, 2]
    dz = pose[2, 0] * x + pose[2, 1] * y + pose[2, 2]
    length = math.sqrt(dx * dx + dy * dy + dz * dz)
    return abs(normal[0] * dx + normal[1] * dy + normal[2] * dz) / length


@numba.njit(cache=True, nogil=True)
def _neighbour_range(disparity, v, u, band):  # type: ignore[no-untyped-def]
    """Least and greatest disparity at the ends of a cross of reach 1 and `band`."""
    rows, cols = disparity.shape
    low = high = disparity[v, u]
    up, down = max(v - band, 0), min(v + band, rows - 1)
    left, right = max(u - band, 0), min(u + band, cols - 1)
    for d in (
        disparity[up, u],
        disparity[down, u],
        disparity[v, left],
        disparity[v, right],
        disparity[min(v + 1, rows - 1), u],
        disparity[v, min(u + 1, cols - 1)],
    ):
        low, high = min(low, d), max(high, d)
    return low, high
