# SPDX-License-Identifier: MIT
"""By how much each camera sees the cell beside where it is, measured on the arm and the table.

A calibration is good to a few millimetres, and all that a camera shows is off by the same amount.
The controller knows where the arm is, and the cell file where the table is: a camera that sees
both beside their places is off by just that. The scene helper takes it out of what it measures;
perception and policy work with the calibration as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from equi_console.scene.arm_surface import PosedSurface

FloatArray = NDArray[np.float64]

MOST_SHIFT_M = 0.005
"""A camera that is further off was moved: the daily check refuses it, too (`moved_mm`) [m]."""
MOST_SPREAD_M = 0.002
"""If the points lie worse on the arm, it does not look like its description [m]."""
_FEWEST_POINTS = 400
_MOST_POINTS = 1000
_REACH_M = 0.02
"""Points further from the arm's surface belong to something else [m]."""
_ABOVE_TABLE_M = 0.06
"""What lies lower may be an object on the table [m]."""
_TABLE_BAND_M = 0.015
_TABLE_AROUND_M = 0.35
_LOSS_SCALE_M = 0.0015


class NoCorrectionError(RuntimeError):
    """A camera's error cannot be told; says why."""


@dataclass(frozen=True, eq=False)
class CameraCorrection:
    """What one camera shows = what is there + shift + turn x (place - pivot), in the task frame."""

    shift_m: FloatArray
    """(3,) at the pivot [m]."""
    turn_rad: FloatArray
    """(3,) small rotation vector [rad]."""
    pivot_m: FloatArray
    """(3,) on the table below the gripper [m]."""
    spread_m: float
    """Of the points about the arm's surface, after the correction [m]."""

    def error_at(self, place_m: FloatArray) -> FloatArray:
        """By how much (3,) the camera shows something beside a place (3,) [m]."""
        error: FloatArray = self.shift_m + np.cross(self.turn_rad, place_m - self.pivot_m)
        return error


@dataclass(frozen=True, eq=False)
class CellCorrection:
    """All cameras whose points make the height map."""

    cameras: Mapping[str, CameraCorrection]

    def error_at(self, x_m: float, y_m: float, z_m: float) -> tuple[float, float]:
        """By how much (x, y) the height map of all cameras shows a place beside itself [m]."""
        place = np.array([x_m, y_m, z_m])
        mean = np.mean([camera.error_at(place) for camera in self.cameras.values()], axis=0)
        return float(mean[0]), float(mean[1])

    def __str__(self) -> str:
        words = []
        for name, camera in self.cameras.items():
            x, y, z = 1e3 * camera.shift_m
            words.append(f"{name} {x:+.1f}, {y:+.1f}, {z:+.1f} mm")
        return "The cameras see the arm off by " + "; ".join(words) + " (taken out)"


def measure_camera(
    name: str, points_m: FloatArray, surface: PosedSurface, tcp_m: tuple[float, float, float]
) -> CameraCorrection:
    """Find the small motion that puts what a camera sees of arm and table where they are.

    Args:
        name: of the camera, for errors.
        points_m: points (N, 3) of one or more clouds, in the task frame by the calibration [m].
        surface: the arm in the posture in which they were taken.
        tcp_m: the gripper, in the task frame [m].

    Raises:
        NoCorrectionError: too little of the arm is seen, or it does not look like its description,
            or the camera is so far off that it must have been moved.
    """
    pivot = np.array([tcp_m[0], tcp_m[1], 0.0])
    on_table = (np.abs(points_m[:, 2]) < _TABLE_BAND_M) & (
        np.abs(points_m[:, :2] - pivot[:2]).max(axis=1) < _TABLE_AROUND_M
    )
    high = _thinned(points_m[points_m[:, 2] > _ABOVE_TABLE_M], 6 * _MOST_POINTS)
    arm = _thinned(high[np.abs(surface.distance_m(high)) < _REACH_M], _MOST_POINTS)
    table = _thinned(points_m[on_table], _MOST_POINTS // 2)
    surface = surface.near(arm, 2 * _REACH_M)
    if min(len(arm), len(table)) < _FEWEST_POINTS:
        raise NoCorrectionError(
            f"{name} sees too little of the arm or the table ({len(arm)} and {len(table)} points, "
            f"{_FEWEST_POINTS} are needed)"
        )

    def undone(points: FloatArray, motion: FloatArray) -> FloatArray:
        lever: FloatArray = points - pivot
        back: FloatArray = points - motion[:3] - np.cross(motion[3:], lever)
        return back

    def residuals(motion: FloatArray) -> FloatArray:
        distances = surface.distance_m(undone(arm, motion))
        return np.concatenate([distances, undone(table, motion)[:, 2]])

    def slopes(motion: FloatArray) -> FloatArray:
        up = np.tile([0.0, 0.0, 1.0], (len(table), 1))
        away = np.vstack([surface.direction(undone(arm, motion)), up])
        lever = np.vstack([arm, table]) - pivot
        return -np.hstack([away, np.cross(lever, away)])

    found = least_squares(
        residuals,
        np.zeros(6),
        slopes,
        loss="soft_l1",
        f_scale=_LOSS_SCALE_M,
        x_scale=1e-3,
        ftol=1e-5,
    )
    spread = 1.4826 * float(np.median(np.abs(surface.distance_m(undone(arm, found.x)))))
    if spread > MOST_SPREAD_M:
        raise NoCorrectionError(
            f"{name}: the arm does not look like its description (points lie {1e3 * spread:.1f} mm "
            f"beside its surface, {1e3 * MOST_SPREAD_M:.0f} mm are allowed)"
        )
    off_m = float(np.linalg.norm(found.x[:3]))
    if off_m > MOST_SHIFT_M:
        raise NoCorrectionError(
            f"{name} sees the arm {1e3 * off_m:.1f} mm from where the controller has it, more than "
            f"{1e3 * MOST_SHIFT_M:.0f} mm: the camera was moved; calibrate again"
        )
    return CameraCorrection(found.x[:3], found.x[3:], pivot, spread)


def _thinned(points: FloatArray, most: int) -> FloatArray:
    """Evenly spread over the cloud, so that no part of it is preferred."""
    step = max(1, -(-len(points) // most))
    return points[::step]
