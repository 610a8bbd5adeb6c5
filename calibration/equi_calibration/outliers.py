"""Corners, views and robot poses that contradict the rest, after a robust fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from equi_calibration.model import Layout, linearise
from equi_calibration.problem import Problem, View

_CORNER_GATE = 4.5
"""A corner is wrong if it is off by so many standard deviations ..."""
_POSE_GATE = 6.0
"""... a robot pose if its correction is."""


def without_outliers(problem: Problem, layout: Layout) -> tuple[Problem, int, tuple[str, ...]]:
    """The problem without what does not fit; corners dropped, and why views were."""
    pixels, _ = linearise(problem, layout)
    errors = np.linalg.norm(pixels.reshape(-1, 2), axis=1)
    typical = 1.4826 * float(np.median(errors)) / 1.1774  # Rayleigh median to standard deviation
    gate = max(_CORNER_GATE * typical, 0.3)
    corrections = layout.corrections
    spread = 1.4826 * np.median(np.abs(corrections), axis=0) + np.array([2e-4] * 3 + [2e-4] * 3)
    bad_pose = {
        pose
        for pose, correction in zip(layout.pose_indices, corrections, strict=True)
        if np.any(np.abs(correction) > _POSE_GATE * spread)
    }
    kept: list[View] = []
    dropped_corners, reasons, offset = 0, [], 0
    for view in problem.views:
        count = len(view.corner_ids)
        good = errors[offset : offset + count] < gate
        worst = float(errors[offset : offset + count].max())
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
