# SPDX-License-Identifier: MIT
"""The one observation: heights around the gripper -> the 2 x S x S image that the policy sees.

Training and the robot both end here. The simulator brings heights from its ray caster, the robot
brings points from its cameras; from there on the image is drawn by the same lines of code.

Image axes: rows grow with base_link +x (downwards), columns with +y (to the right), the TCP lies
at the centre (between pixels). The view does not rotate with the gripper; the drawn fingers do. A
counter-clockwise rotation of the world by 90 degrees is `np.rot90(image, 1, axes=(-2, -1))`.

Channel 0 is depth [m]: virtual camera height minus surface height, never below 0. The robot itself
is not part of the height map; its two fingers are drawn at depth 0. Channel 1 is the holding flag.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equi_core.contract import ImageSpec

FloatImage = NDArray[np.float32]

# Decides a pixel centre that lies on a drawn edge the same way after a rotation by 90 degrees,
# whose sine and cosine carry rounding of about 1e-16.
_EDGE_TOLERANCE_M = 1e-9


class ObservationError(ValueError):
    """An input from which no observation can be drawn; names it and what is expected."""


def pixel_centres_m(image: ImageSpec) -> NDArray[np.float64]:
    """Offsets (S,) of the pixel centres from the TCP along either image axis [m]."""
    return (np.arange(image.size_px) - (image.size_px - 1) / 2) * image.pixel_m


def heights_from_points(
    points_m: ArrayLike, tcp_position_m: ArrayLike, image: ImageSpec
) -> FloatImage:
    """Highest point over each pixel around the TCP.

    Args:
        points_m: points (N, 3) in base_link [m]; rows with a NaN are ignored.
        tcp_position_m: TCP position (3,) in base_link [m].
        image: image definition of the contract.

    Returns:
        Heights (S, S) above z = 0 of base_link [m]; NaN where no point fell.
    """
    points = np.asarray(points_m, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 3:
        raise ObservationError(f"points have shape {points.shape}; they must be (N, 3)")
    tcp = _position(tcp_position_m)
    size = image.size_px
    # Comparing as floats first keeps far-away points from overflowing the integer conversion.
    pixel = np.floor((points[:, :2] - tcp[:2]) / image.pixel_m + size / 2)
    inside = np.all((pixel >= 0) & (pixel < size), axis=1) & np.isfinite(points[:, 2])
    index = pixel[inside].astype(np.intp)
    heights = np.full(size * size, -np.inf)
    np.maximum.at(heights, index[:, 0] * size + index[:, 1], points[inside, 2])
    heights[np.isneginf(heights)] = np.nan
    return heights.reshape(size, size).astype(np.float32)


def compose_observation(
    height_m: ArrayLike,
    tcp_position_m: ArrayLike,
    yaw_rad: float,
    opening: float,
    holding: bool,
    image: ImageSpec,
    goal_xy_m: ArrayLike | None = None,
) -> FloatImage:
    """Draw the observation.

    Args:
        height_m: surface heights (S, S) above z = 0 of base_link [m], without the robot.
        tcp_position_m: TCP position (3,) in base_link [m].
        yaw_rad: angle from base_link x to the axis along which the fingers open [rad].
        opening: gap between the pads as a fraction of `image.max_opening_m`, 0 closed .. 1 open.
        holding: whether the gripper holds something.
        image: image definition of the contract.
        goal_xy_m: centre (2,) of the goal pad in base_link [m], for tasks that have one. A depth
            camera cannot see a mark on the table, so the pad is drawn, as the fingers are.

    Returns:
        Observation (2, S, S).
    """
    heights = np.asarray(height_m, dtype=np.float32)
    size = image.size_px
    if heights.shape != (size, size):
        raise ObservationError(f"heights have shape {heights.shape}; the image is {(size, size)}")
    if not np.all(np.isfinite(heights)):
        count = int(np.count_nonzero(~np.isfinite(heights)))
        raise ObservationError(f"{count} heights are not finite; fill holes before drawing")
    if not (np.isfinite(yaw_rad) and np.isfinite(opening)):
        raise ObservationError(f"yaw {yaw_rad} and opening {opening} must be finite")
    tcp = _position(tcp_position_m)
    observation = np.empty((2, size, size), dtype=np.float32)
    depth = observation[0]
    np.subtract(np.float32(tcp[2] + image.camera_above_tcp_m), heights, out=depth)
    if goal_xy_m is not None:
        depth[goal_pad_mask(np.asarray(goal_xy_m, dtype=np.float64) - tcp[:2], image)] += (
            np.float32(image.goal_pad_depth_m)
        )
    depth[finger_mask(yaw_rad, opening, image)] = 0.0
    np.maximum(depth, 0.0, out=depth)
    observation[1] = 1.0 if holding else 0.0
    return observation


def finger_mask(yaw_rad: float, opening: float, image: ImageSpec) -> NDArray[np.bool_]:
    """Pixels (S, S) covered by the two fingers: squares whose inner faces are the pads."""
    centres = pixel_centres_m(image)
    x, y = centres[:, None], centres[None, :]
    along_m = np.abs(x * np.cos(yaw_rad) + y * np.sin(yaw_rad))
    across_m = np.abs(y * np.cos(yaw_rad) - x * np.sin(yaw_rad))
    pad_m = float(np.clip(opening, 0.0, 1.0)) * image.max_opening_m / 2
    mask: NDArray[np.bool_] = (
        (along_m >= pad_m - _EDGE_TOLERANCE_M)
        & (along_m <= pad_m + image.finger_thickness_m + _EDGE_TOLERANCE_M)
        & (across_m <= image.finger_width_m / 2 + _EDGE_TOLERANCE_M)
    )
    return mask


def goal_pad_mask(goal_from_tcp_m: ArrayLike, image: ImageSpec) -> NDArray[np.bool_]:
    """Pixels (S, S) of the axis-aligned goal pad whose centre (2,) is given from the TCP [m]."""
    goal = np.asarray(goal_from_tcp_m, dtype=np.float64)
    if goal.shape != (2,) or not np.all(np.isfinite(goal)):
        raise ObservationError(f"goal {goal.tolist()} must be two finite coordinates")
    reach_m = image.goal_pad_m / 2 + _EDGE_TOLERANCE_M
    centres = pixel_centres_m(image)
    rows = np.abs(centres - goal[0]) <= reach_m
    columns = np.abs(centres - goal[1]) <= reach_m
    mask: NDArray[np.bool_] = rows[:, None] & columns[None, :]
    return mask


def _position(tcp_position_m: ArrayLike) -> NDArray[np.float64]:
    position = np.asarray(tcp_position_m, dtype=np.float64)
    if position.shape != (3,) or not np.all(np.isfinite(position)):
        raise ObservationError(
            f"TCP position {position.tolist()} must be three finite coordinates [m]"
        )
    return position
