# SPDX-License-Identifier: MIT
"""Taking over the arm: the arm first, then the gripper, each with an end.

The gripper runs its whole stroke when it is activated, so it is asked only on an arm that was taken
over. One that has no power is a fault after a while, and is not activated later.
"""

from __future__ import annotations

import enum
import math
import time

from equi_control.driver.arm import Arm
from equi_control.driver.gripper import Gripper
from equi_control.servo.shared_state import Phase, ServoState

_WITHDRAW_S = 0.3
"""The gripper is told not to activate any more this long before the fault: a person who reads the
fault and restores the power must not see the fingers move."""


class TakeOverResult(enum.Enum):
    """Where a take-over is."""

    PENDING = 0
    DONE = 1
    REFUSED = 2
    """The servo process must not drive the arm as it stands."""
    GRIPPER_LATE = 3
    """The gripper was not active in time."""


class TakeOver:
    """One take-over at a time; does nothing until started."""

    def __init__(self, arm: Arm, gripper: Gripper, gripper_timeout_s: float) -> None:
        self._arm, self._gripper, self._timeout_s = arm, gripper, gripper_timeout_s
        self._gripper_asked = False
        self._gripper_by_s = math.inf
        self._refusals_seen = 0
        self.active = False
        self.pause_asked = False
        """Whether an operator asked to hold meanwhile."""

    def start(self) -> None:
        """Ask the servo process to drive the arm from its measured pose."""
        state = self._arm.last_state
        self._refusals_seen = 0 if state is None else state.take_over_refusals
        self._gripper_asked, self.pause_asked, self.active = False, False, True
        self._arm.take_over()

    def cancel(self) -> None:
        """Wait for it no more; the caller stops arm and gripper."""
        self.active = False

    def advance(self, servo_state: ServoState) -> TakeOverResult:
        """Begin the next part when one is done; anything but PENDING ends it."""
        result = self._result(servo_state)
        self.active = result is TakeOverResult.PENDING
        return result

    def _result(self, servo_state: ServoState) -> TakeOverResult:
        if servo_state.take_over_refusals > self._refusals_seen:
            return TakeOverResult.REFUSED
        if servo_state.phase is not Phase.STREAMING:
            return TakeOverResult.PENDING
        if not self._gripper_asked:
            self._gripper_asked = True
            self._gripper_by_s = time.monotonic() + self._timeout_s
            self._gripper.activate(self._timeout_s - _WITHDRAW_S)
        if self._gripper.report.active:
            return TakeOverResult.DONE
        late = time.monotonic() > self._gripper_by_s
        return TakeOverResult.GRIPPER_LATE if late else TakeOverResult.PENDING
