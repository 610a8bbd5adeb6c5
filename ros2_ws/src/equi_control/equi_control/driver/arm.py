# SPDX-License-Identifier: MIT
"""The arm as the driver uses it: one servo process at a time, targets by number, newest state."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equi_control.rtde import controller_program
from equi_control.servo.config import ServoConfig
from equi_control.servo.process import ServoProcess
from equi_control.servo.shared_state import Phase, ServoState
from equi_core.geometry import wrap_angle_rad, yaw_of

FloatArray = NDArray[np.float64]

_LOG = logging.getLogger(__name__)
_AT_REST_RAD_S = 0.003
# A servo process that was asked to end and has not by then is killed.
_END_TIMEOUT_S = 5.0

ServoFactory = Callable[[ServoConfig], ServoProcess]


class Arm:
    """Owns the servo process; never blocks, except in `close`.

    A process that ends still holds the controller's registers, so the next one starts after it.
    """

    def __init__(self, config: ServoConfig, make_servo: ServoFactory) -> None:
        self._config = config
        self._make_servo = make_servo
        self._target_number = 0
        self._end_by_s: float | None = None
        self._start_wanted = False
        self._program_end: threading.Thread | None = None
        self.servo: ServoProcess | None = None
        self.last_state: ServoState | None = None
        """The shared state at the last `poll`; None before the first."""

    def start(self) -> None:
        """Start a new servo process; it connects by itself and moves nothing.

        While the old one ends, the new one waits; `poll` starts it.
        """
        self._start_wanted = True
        self._start_if_free()

    @property
    def starting(self) -> bool:
        """Whether a new process is wanted and the old one has not ended yet."""
        return self._start_wanted

    def _start_if_free(self) -> None:
        if self._program_end is not None and self._program_end.is_alive():
            return  # it would end the new process's program
        if self.servo is not None and self._end_by_s is not None:
            if self.servo.alive and time.monotonic() < self._end_by_s:
                return
            self.servo.kill()
        if self._start_wanted:
            self._start_wanted, self._end_by_s = False, None
            self.servo = self._make_servo(self._config)
            self.servo.start()

    def poll(self) -> ServoState | None:
        """Take the newest state of the servo process, and show it that the driver is alive."""
        self._start_if_free()
        if self.servo is not None:
            self.servo.beat()
            self.last_state = self.servo.state()
        return self.last_state

    @property
    def is_idle(self) -> bool:
        """Whether the robot is connected and nobody drives it."""
        if self.servo is None or self._end_by_s is not None:
            return False
        return self.servo.phase is Phase.IDLE

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

    def settle(self) -> None:
        """Give up the target and stay where the arm is measured to be."""
        if self.servo is not None:
            self.servo.settle()

    def end(self) -> None:
        """Brake within the caps and end the process; returns at once."""
        if self.servo is not None:
            self.servo.begin_end()
            self._end_by_s = time.monotonic() + _END_TIMEOUT_S

    def abort(self, why: str) -> None:
        """Stop the arm at once and end the process; returns at once."""
        if self.servo is not None:
            self.servo.abort(why)
            self._end_by_s = time.monotonic() + _END_TIMEOUT_S

    def close(self) -> None:
        """Stop the arm and wait until the process has ended."""
        self._start_wanted = False
        if self.servo is not None:
            self.servo.end()

    def kill(self) -> None:
        """End the process at once; the robot's watchdog stops the arm."""
        if self.servo is not None:
            self.servo.kill()

    def has_lost_servo(self, silence_s: float) -> bool:
        """Whether the process is silent for longer than this, or died without stopping the arm."""
        if self.servo is None:
            return False
        died = not self.servo.alive and self.servo.phase in (Phase.IDLE, Phase.STREAMING)
        return self.servo.silence_s() > silence_s or died

    def kill_and_end_program(self) -> None:
        """End a process that cannot stop the arm any more; does not wait for the robot.

        The robot's watchdog stops a program that plays. One that a protective stop has paused would
        go on towards the old pose when somebody presses play; the dashboard ends it, in a thread.
        While it connects, the process has driven nothing: the program may be another's.
        """
        connecting = self.servo is None or self.servo.phase is Phase.CONNECTING
        self.kill()
        if connecting:
            return
        self._program_end = threading.Thread(
            target=self._end_program, name="end program", daemon=True
        )
        self._program_end.start()

    def _end_program(self) -> None:
        host = self._config.link.host
        if not controller_program.stop_program(host):
            _LOG.error(
                "the dashboard of %s did not confirm the end of the program; stop it on the "
                "pendant before anybody presses play",
                host,
            )

    def departed(self, servo_state: ServoState) -> bool:
        """Whether the servo process has taken up the newest target."""
        return servo_state.target_number == self._target_number

    def arrived(self, servo_state: ServoState) -> bool:
        """Whether the newest target has been reached by command."""
        return servo_state.finished and self.departed(servo_state)

    def is_at_target(
        self, servo_state: ServoState, target: ArrayLike, tolerance: tuple[float, float]
    ) -> bool:
        """Whether the *measured* TCP is at a pose (4,), to a distance [m] and a yaw [rad]."""
        pose = np.asarray(target, dtype=np.float64)
        off_m = float(np.linalg.norm(servo_state.position_m - pose[:3]))
        off_rad = abs(float(wrap_angle_rad(yaw_of(servo_state.task_from_tcp) - pose[3])))
        return off_m <= tolerance[0] and off_rad <= tolerance[1]

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
