# SPDX-License-Identifier: MIT
"""What others may know of the driver: read-only, as of its last poll."""

from __future__ import annotations

import math

import numpy as np

from equi_control.driver.arm import Arm
from equi_control.driver.config import DriverConfig
from equi_control.driver.gripper import Gripper
from equi_control.driver.homing import Homing
from equi_control.driver.state import DriverState
from equi_control.driver.step_runner import StepRunner
from equi_control.driver.take_over import TakeOver
from equi_control.robotiq.worker import GripperReport
from equi_control.servo.shared_state import ServoState


class DriverView:
    """The readable side of a `Driver`, which makes and changes the parts."""

    config: DriverConfig
    state: DriverState
    _arm: Arm
    _gripper: Gripper
    _steps: StepRunner
    _homing: Homing
    _take_over: TakeOver
    _reset_pending: bool

    @property
    def servo_state(self) -> ServoState | None:
        """The servo process's state at the last poll; None before the first."""
        return self._arm.last_state

    @property
    def gripper_report(self) -> GripperReport:
        """The newest gripper report; a healthy stand-in if the cell has none."""
        return self._gripper.report

    @property
    def servo_pid(self) -> int | None:
        """Process id of the servo process."""
        return self._arm.servo.pid if self._arm.servo is not None else None

    @property
    def episode_id(self) -> str:
        """The running episode; empty if none."""
        return self._steps.episode_id

    @property
    def executed_steps(self) -> int:
        """Steps of the running episode that were begun and have ended."""
        return self._steps.executed_steps

    @property
    def moving(self) -> bool:
        """Whether arm or fingers are, or may be, under way."""
        if self.state is DriverState.ACTIVE or not self.gripper_report.settled:
            return True
        # A step has waited for rest before it ended. What the joints do afterwards (they tremble
        # while the fingers squeeze something that stands on the table) is no motion of ours.
        return self.servo_state is not None and not self.servo_state.finished

    @property
    def homing(self) -> bool:
        """Whether the arm is on its way home."""
        return self._homing.active

    @property
    def distance_from_home_m(self) -> float:
        """Distance of the commanded TCP from home [m]; NaN before the first contact."""
        state = self.servo_state
        if state is None:
            return math.nan
        return float(np.linalg.norm(state.commanded[:3] - self.config.home_position_m))

    @property
    def ready_to_activate(self) -> bool:
        """Whether the robot is connected and nobody drives it."""
        return self.state is DriverState.IDLE and self._arm.is_idle

    @property
    def speed_in_steps_of_5_percent(self) -> int:
        """Share of its speed at which the controller moves the arm, coarse enough to publish."""
        return 20 if self.servo_state is None else round(20 * self.servo_state.speed_share)

    @property
    def activating(self) -> bool:
        """Whether a take-over is under way."""
        return self._take_over.active

    @property
    def resetting(self) -> bool:
        """Whether a reset waits for the robot."""
        return self._reset_pending
