# SPDX-License-Identifier: MIT
"""Configuration of a simulated depth camera: optics, pose, errors of its depth.

The defaults describe a stereo camera of the D455 class at 640 x 480. The numbers of the noise
model are those that users of such cameras measure: noise grows with the square of the distance,
is alike over a few pixels, comes in disparity steps, and fails at edges, in the shadow that one
of the two imagers cannot see, at grazing angles and near the left border.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from equi_core import geometry as geo

FloatArray = NDArray[np.float64]


class CameraConfigError(ValueError):
    """A camera that cannot exist; names the field, its value and what is allowed."""


@dataclass(frozen=True)
class CameraSpec:
    """Optics and nominal place of one camera: what its data sheet and the calibration say."""

    name: str
    position_m: tuple[float, float, float]
    """Optical centre of the left imager in base_link [m]."""
    target_m: tuple[float, float, float] = (0.5, 0.0, 0.02)
    """Point in base_link that the optical axis goes through [m]; image rows are level."""
    width_px: int = 640
    height_px: int = 480
    focal_px: float = 383.0
    baseline_m: float = 0.095
    """Distance between the two imagers [m]; 0 means an ideal camera without stereo shadow."""
    min_depth_m: float = 0.25
    max_depth_m: float = 3.0

    def __post_init__(self) -> None:
        if not self.name:
            raise CameraConfigError("a camera needs a name, e.g. cam_left")
        for name in ("width_px", "height_px", "focal_px", "min_depth_m", "max_depth_m"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise CameraConfigError(f"camera '{self.name}': {name} is {value}; it must be > 0")
        if self.baseline_m < 0 or self.min_depth_m >= self.max_depth_m:
            raise CameraConfigError(
                f"camera '{self.name}': baseline_m {self.baseline_m} must not be negative and "
                f"min_depth_m {self.min_depth_m} must lie below max_depth_m {self.max_depth_m}"
            )
        direction = np.subtract(self.target_m, self.position_m)
        if np.linalg.norm(direction) < 1e-6 or np.linalg.norm(direction[:2]) < 1e-6:
            raise CameraConfigError(
                f"camera '{self.name}' at {self.position_m} points at {self.target_m}: the axis "
                "must have a length and must not be vertical"
            )

    @property
    def optical_frame(self) -> str:
        """frame_id of its clouds and images."""
        return f"{self.name}_depth_optical_frame"

    @property
    def centre_px(self) -> tuple[float, float]:
        """Principal point (cx, cy) [px]: the image's middle, counted from pixel centres."""
        return (self.width_px - 1) / 2, (self.height_px - 1) / 2

    @property
    def base_from_camera(self) -> FloatArray:
        """Nominal pose (4, 4) of the optical frame in base_link."""
        z = np.subtract(self.target_m, self.position_m)
        z = z / np.linalg.norm(z)
        x = np.cross(z, [0.0, 0.0, 1.0])
        x = x / np.linalg.norm(x)
        return geo.pose_matrix(self.position_m, np.column_stack([x, np.cross(z, x), z]))


