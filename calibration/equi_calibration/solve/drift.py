# SPDX-License-Identifier: MIT
"""Did a camera move while the dataset was collected? A step in what its views say over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equi_calibration.solve.bundle_adjustment import Adjustment
from equi_calibration.solve.problem import HandEyeProblem
from equi_calibration.solve.validation import LARGEST_SIGMA_M, predicted_pose, seen_pose
from equi_core.geometry import invert, transform_points

FloatArray = NDArray[np.float64]

_SHORTEST_SEGMENT = 3


@dataclass(frozen=True)
class Drift:
    """The most likely time at which a camera moved."""

    step_mm: float
    """Size of the step at that time."""
    significance: float
    """The step over its standard error; noise alone stays below about 5."""
    after_pose: int
    """The last pose before it."""


def find_drift(problem: HandEyeProblem, adjusted: Adjustment, camera: str) -> Drift:
    """Largest step in where single views of a camera place the middle of the workspace."""
    views = sorted(problem.views_of(camera), key=lambda view: view.pose_index)
    if len(views) < 2 * _SHORTEST_SEGMENT:
        return Drift(0.0, 0.0, -1)
    base_from_camera = adjusted.estimate.base_from_camera[camera]
    centre = problem.board.centre_m[None]
    offsets_m, kept = [], []
    for view in views:
        predicted = predicted_pose(problem, adjusted.estimate, view)
        seen, sigma = seen_pose(problem, adjusted.intrinsics[camera], view, predicted)
        if sigma > LARGEST_SIGMA_M:
            continue
        error = transform_points(seen, centre)[0] - transform_points(predicted, centre)[0]
        # Distance along the line of sight is the least certain part of a single view.
        ray = predicted[:3, 3] / np.linalg.norm(predicted[:3, 3])
        error = error - 0.8 * ray * float(error @ ray)
        offsets_m.append(base_from_camera[:3, :3] @ error)
        kept.append(view)
    views = kept
    if len(views) < 2 * _SHORTEST_SEGMENT:
        return Drift(0.0, 0.0, -1)
    offsets = np.array(offsets_m)
    # Differences of neighbours do not know of a step, so they give the noise.
    noise = 1.4826 * np.median(np.abs(np.diff(offsets, axis=0)), axis=0) / np.sqrt(2) + 1e-5
    best = Drift(0.0, 0.0, -1)
    for cut in range(_SHORTEST_SEGMENT, len(views) - _SHORTEST_SEGMENT + 1):
        before, after = offsets[:cut], offsets[cut:]
        step = np.median(after, axis=0) - np.median(before, axis=0)
        error_of_step = 1.25 * noise * np.sqrt(1.0 / len(before) + 1.0 / len(after))
        significance = float(np.sqrt(np.sum((step / error_of_step) ** 2)))
        if significance > best.significance:
            size = 1000 * float(np.linalg.norm(step))
            best = Drift(size, significance, views[cut - 1].pose_index)
    return best


def pose_difference(first: FloatArray, second: FloatArray) -> tuple[float, float]:
    """Distance [m] and angle [deg] between two poses (4, 4)."""
    change = invert(first) @ second
    angle = np.arccos(np.clip((np.trace(change[:3, :3]) - 1.0) / 2.0, -1.0, 1.0))
    return float(np.linalg.norm(first[:3, 3] - second[:3, 3])), float(np.degrees(angle))
