# SPDX-License-Identifier: MIT
"""Corners, views and robot poses that contradict the rest, after a robust fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from equi_calibration.solve.parameters import Parameters, linearise
from equi_calibration.solve.problem import HandEyeProblem, View

_CORNER_GATE = 6.5
"""A corner is wrong if it is off by so many standard deviations ..."""
_POSE_GATE = 6.0
"""... a robot pose if its correction is."""
_RAYLEIGH_MEDIAN = 1.1774
_NOISIEST_VIEW = 4.0
"""A view may be so many times noisier than is typical before its corners count as wrong."""


def without_outliers(
    problem: HandEyeProblem, parameters: Parameters
) -> tuple[HandEyeProblem, int, tuple[str, ...]]:
    """The problem without what does not fit; corners dropped, and why views were."""
    pixels, _ = linearise(problem, parameters)
    errors = np.linalg.norm(pixels.reshape(-1, 2), axis=1)
    typical = _sigma(errors)
    corrections = parameters.corrections
    spread = 1.4826 * np.median(np.abs(corrections), axis=0) + np.array([2e-4] * 3 + [2e-4] * 3)
    bad_pose = {
        pose
        for pose, correction in zip(parameters.pose_indices, corrections, strict=True)
        if np.any(np.abs(correction) > _POSE_GATE * spread)
    }
    kept: list[View] = []
    dropped_corners, reasons, offset = 0, [], 0
    for view in problem.views:
        count = len(view.corner_ids)
        of_view = errors[offset : offset + count]
        # By the view's own noise: cutting the tails off a noisy view would make it look good.
        sigma = float(np.clip(_sigma(of_view), typical, _NOISIEST_VIEW * typical))
        good = of_view < max(_CORNER_GATE * sigma, 0.3)
        worst = float(of_view.max())
        offset += count
        name = view.image or f"{view.camera} at pose {view.pose_index}"
        if view.pose_index in bad_pose:
            reasons.append(f"{name}: the robot pose does not fit the other poses")
        elif good.sum() < max(4, count // 2):
            reasons.append(f"{name}: corners are off by up to {worst:.1f} px")
        else:
            dropped_corners += int(count - good.sum())
            kept.append(
                replace(view, corner_ids=view.corner_ids[good], corners_px=view.corners_px[good])
            )
    cleaned = replace(problem, views=tuple(kept))
    cleaned.require_solvable()
    return cleaned, dropped_corners, tuple(reasons)


def _sigma(distances: NDArray[np.float64]) -> float:
    """Robust standard deviation per coordinate of planar errors, from their lengths."""
    return float(np.median(distances)) / _RAYLEIGH_MEDIAN
