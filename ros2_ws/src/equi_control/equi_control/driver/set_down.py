# SPDX-License-Identifier: MIT
"""Letting go of an object: lowered to where it was taken up, then opened, then up again.

Opened at home height, everything held would drop by 20 cm. What was grasped at some height above
the table stands at that height again; something in the way stops the arm by contact, and there it
is let go. An arm that does not arrive in time lets go of nothing.
"""

from __future__ import annotations

import enum

import numpy as np
from numpy.typing import NDArray

from equi_control.driver.arm import Arm
from equi_control.driver.config import DriverConfig
from equi_control.driver.deadline import Deadline
from equi_control.driver.gripper import Gripper
from equi_control.servo.shared_state import ServoState

FloatArray = NDArray[np.float64]

_CLEARANCE_M = 0.002


class _Phase(enum.Enum):
    OFF = 0
    LOWERING = 1
    OPENING = 2
    RISING = 3


class SetDown:
    """Drives arm and gripper through the phases; does nothing until started."""

    def __init__(self, arm: Arm, gripper: Gripper, config: DriverConfig) -> None:
        self._arm, self._gripper = arm, gripper
        self._deadline = Deadline(config)
        self.failed = ""
        """Why the object was not set down last time; empty if it was."""
        self._phase = _Phase.OFF
        self._above = np.zeros(4)
        self._grasp_z_m: float | None = None
        self._was_holding = False

    @property
    def active(self) -> bool:
        """Whether an object is being set down."""
        return self._phase is not _Phase.OFF

    def see(self, servo_state: ServoState) -> None:
        """Remember at which height an object was grasped."""
        holding = self._gripper.report.holding
        if holding and not self._was_holding:
            self._grasp_z_m = float(servo_state.position_m[2])
        self._was_holding = holding

    def start(self, servo_state: ServoState, now_s: float) -> None:
        """Begin at the commanded pose."""
        self.failed = ""
        self._above = servo_state.commanded.copy()
        x, y, z, yaw = self._above
        low_m = z if self._grasp_z_m is None else min(z, self._grasp_z_m + _CLEARANCE_M)
        self._phase = _Phase.LOWERING
        self._go_to(np.array([x, y, low_m, yaw]), now_s)

    def cancel(self) -> None:
        """Stop here; the caller decelerates."""
        self._phase = _Phase.OFF

    def advance(self, servo_state: ServoState, now_s: float) -> bool:
        """Begin the next phase when one is done.

        True when it is over: the gripper is open and the arm back, or `failed` says why not.
        """
        if self._phase is _Phase.OFF:
            return False
        arm = self._arm
        self.failed = self._deadline.missed(servo_state, now_s)
        if self.failed:
            if self._phase is _Phase.OPENING:
                self.failed = f"the gripper did not open; {self.failed}"
            self._phase = _Phase.OFF
            return True
        if self._phase is _Phase.LOWERING:
            if arm.arrived(servo_state) and arm.resting(servo_state):
                self._gripper.open()
                self._phase = _Phase.OPENING
        elif self._phase is _Phase.OPENING:
            if self._gripper.report.settled:
                self._go_to(self._above, now_s)
                self._phase = _Phase.RISING
        elif arm.arrived(servo_state) and arm.resting(servo_state):
            self._phase = _Phase.OFF
            return True
        return False

    def _go_to(self, target: FloatArray, now_s: float) -> None:
        self._arm.set_target(target)
        self._deadline.begin(target, now_s)
