# SPDX-License-Identifier: MIT
"""Where images, clouds and arm poses come from: two small interfaces.

A simulated cell, ROS topics, or a recording can be behind the same commands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from equi_calibration.board.intrinsics import Intrinsics

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StampedImage:
    """One image."""

    image: NDArray[np.uint8]
    """(H, W) grey or (H, W, 3) BGR."""
    stamp_s: float
    """Exposure, as the camera's driver stamped it."""
    received_s: float
    """Arrival at this computer."""


@dataclass(frozen=True, eq=False)
class ArmReading:
    """The arm at one time."""

    base_from_tcp: FloatArray
    """(4, 4) measured, in base_link."""
    joints_rad: FloatArray
    """(6,) measured."""
    stamp_s: float
    moving: bool


class CameraSource(Protocol):
    """A camera of the cell."""

    @property
    def name(self) -> str:
        """Name in the cell file."""

    @property
    def serial(self) -> str:
        """Serial number that the device reports."""

    @property
    def intrinsics(self) -> Intrinsics:
        """Of its images."""

    @property
    def cloud_from_image(self) -> FloatArray:
        """(4, 4) from the image's optical frame to the cloud's."""

    def image_after(self, stamp_s: float, timeout_s: float) -> StampedImage:
        """The first image exposed after a time; raises CollectError if none comes."""

    def cloud_after(self, stamp_s: float, timeout_s: float) -> tuple[NDArray[np.float32], float]:
        """Points (N, 3) [m] in the cloud's optical frame and their stamp."""


class ArmMover(Protocol):
    """The arm of the cell."""

    def now_s(self) -> float:
        """Present time of the clock that stamps readings."""

    def read(self) -> ArmReading:
        """The arm as it is now."""

    def move_to(self, joints_rad: FloatArray, speed_m_s: float) -> None:
        """Go to a joint vector slowly and come to rest; raises CollectError if it does not."""
