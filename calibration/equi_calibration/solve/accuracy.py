# SPDX-License-Identifier: MIT
"""Error of a solution against a known truth, whether its uncertainty covers it, and its radius."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from equi_core.geometry import invert, matrix_to_rotvec, transform_points

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class CameraError:
    """How far a solved camera is from the true one."""

    position_mm: float
    """Of the optical centre."""
    workspace_mm: float
    """Of a point in the middle of the workspace, as this camera would place it."""
    rotation_deg: float
    squared_distance: float
    """Error in units of its covariance: chi-square with 6 degrees of freedom if that is true."""

    @property
    def covered_95(self) -> bool:
        """Whether the error lies inside the 95 % region that the solver states."""
        return self.squared_distance <= float(chi2.ppf(0.95, 6))


def camera_error(
    solved: FloatArray, truth: FloatArray, covariance: FloatArray, reference_m: FloatArray
) -> CameraError:
    """Compare base_from_camera (4, 4) with the truth; covariance (6, 6) as the solver states it."""
    difference = solved @ invert(truth)
    at_reference = transform_points(difference, reference_m[None])[0] - reference_m
    rotvec = matrix_to_rotvec(difference[:3, :3])
    error = np.concatenate([at_reference, rotvec])
    return CameraError(
        1000 * float(np.linalg.norm(solved[:3, 3] - truth[:3, 3])),
        1000 * float(np.linalg.norm(at_reference)),
        float(np.degrees(np.linalg.norm(rotvec))),
        float(error @ np.linalg.solve(covariance, error)),
    )


def radius_95(covariance: FloatArray) -> float:
    """Length that a normal error with this covariance (3, 3) exceeds once in 20 times.

    Twice the worst axis' standard deviation would not do: that covers one axis, and the error has
    three. The squared length is taken as a scaled chi-square with the same mean and variance
    (Satterthwaite), right to about 1 % for any ratio of the axes.
    """
    total, squares = float(np.trace(covariance)), float(np.sum(covariance**2))
    freedom = total**2 / squares
    return float(np.sqrt(squares / total * chi2.ppf(0.95, freedom)))
