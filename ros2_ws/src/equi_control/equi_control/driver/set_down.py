# SPDX-License-Identifier: MIT
"""Letting go of an object: lowered to where it was taken up, then opened, then up again.

Opened at home height, everything held would drop by 20 cm. What was grasped at some height above
the table stands at that height again; something in the way stops the arm by contact, and there it
is let go. An arm that does not arrive in time lets go of nothing. What was grasped before this
driver started has no known height: it is let go just above the table only.
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
_MOST_DROP_M = 0.05
"""Something whose grasp was not seen is let go no higher than this above the table [m]."""


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
        """Remember at which height an object was grasped.

        Only a grasp that this driver asked for is one: fingers that hold something when they are
        first heard were closed by somebody else, somewhere.
        """
        report = self._gripper.report
        # Moving fingers report no object, and so does a gripper that is not heard.
        if not report.connected or not report.settled:
            return
        if report.holding and not self._was_holding:
            asked = self._gripper.closedness > 0.0
            self._grasp_z_m = float(servo_state.position_m[2]) if asked else None
        self._was_holding = report.holding

    def refusal(self, servo_state: ServoState) -> str:
        """Why what is held must not be let go from here; empty if it may."""
        height_m = float(servo_state.position_m[2])
        # Written so that a value that is not a number counts as too high.
        if self._grasp_z_m is not None or height_m <= _MOST_DROP_M:
            return ""
        return (
            f"the gripper holds something {height_m:.3f} m above the table and this driver has not "
            f"seen where it was grasped, so it would drop; at most {_MOST_DROP_M} m is allowed. "
            "Deactivate the driver, bring the arm down with the pendant until the object stands on "
            "the table, activate and call open_gripper again; or take the object and open the "
            "gripper by its own panel"
        )

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
