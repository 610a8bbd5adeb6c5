# SPDX-License-Identifier: MIT
"""Homing: let go, up, over, down; one waypoint after the other.

The arm may lean on something when it is sent home. Its first waypoint is where it really is, which
takes the pressure off. Contact on the way makes the servo yield; the waypoint is then tried again,
and after a few contacts the way counts as blocked. So it does if a waypoint is not reached in time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equi_control.driver.arm import Arm
from equi_control.driver.config import DriverConfig
from equi_control.driver.deadline import Deadline
from equi_control.servo.shared_state import ServoState
from equi_core.motion.joint_limits import folded_yaw

FloatArray = NDArray[np.float64]

_MAX_CONTACTS = 3


class Homing:
    """Drives the arm through the waypoints; does nothing until started."""

    def __init__(self, arm: Arm, config: DriverConfig) -> None:
        self._arm, self._config = arm, config
        self._waypoints: list[FloatArray] = []
        self._contacts = 0
        self._deadline = Deadline(config)
        self.blocked = ""
        """What stopped the arm for good last time; empty if nothing did."""

    @property
    def active(self) -> bool:
        """Whether waypoints are left."""
        return bool(self._waypoints)

    def start(
        self, measured_m: ArrayLike, yaw_rad: float, joints_rad: ArrayLike, now_s: float
    ) -> None:
        """Begin at the measured position (3,) [m] and joints (6,) with the commanded yaw."""
        x, y, z = (float(value) for value in np.asarray(measured_m))
        home_x, home_y, home_z = self._config.home_position_m
        servo = self._config.servo
        # The gripper is the same after half a turn; wrist 3 is not. Between episodes it is unwound.
        home_yaw = folded_yaw(
            joints_rad,
            yaw_rad,
            [home_x, home_y, home_z, self._config.home_yaw_rad],
            servo.link.geometry,
            servo.joint_limits,
            yaw_range_rad=servo.limits.yaw_range_rad,
        )
        travel_z = max(z, home_z)
        self._contacts, self.blocked = 0, ""
        self._waypoints = [
            np.array([x, y, z, yaw_rad]),
            np.array([x, y, travel_z, yaw_rad]),
            np.array([home_x, home_y, travel_z, home_yaw]),
            np.array([home_x, home_y, home_z, home_yaw]),
        ]
        self._go_on(now_s)

    def cancel(self) -> None:
        """Forget the rest of the way; the caller decelerates."""
        self._waypoints = []

    def advance(self, servo_state: ServoState, now_s: float) -> bool:
        """Set the next waypoint when one is reached.

        True when homing is over: the arm rests at home, or `blocked` says why not.
        """
        if not self._waypoints:
            return False
        missed = self._deadline.missed(servo_state, now_s)
        if missed:
            return self._give_up(missed)
        if not self._arm.arrived(servo_state):
            return False
        if servo_state.blocked:
            self._contacts += 1
            if self._contacts >= _MAX_CONTACTS:
                return self._give_up(servo_state.message)
            self._go_on(now_s)
            return False
        if len(self._waypoints) == 1 and not self._is_home(servo_state):
            return False
        self._waypoints.pop(0)
        if self._waypoints:
            self._go_on(now_s)
        return not self._waypoints

    def _go_on(self, now_s: float) -> None:
        self._arm.set_target(self._waypoints[0])
        self._deadline.begin(self._waypoints[0], now_s)

    def _give_up(self, why: str) -> bool:
        self.blocked, self._waypoints = why, []
        return True

    def _is_home(self, servo_state: ServoState) -> bool:
        """Whether the arm is measured to rest at home."""
        tolerance = (self._config.arrival_tolerance_m, self._config.arrival_tolerance_rad)
        arm = self._arm
        return arm.resting(servo_state) and arm.is_at_target(
            servo_state, self._waypoints[0], tolerance
        )
