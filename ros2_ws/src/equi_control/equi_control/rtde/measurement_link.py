# SPDX-License-Identifier: MIT
"""A link for measuring a controller: raw joints in and out, cycle by cycle, and the speed slider.

The driver does not use it. It changes nothing of the installation: TCP and payload stay as they
are, and the speed slider is put back. Every motion runs under the controller's watchdog, so that
a computer that dies stops the arm.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import rtde_control
import rtde_io
import rtde_receive
from numpy.typing import NDArray

from equi_control.rtde.config import LinkError, LinkLostError
from equi_control.rtde.robot_reading import PROGRAM_PLAYING
from equi_control.rtde.tcp_nodelay import set_tcp_nodelay

FloatArray = NDArray[np.float64]

_LOG = logging.getLogger(__name__)

WATCHDOG_HZ = 5.0
SERVO_STOP_RAD_S2 = 2.0
"""Deceleration that servoStop is asked for: the driver's."""
_RTDE_PORT = 30004
_POLL_S = 0.0002
_START_LIMIT_S = 5.0
_ARM_LIMIT_S = 2.0
_CLEAR_CYCLES = 4
_START_TRIES = 2
_MOST_READINGS = 10


class Sample(NamedTuple):
    """One cycle of the controller as this computer sees it."""

    time_s: float
    """The controller's clock."""
    arrived_s: float
    """Monotonic clock of this computer."""
    joints_rad: FloatArray
    target_joints_rad: FloatArray
    speeds_rad_s: FloatArray
    target_speed_fraction: float
    speed_scaling: float
    program_state: int
    robot_mode: int
    safety_bits: int


