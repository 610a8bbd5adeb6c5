# SPDX-License-Identifier: MIT
"""What a running program may use of the controller."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ur_emulator.controller.motions import TargetState
from ur_emulator.controller.registers import Registers
from ur_emulator.profile import Profile


class Host(Protocol):
    """The controller, seen from its program."""

    registers: Registers
    target: TargetState
    payload_kg: float
    payload_cog_m: NDArray[np.float64]
    profile: Profile

    def measured_joints(self) -> NDArray[np.float64]:
        """Measured joints (6,)."""

    def measured_speeds(self) -> NDArray[np.float64]:
        """Measured joint speeds (6,)."""

    def zero_force(self) -> None:
        """Make the force estimate read zero (e-Series)."""

    def trigger_protective_stop(self, cause: str) -> None:
        """Raise a protective stop."""

    def is_pose_safe(self, base_from_tcp: NDArray[np.float64]) -> bool:
        """Whether the safety planes allow a TCP pose."""
