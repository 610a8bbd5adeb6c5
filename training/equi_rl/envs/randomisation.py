# SPDX-License-Identifier: MIT
"""Domain randomisation: what may differ between the simulated cell and a real one.

Everything is drawn from the environment's seed and applied to both objects alike, so it hides
nothing and gives nothing away. Off by default: an environment takes it as `randomisation=`.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from equi_rl.sim.scene import ObjectKind, Scene

Range = tuple[float, float]
_BESIDE = ndimage.generate_binary_structure(2, 1)
"""A pixel and the four beside it."""


@dataclass(frozen=True)
class EpisodeVariation:
    """What was drawn for one episode; the default changes nothing."""

    size_scale: float = 1.0
    mass_scale: float = 1.0
    friction_scale: float = 1.0
    calibration_offset_m: tuple[float, float, float] = (0.0, 0.0, 0.0)
    latency_s: float = 0.0

    def applied_to(self, scene: Scene) -> Scene:
        """The scene with both objects changed alike; drawers keep their size."""
        objects = []
        for item in scene.objects:
            scale = self.size_scale if item.kind is ObjectKind.BLOCK else 1.0
            x, y, z = item.position_m
            length, width, height = item.size_m
            objects.append(
                dataclasses.replace(
                    item,
                    position_m=(x, y, z * scale),
                    size_m=(length * scale, width * scale, height * scale),
                    mass_kg=item.mass_kg * self.mass_scale,
                    friction=item.friction * self.friction_scale,
                )
            )
        return dataclasses.replace(scene, objects=tuple(objects))


@dataclass(frozen=True)
class DomainRandomisation:
    """Ranges to draw from, uniformly unless said otherwise."""

    size_scale: Range = (0.95, 1.05)
    mass_scale: Range = (0.5, 2.0)
    friction_scale: Range = (0.8, 1.2)
    calibration_offset_m: float = 0.002
    """Standard deviation of a constant shift of the image per episode, each axis [m]."""
    latency_s: Range = (0.0, 0.04)
    """How much of each motion is still to come when the image is taken [s]: a late command."""
    depth_noise_m: float = 0.001
    """Standard deviation of the depth of each pixel and frame [m]."""
    widened_share: Range = (0.0, 0.8)
    """Share of the pixels beside something higher that show its height: stereo cameras make
    objects wider. Drawn for every frame."""
    missing_fraction: float = 0.01
    """Share of pixels, alone, without a measurement."""
    missing_patches: float = 2.0
    """Mean number of patches without a measurement in a frame (Poisson)."""
    missing_patch_px: Range = (2.0, 6.0)
    """Radius of such a patch."""

    def __post_init__(self) -> None:
        for name in ("size_scale", "mass_scale", "friction_scale", "missing_patch_px"):
            low, high = getattr(self, name)
            if not (math.isfinite(low) and math.isfinite(high) and 0 < low <= high):
                raise ValueError(f"randomisation.{name} = {(low, high)} must be 0 < low <= high")
        if not 0 <= self.latency_s[0] <= self.latency_s[1] < math.inf:
            raise ValueError(f"randomisation.latency_s = {self.latency_s} must be 0 <= low <= high")
        if not 0 <= self.widened_share[0] <= self.widened_share[1] <= 1:
            raise ValueError(
                f"randomisation.widened_share = {self.widened_share} must be 0 <= low <= high <= 1"
            )
        for name in ("calibration_offset_m", "depth_noise_m", "missing_patches"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"randomisation.{name} = {getattr(self, name)} must be >= 0")
        if not 0 <= self.missing_fraction < 1:
            raise ValueError(
                f"randomisation.missing_fraction = {self.missing_fraction} must lie in [0, 1)"
            )

    def sample(self, rng: np.random.Generator) -> EpisodeVariation:
        """Draw one episode's variation."""
        x, y, z = rng.normal(0.0, self.calibration_offset_m, 3)
        return EpisodeVariation(
            size_scale=float(rng.uniform(*self.size_scale)),
            mass_scale=float(rng.uniform(*self.mass_scale)),
            friction_scale=float(rng.uniform(*self.friction_scale)),
            calibration_offset_m=(float(x), float(y), float(z)),
            latency_s=float(rng.uniform(*self.latency_s)),
        )

    def disturbed(
        self, height_m: NDArray[np.float32], rng: np.random.Generator
    ) -> NDArray[np.float32]:
        """Heights (S, S) as a depth camera might deliver them: wide, noisy, holes filled."""
        widened = ndimage.grey_dilation(height_m, footprint=_BESIDE, mode="nearest")
        wide = rng.random(height_m.shape) < rng.uniform(*self.widened_share)
        noisy = np.where(wide, widened, height_m) + rng.normal(
            0.0, self.depth_noise_m, height_m.shape
        )
        missing = rng.random(height_m.shape) < self.missing_fraction
        rows, columns = np.indices(height_m.shape)
        for _ in range(rng.poisson(self.missing_patches)):
            row, column = rng.uniform(0, height_m.shape[0], 2)
            radius = rng.uniform(*self.missing_patch_px)
            missing |= (rows - row) ** 2 + (columns - column) ** 2 < radius**2
        return nearest_filled(noisy.astype(np.float32), missing)


def nearest_filled(
    height_m: NDArray[np.float32], missing: NDArray[np.bool_]
) -> NDArray[np.float32]:
    """Heights with each missing pixel replaced by the nearest one that was measured."""
    if not missing.any() or missing.all():
        return height_m
    nearest = ndimage.distance_transform_edt(missing, return_distances=False, return_indices=True)
    filled: NDArray[np.float32] = height_m[tuple(nearest)]
    return filled