@dataclass(frozen=True)
class NoiseSpec:
    """What happens to the ideal depth. Lengths in pixels are of the depth image."""

    subpixel_px: float = 0.08
    """Standard deviation of the matched disparity [px]."""
    correlation_px: float = 1.5
    """Reach of the spatial correlation of that error [px]."""
    disparity_step_px: float = 1.0 / 32.0
    """Disparity comes in these steps [px]; 0 switches stepping off."""
    edge_band_px: int = 2
    """Half width of the band around depth edges in which pixels fail [px]."""
    edge_step_px: float = 1.0
    """Disparities around a pixel that differ by more than this form an edge [px]."""
    edge_missing: float = 0.45
    """Share of band pixels without data."""
    edge_mixed: float = 0.15
    """Share of band pixels that mix foreground and background: flying pixels."""
    stereo_shadow: bool = True
    """Whether what the right imager cannot see is missing."""
    grazing_cosine: float = 0.12
    """Surfaces seen at a smaller cosine give no data."""
    missing: float = 0.003
    """Share of pixels missing anywhere."""
    depth_unit_m: float = 0.001
    """Depth is published in whole units [m]."""
    scale_error: float = 0.0
    """Relative error of all depths of an imperfectly calibrated device."""

    def __post_init__(self) -> None:
        for name in ("edge_missing", "edge_mixed", "missing"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise CameraConfigError(f"noise: {name} is {getattr(self, name)}; allowed 0 to 1")
        if self.edge_missing + self.edge_mixed > 1.0:
            raise CameraConfigError("noise: edge_missing + edge_mixed must not exceed 1")
        for name in ("subpixel_px", "correlation_px", "disparity_step_px", "edge_band_px"):
            if not getattr(self, name) >= 0:
                raise CameraConfigError(f"noise: {name} is {getattr(self, name)}; allowed >= 0")
        if not self.depth_unit_m > 0:
            raise CameraConfigError(f"noise: depth_unit_m is {self.depth_unit_m}; allowed > 0")

    @classmethod
    def ideal(cls) -> NoiseSpec:
        """No error but the tenth of a millimetre in which depth is counted."""
        return cls(
            subpixel_px=0.0,
            disparity_step_px=0.0,
            edge_missing=0.0,
            edge_mixed=0.0,
            stereo_shadow=False,
            grazing_cosine=0.0,
            missing=0.0,
            depth_unit_m=0.0001,
        )


@dataclass(frozen=True)
class Timing:
    """When frames are taken and when they arrive."""

    rate_hz: float = 10.0
    latency_s: float = 0.06
    """From exposure (the stamp) to publication [s]."""
    jitter_s: float = 0.01
    """Standard deviation of that latency [s]."""

    def __post_init__(self) -> None:
        if not self.rate_hz > 0 or self.latency_s < 0 or self.jitter_s < 0:
            raise CameraConfigError(
                f"timing: rate_hz {self.rate_hz} must be > 0, latency_s {self.latency_s} and "
                f"jitter_s {self.jitter_s} not negative"
            )


@dataclass(frozen=True)
class Miscalibration:
    """How far the true camera pose is from the one in the calibration file."""

    position_mm: float = 1.0
    """Length of the displacement; its direction is drawn [mm]."""
    rotation_deg: float = 0.1
    """Angle of the rotation about a drawn axis [deg]."""
    seed: int = 0

    def true_pose(self, nominal: FloatArray, name: str) -> FloatArray:
        """The true pose (4, 4) of the camera; the same for a seed and a name."""
        rng = np.random.default_rng([self.seed, *name.encode()])
        shift, axis = rng.normal(size=3), rng.normal(size=3)
        rotvec = axis / np.linalg.norm(axis) * math.radians(self.rotation_deg)
        pose = nominal.copy()
        pose[:3, 3] += shift / np.linalg.norm(shift) * self.position_mm / 1000.0
        pose[:3, :3] = Rotation.from_rotvec(rotvec).as_matrix() @ pose[:3, :3]
        return pose


@dataclass(frozen=True)
class CameraRig:
    """All cameras of the simulated cell."""

    cameras: tuple[CameraSpec, ...] = (
        CameraSpec("cam_left", (0.60, 0.72, 0.62)),
        CameraSpec("cam_right", (0.60, -0.72, 0.62)),
    )
    noise: NoiseSpec = field(default_factory=NoiseSpec)
    timing: Timing = field(default_factory=Timing)
    miscalibration: Miscalibration = field(default_factory=Miscalibration)

    def without_errors(self) -> CameraRig:
        """The same cameras, exact and at their nominal places."""
        return dataclasses.replace(
            self,
            noise=NoiseSpec.ideal(),
            miscalibration=Miscalibration(position_mm=0.0, rotation_deg=0.0),
        )
