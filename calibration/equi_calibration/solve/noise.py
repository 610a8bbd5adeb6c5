# SPDX-License-Identifier: MIT
"""How noisy corners and robot are, estimated from the residuals of a fit.

Corners: one typical standard deviation, times a factor per view, because an oblique, distant or
slightly blurred view has worse corners than a sharp one. With a single value for all views the
oblique ones, which tell most about the camera's orientation, would be trusted too much and the
stated uncertainty would be too small. Robot: one standard deviation of position, one of rotation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from equi_calibration.solve.problem import HandEyeProblem

FloatArray = NDArray[np.float64]

ViewKey = tuple[str, int]
"""Camera and pose index."""

_SIGMA_PX = (0.02, 5.0)
_POSITION_M = (0.02e-3, 20e-3)
_ROTATION_RAD = (np.radians(0.005), np.radians(5.0))
# The typical noise counts like so many residuals of a view (which has about 25 of its own), so the
# factors of equally good views stay near 1.
_RESIDUALS_OF_PRIOR = 10.0
_FEWEST_REDUNDANT = 5.0
_STABLE, _VIEW_STABLE = 0.02, 0.1


@dataclass(frozen=True)
class Noise:
    """Standard deviations that weigh the residuals."""

    pixel_px: float = 0.15
    """Of a corner's coordinate in a typical view."""
    robot_position_m: float = 0.5e-3
    """Per axis."""
    robot_rotation_rad: float = np.radians(0.05)
    """Per axis."""
    view_factors: Mapping[ViewKey, float] = field(default_factory=dict)
    """Noise of a view over the typical; 1 for views that are not named."""

    def pixel_sigmas_px(self, problem: HandEyeProblem) -> FloatArray:
        """(2 N,) standard deviation of every corner coordinate, in the order of the views."""
        return np.concatenate(
            [
                np.full(
                    2 * len(view.corner_ids),
                    self.pixel_px * self.view_factors.get((view.camera, view.pose_index), 1.0),
                )
                for view in problem.views
            ]
        )


def estimate_noise(
    noise: Noise, problem: HandEyeProblem, residuals: FloatArray, leverage: FloatArray
) -> tuple[Noise, bool]:
    """One round of variance components: squared residuals over their share of the redundancy.

    Args:
        noise: with which the residuals were weighted.
        problem: views and poses.
        residuals: (M,) over their standard deviations: corner coordinates in the order of the
            views, then six of each pose's correction (position, rotation), then anything else.
        leverage: (M,) diagonal of the hat matrix; 1 minus it is a residual's redundancy.

    Returns:
        The new noise, and whether it is nearly the old one.
    """
    views = problem.views
    counts = np.array([2 * len(view.corner_ids) for view in views])
    pixels, poses = int(counts.sum()), len(problem.used_poses)
    squares, redundancy = residuals**2, 1.0 - leverage
    corrections = slice(pixels, pixels + 6 * poses)
    by_pose = squares[corrections].reshape(poses, 6), redundancy[corrections].reshape(poses, 6)
    pixel = _factor(squares[:pixels], redundancy[:pixels])
    position = _factor(by_pose[0][:, :3], by_pose[1][:, :3])
    rotation = _factor(by_pose[0][:, 3:], by_pose[1][:, 3:])

    keys = [(view.camera, view.pose_index) for view in views]
    old = np.array([noise.view_factors.get(key, 1.0) for key in keys])
    starts = np.cumsum(counts) - counts
    # In units of the new typical noise, a view's own squares together with those of the prior.
    own = np.add.reduceat(squares[:pixels], starts) * (old / pixel) ** 2
    tested = np.add.reduceat(redundancy[:pixels], starts)
    new = np.sqrt((_RESIDUALS_OF_PRIOR + own) / (_RESIDUALS_OF_PRIOR + tested))

    updated = Noise(
        float(np.clip(noise.pixel_px * pixel, *_SIGMA_PX)),
        float(np.clip(noise.robot_position_m * position, *_POSITION_M)),
        float(np.clip(noise.robot_rotation_rad * rotation, *_ROTATION_RAD)),
        {key: float(value) for key, value in zip(keys, new, strict=True)},
    )
    shared_stable = all(abs(value - 1.0) < _STABLE for value in (pixel, position, rotation))
    return updated, shared_stable and bool(np.all(np.abs(new / old - 1.0) < _VIEW_STABLE))


def _factor(squares: FloatArray, redundancy: FloatArray) -> float:
    """By how much a group's standard deviation was too small; 1 if the data do not test it."""
    tested = float(np.sum(redundancy))
    return float(np.sqrt(np.sum(squares) / tested)) if tested > _FEWEST_REDUNDANT else 1.0
