"""The way home: up, over, down; one waypoint after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equi_control.arm import Arm
from equi_control.driver_config import DriverConfig

FloatArray = NDArray[np.float64]


class WayHome:
    """Drives the arm through the waypoints; does nothing until started."""

    def __init__(self, arm: Arm, config: DriverConfig) -> None:
        self._arm, self._config = arm, config
        self._waypoints: list[FloatArray] = []

    @property
    def is_under_way(self) -> bool:
        """Whether waypoints are left."""
        return bool(self._waypoints)

    def start(self, commanded: ArrayLike) -> None:
        """Begin at a commanded pose (4,): x, y, z [m], yaw [rad]."""
        x, y, z, yaw = (float(value) for value in np.asarray(commanded))
        home_x, home_y, home_z = self._config.home_position_m
        travel_z = max(z, home_z)
        self._waypoints = [
            np.array([x, y, travel_z, yaw]),
            np.array([home_x, home_y, travel_z, self._config.home_yaw_rad]),
            np.array([home_x, home_y, home_z, self._config.home_yaw_rad]),
        ]
        self._arm.aim(self._waypoints[0])

    def cancel(self) -> None:
        """Forget the rest of the way; the caller brakes."""
        self._waypoints = []

    def advance(self, servo_state: Any) -> bool:
        """Aim at the next waypoint when one is reached; True when the arm rests at home."""
        if not self._waypoints or not self._arm.arrived(servo_state):
            return False
        if len(self._waypoints) == 1 and not self._arm.resting(servo_state):
            return False
        self._waypoints.pop(0)
        if self._waypoints:
            self._arm.aim(self._waypoints[0])
        return not self._waypoints
