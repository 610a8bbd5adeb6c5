# SPDX-License-Identifier: MIT
"""The arm as the driver uses it: one servo process at a time, targets by number, newest state."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equi_control.servo.config import ServoConfig
from equi_control.servo.process import ServoProcess
from equi_control.servo.shared_state import Phase, ServoState

FloatArray = NDArray[np.float64]

_AT_REST_RAD_S = 0.003

ServoFactory = Callable[[ServoConfig], ServoProcess]


class Arm:
    """Owns the servo process; never blocks, except to end it."""

    def __init__(self, config: ServoConfig, make_servo: ServoFactory) -> None:
        self._config = config
        self._make_servo = make_servo
        self._target_number = 0
        self.servo: ServoProcess | None = None
        self.last_state: ServoState | None = None
        """The shared state at the last `poll`; None before the first."""

    def start(self) -> None:
        """Start a new servo process; it connects by itself and moves nothing."""
        self.servo = self._make_servo(self._config)
        self.servo.start()

    def poll(self) -> ServoState | None:
        """Take the newest state of the servo process."""
        if self.servo is not None:
            self.last_state = self.servo.state()
        return self.last_state

    @property
    def is_idle(self) -> bool:
        """Whether the robot is connected and nobody drives it."""
        return self.servo is not None and self.servo.phase is Phase.IDLE

    @property
    def streaming_state(self) -> ServoState | None:
        """The newest state while the arm is being driven, else None."""
        state = None if self.servo is None else self.servo.state()
        return state if state is not None and state.phase is Phase.STREAMING else None

    def take_over(self) -> None:
        """Ask the servo process to drive the arm from its measured pose."""
        if self.servo is not None:
            self.servo.activate()

    def set_target(self, target: ArrayLike) -> None:
        """Move to a pose (4,): x, y, z [m], yaw [rad] in the task frame."""
        self._target_number += 1
        if self.servo is not None:
            self.servo.move_to(self._target_number, target)

    def decelerate(self) -> None:
        """Stop on the way, within the caps."""
        if self.servo is not None:
            self.servo.decelerate()

    def end(self) -> None:
        """Stop the arm and end the process."""
        if self.servo is not None:
            self.servo.end()

    def kill(self) -> None:
        """End the process at once; the robot's watchdog stops the arm."""
        if self.servo is not None:
            self.servo.kill()

    def departed(self, servo_state: ServoState) -> bool:
        """Whether the servo process has taken up the newest target."""
        return servo_state.target_number == self._target_number

    def arrived(self, servo_state: ServoState) -> bool:
        """Whether the newest target has been reached by command."""
        return servo_state.finished and self.departed(servo_state)

    @staticmethod
    def resting(servo_state: ServoState) -> bool:
        """Whether no joint moves."""
        return float(np.abs(servo_state.joint_speeds_rad_s).max()) < _AT_REST_RAD_S

    @property
    def measured_pose(self) -> FloatArray:
        """task_from_tcp (4, 4) at the last poll; the identity before the first reading."""
        if self.last_state is None or not math.isfinite(self.last_state.heartbeat_s):
            return np.eye(4)
        pose = self.last_state.task_from_tcp
        return pose if np.any(pose) else np.eye(4)