class MeasurementLink:
    """One connection to one controller; a context manager that stops the arm on its way out."""

    def __init__(self, host: str) -> None:
        self.host = host
        self._receive: rtde_receive.RTDEReceiveInterface | None = None
        self._control: rtde_control.RTDEControlInterface | None = None
        self._io: rtde_io.RTDEIOInterface | None = None
        self._slider_at_start: float | None = None
        self._servoing = False

    def __enter__(self) -> MeasurementLink:
        try:
            self._receive = rtde_receive.RTDEReceiveInterface(self.host)
        except RuntimeError as error:
            raise LinkLostError(
                f"no RTDE at {self.host} ({error}); is the address right and the robot on?"
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.restore_slider()
        for interface in (self._control, self._io, self._receive):
            if interface is not None:
                try:
                    interface.disconnect()
                except RuntimeError as error:
                    _LOG.warning("disconnect: %s", error)
        self._control = self._io = self._receive = None

    # Reading -------------------------------------------------------------------------------------

    def sample(self) -> Sample:
        """The newest cycle, all values of the same one."""
        receive = self._require_receive()
        for _ in range(_MOST_READINGS):
            time_s = receive.getTimestamp()
            sample = Sample(
                time_s=time_s,
                arrived_s=time.monotonic(),
                joints_rad=np.array(receive.getActualQ()),
                target_joints_rad=np.array(receive.getTargetQ()),
                speeds_rad_s=np.array(receive.getActualQd()),
                target_speed_fraction=float(receive.getTargetSpeedFraction()),
                speed_scaling=float(receive.getSpeedScaling()),
                program_state=int(receive.getRuntimeState()),
                robot_mode=int(receive.getRobotMode()),
                safety_bits=int(receive.getSafetyStatusBits()),
            )
            if receive.getTimestamp() == time_s:
                break
        return sample

    def next_sample(self, after: Sample | None, timeout_s: float = 0.5) -> Sample:
        """Wait for a cycle newer than `after`.

        Raises:
            LinkLostError: none came in time.
        """
        receive = self._require_receive()
        deadline_s = time.monotonic() + timeout_s
        while after is not None and receive.getTimestamp() == after.time_s:
            if time.monotonic() > deadline_s or not receive.isConnected():
                raise LinkLostError(f"{self.host} was silent for {timeout_s} s")
            time.sleep(_POLL_S)
        return self.sample()

    def tcp_radius_m(self) -> float:
        """Horizontal distance of the TCP from the base's axis [m]."""
        x, y, *_ = self._require_receive().getActualTCPPose()
        return math.hypot(x, y)

    def force(self) -> FloatArray:
        """`actual_TCP_force` (6,): N and N m, in the controller's base frame, as published."""
        return np.array(self._require_receive().getActualTCPForce())

    # The program ---------------------------------------------------------------------------------

    def start_program(self) -> float | None:
        """Load ur_rtde's control program with the watchdog armed; returns how long its start took.

        Returns:
            From the end of the upload until the program plays [s]; None at the first connection,
            whose upload cannot be told apart from the library's other work.
        """
        for attempt in range(_START_TRIES):
            try:
                return self._start_once()
            except LinkError:
                # Nothing has moved: a program that did not come up may be tried again, afresh.
                if attempt == _START_TRIES - 1:
                    raise
                self.release()
            except RuntimeError as error:
                raise LinkError(
                    f"{self.host} did not start the control program: {error}. Remote control on, "
                    "no other RTDE client, EtherNet/IP, PROFINET and Modbus off?"
                ) from error
        return None

    def servo(
        self, joints_rad: FloatArray, period_s: float, lookahead_s: float, gain: float
    ) -> None:
        """Stream one joint target; feeds the watchdog.

        Raises:
            LinkLostError: the program does not take it any more.
        """
        self._servoing = True
        taken = self._require_control().servoJ(
            joints_rad.tolist(), 0.5, 0.5, period_s, lookahead_s, gain
        )
        if not taken:
            raise LinkLostError(f"{self.host} did not take a servo target; its program has stopped")

    def servo_stop(self) -> None:
        """Decelerate the servo motion; returns when the controller says that it is done."""
        self._servoing = False
        self._require_control().servoStop(SERVO_STOP_RAD_S2)

    def begin_move(self, joints_rad: Sequence[float], speed_rad_s: float) -> None:
        """Start a moveJ; it goes on by itself while the watchdog is fed (`kick`)."""
        if not self._require_control().moveJ(list(joints_rad), speed_rad_s, 0.8, True):
            raise LinkError(f"{self.host} refused a move of the arm; see the pendant")

    @property
    def move_ended(self) -> bool:
        """Whether the controller itself takes the last move for ended."""
        return int(self._require_control().getAsyncOperationProgress()) < 0

    def kick(self) -> None:
        """Feed the watchdog without a command."""
        self._require_control().kickWatchdog()

    def trigger_protective_stop(self) -> None:
        """Ask the controller for a protective stop."""
        self._require_control().triggerProtectiveStop()

    def stop(self) -> None:
        """Brake and end the program; safe in any state, and again."""
        control = self._control
        if control is None:
            return
        try:
            if control.isConnected() and control.isProgramRunning():
                if self._servoing:
                    control.servoStop(SERVO_STOP_RAD_S2)
                control.stopScript()
        except RuntimeError as error:
            _LOG.error("the arm could not be stopped by command (%s); its watchdog does it", error)
        self._servoing = False

    def release(self) -> None:
        """Stop, and give up the control registers for another client."""
        self.stop()
        if self._control is not None:
            self._control.disconnect()
            self._control = None

    def _start_once(self) -> float | None:
        started_s: float | None = None
        if self._control is None:
            self._control = rtde_control.RTDEControlInterface(self.host)
            set_tcp_nodelay(self.host, _RTDE_PORT)
        else:
            self._clear_command(self._control)
            self._control.reuploadScript()
            uploaded_s = time.monotonic()
            self._wait_until_playing(uploaded_s)
            started_s = time.monotonic() - uploaded_s
        self._arm_watchdog(self._control)
        return started_s

    # The speed slider ----------------------------------------------------------------------------

    def set_slider(self, fraction: float) -> None:
        """Set the speed slider; the first call remembers where it was."""
        if self._io is None:
            self._slider_at_start = self.sample().target_speed_fraction
            self._io = rtde_io.RTDEIOInterface(self.host)
        if not self._io.setSpeedSlider(fraction):
            raise LinkError(
                f"{self.host} did not take the speed slider; is another client or a fieldbus "
                "writing it?"
            )

    def restore_slider(self) -> None:
        """Put the slider back, if it was touched."""
        if self._io is not None and self._slider_at_start is not None:
            try:
                self._io.setSpeedSlider(min(max(self._slider_at_start, 0.0), 1.0))
            except RuntimeError as error:
                _LOG.error("the speed slider could not be put back: %s", error)

    def _clear_command(self, control: rtde_control.RTDEControlInterface) -> None:
        """Empty the command register and let cycles pass: a new program runs what it finds there.

        The upload goes over another connection and could overtake the clearing.
        """
        control.kickWatchdog()  # writes command 0
        sample = self.sample()
        for _ in range(_CLEAR_CYCLES):
            sample = self.next_sample(sample)

    def _arm_watchdog(self, control: rtde_control.RTDEControlInterface) -> None:
        """Arm it; the library's own view of a program that has just begun may be cycles behind."""
        deadline_s = time.monotonic() + _ARM_LIMIT_S
        while not (control.isProgramRunning() and control.setWatchdog(WATCHDOG_HZ)):
            if time.monotonic() > deadline_s:
                raise LinkError(f"{self.host} did not arm the watchdog; nothing will move")
            time.sleep(0.01)

    def _wait_until_playing(self, since_s: float) -> None:
        while self.sample().program_state != PROGRAM_PLAYING:
            if time.monotonic() - since_s > _START_LIMIT_S:
                raise LinkError(
                    f"the program of {self.host} does not play after {_START_LIMIT_S} s"
                )
            time.sleep(_POLL_S)

    def _require_receive(self) -> rtde_receive.RTDEReceiveInterface:
        if self._receive is None:
            raise LinkError("the link is closed; open a new one")
        return self._receive

    def _require_control(self) -> rtde_control.RTDEControlInterface:
        if self._control is None:
            raise LinkError("no program is loaded; call start_program first")
        return self._control
