# SPDX-License-Identifier: MIT
"""Pinhole intrinsics with lens distortion: OpenCV's model, pixel centres at whole numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from equi_calibration.errors import DatasetError
from equi_core.strict_fields import FieldError, read_fields

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Intrinsics:
    """How a camera maps directions to pixels."""

    width_px: int
    height_px: int
    fx_px: float
    fy_px: float
    cx_px: float
    cy_px: float
    distortion: tuple[float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0)
    """k1, k2, p1, p2, k3 of the plumb_bob model."""

    def __post_init__(self) -> None:
        numbers = (self.fx_px, self.fy_px, self.cx_px, self.cy_px, *self.distortion)
        if not all(math.isfinite(value) for value in numbers):
            raise DatasetError(f"intrinsics {numbers} hold a number that is not finite")
        if self.width_px < 16 or self.height_px < 16 or self.fx_px <= 0 or self.fy_px <= 0:
            raise DatasetError(
                f"intrinsics {self.width_px} x {self.height_px} px, focal length "
                f"({self.fx_px}, {self.fy_px}) px are not those of a camera; "
                "an uncalibrated driver sends zeros: check its camera_info topic"
            )
        if len(self.distortion) != 5:
            raise DatasetError(f"distortion has {len(self.distortion)} terms; it must be 5")
        inside = 0 < self.cx_px < self.width_px and 0 < self.cy_px < self.height_px
        if not inside:
            raise DatasetError(
                f"principal point ({self.cx_px}, {self.cy_px}) px lies outside the "
                f"{self.width_px} x {self.height_px} px image"
            )

    @property
    def matrix(self) -> FloatArray:
        """Camera matrix (3, 3) [px]."""
        return np.array(
            [[self.fx_px, 0.0, self.cx_px], [0.0, self.fy_px, self.cy_px], [0.0, 0.0, 1.0]]
        )

    @property
    def distortion_array(self) -> FloatArray:
        """Distortion (5,) for OpenCV."""
        return np.array(self.distortion)

    def project(self, points_camera_m: ArrayLike) -> FloatArray:
        """Pixels (N, 2) of points (N, 3) in the optical frame (z forward)."""
        points = np.asarray(points_camera_m, dtype=np.float64).reshape(-1, 1, 3)
        pixels, _ = cv2.projectPoints(
            points, np.zeros(3), np.zeros(3), self.matrix, self.distortion_array
        )
        return np.asarray(pixels, dtype=np.float64).reshape(-1, 2)

    def undistort(self, pixels: ArrayLike) -> FloatArray:
        """Normalised image coordinates x/z, y/z (N, 2) of pixels (N, 2)."""
        flat = np.asarray(pixels, dtype=np.float64).reshape(-1, 1, 2)
        normalised = cv2.undistortPointsIter(
            flat,
            self.matrix,
            self.distortion_array,
            np.eye(3),
            np.eye(3),
            (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 40, 1e-10),
        )
        return np.asarray(normalised, dtype=np.float64).reshape(-1, 2)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a file."""
        return {**asdict(self), "distortion": list(self.distortion)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Intrinsics:
        """Read plain values; unknown or missing keys and wrong types are refused by name."""
        try:
            return read_fields(cls, values, "intrinsics")
        except FieldError as error:
            raise DatasetError(str(error)) from error
