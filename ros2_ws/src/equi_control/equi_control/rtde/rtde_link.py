# SPDX-License-Identifier: MIT
"""The link to the UR controller: the only file that imports ur_rtde.

Rotation vectors, the controller's `base` frame and the library's habits stop here. The library
keeps returning True and the last values for ever after a loss, so nothing it says is believed by
itself: a reading carries the age of the controller's clock, both connections, the program's state
and the safety bits, and `problem_of` reduces them to one code.

Objects of the library are never reused after a loss: a new link is a new `RtdeLink`.
"""

from __future__ import annotations

import logging
import math
import time

import numpy as np
import rtde_control
import rtde_receive
from numpy.typing import ArrayLike, NDArray

from equi_control.rtde import controller_program
from equi_control.rtde.config import LinkConfig, LinkError, LinkLostError
from equi_control.rtde.dashboard import DashboardError
from equi_control.rtde.robot_reading import ADVICE, Problem, Reading, problem_of
from equi_control.rtde.tcp_nodelay import set_tcp_nodelay
from equi_core.geometry import matrix_to_ur_pose, ur_pose_to_matrix
from equi_core.motion.realtime import ordinary_priority

__all__ = ["LinkConfig", "LinkError", "LinkLostError", "RtdeLink"]

FloatArray = NDArray[np.float64]

_LOG = logging.getLogger(__name__)

_SERVO_STOP_DECELERATION_M_S2 = 2.0
_RTDE_PORT = 30004
_CYCLE_POLL_S = 0.0002
# A reading takes a small part of a cycle; more than a few of them are never torn in a row.
_MOST_READINGS = 10


class RtdeLink:
    """One connection to one controller; a context manager that stops the arm on its way out."""

    def __init__(self, config: LinkConfig) -> None:
        self._config = config
        self._control: rtde_control.RTDEControlInterface | None = None
        self._receive: rtde_receive.RTDEReceiveInterface | None = None
        self._watchdog_armed = False
        self._servoing = False
        self._last_controller_time_s = math.nan
        self._last_advance_s = 0.0

    def __enter__(self) -> RtdeLink:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self, *, listen_only: bool = False) -> None:
        """Connect, check that the robot is ready, set TCP and payload. Moves nothing.

        Args:
            listen_only: no program is loaded, so the pendant keeps the arm (freedrive) and nothing
                here can move it; the TCP stays the one set on the pendant.
        """
        config = self._config
        try:
            # Receiving first: it needs no program, so a stopped robot can still explain itself.
            self._receive = rtde_receive.RTDEReceiveInterface(config.host)
            reading = self.read()
            problem = problem_of(reading, max_age_s=1.0)
            if problem not in (Problem.NONE, Problem.PROGRAM_STOPPED):
                raise LinkError(f"{config.host}: {problem.value}; {ADVICE[problem]}", problem)
            if listen_only:
                return
            self._require_model()
            self._control = rtde_control.RTDEControlInterface(config.host)
            if set_tcp_nodelay(config.host, _RTDE_PORT) == 0:
                raise LinkError(
                    "the library's connection was not found among the files of this process; "
                    "poses would be held back by the network (is this Linux?)"
                )
            tcp = config.geometry.tcp_offset
            if not self._control.setTcp(tcp):
                raise LinkError(f"{config.host} did not accept the TCP offset {tcp}")
            if not self._control.setPayload(config.payload_kg, list(config.payload_cog_m)):
                raise LinkError(f"{config.host} did not accept a payload of {config.payload_kg} kg")
        except LinkError:
            self.close()
            raise
        except RuntimeError as error:
            problem = self._problem_of_refusal()
            self.close()
            raise LinkError(
                f"cannot connect to the controller at {config.host}: {error}. Is the address "
                "right, the robot on, remote control enabled, and no other program connected?",
                problem,
            ) from error

    @property
    def rate_hz(self) -> float:
        """Cycles per second of this controller generation: 125, or 500 for e-Series."""
        step_s = self._wait_for_step()
        return 500.0 if step_s < 0.004 else 125.0

    def read(self) -> Reading:
        """The newest state, of one cycle. Never raises on a lost connection: the reading says so.

        The library hands out one value at a time, and its own thread may put the next cycle in
        between. After a hold-up it puts many: measured and target pose of different cycles would
        then look like contact.
        """
        receive = self._require_receive()
        for _ in range(_MOST_READINGS):
            reading = self._read_values(receive)
            if receive.getTimestamp() == reading.controller_time_s:
                break
        return reading

    def _read_values(self, receive: rtde_receive.RTDEReceiveInterface) -> Reading:
        now_s = time.monotonic()
        controller_time_s = receive.getTimestamp()
        if controller_time_s != self._last_controller_time_s:
            self._last_controller_time_s, self._last_advance_s = controller_time_s, now_s
        connected = receive.isConnected() and (self._control is None or self._control.isConnected())
        twist = np.array(receive.getActualTCPSpeed())
        wrench = np.array(receive.getActualTCPForce())
        for vector in (twist, wrench):
            # base_link is the controller's base rotated by 180 degrees about z.
            vector[[0, 1, 3, 4]] *= -1.0
        return Reading(
            base_link_from_tcp=ur_pose_to_matrix(receive.getActualTCPPose()),
            base_link_from_target_tcp=ur_pose_to_matrix(receive.getTargetTCPPose()),
            twist=twist,
            wrench=wrench,
            joints_rad=np.array(receive.getActualQ()),
            joint_speeds_rad_s=np.array(receive.getActualQd()),
            controller_time_s=controller_time_s,
            age_s=now_s - self._last_advance_s,
            connected=connected,
            program_state=int(receive.getRuntimeState()),
            robot_mode=int(receive.getRobotMode()),
            safety_mode=int(receive.getSafetyMode()),
            safety_bits=int(receive.getSafetyStatusBits()),
            speed_slider=float(receive.getTargetSpeedFraction()),
            speed_scaling=float(receive.getSpeedScaling()),
        )

    def cycle_time_s(self) -> float:
        """The controller's clock at its newest cycle [s]: changes once per cycle."""
        return float(self._require_receive().getTimestamp())

    def wait_for_cycle(self, after_s: float, timeout_s: float) -> bool:
        """Wait for a cycle newer than `after_s`; False if none comes in time.

        Time in which this process was not scheduled does not count: what has arrived meanwhile is
        taken up by the library's thread, which was not scheduled either.
        """
        receive = self._require_receive()
        now_s = time.monotonic()
        deadline_s = now_s + timeout_s
        while receive.getTimestamp() == after_s:
            if now_s > deadline_s:
                return False
            before_s = now_s
            time.sleep(_CYCLE_POLL_S)
            now_s = time.monotonic()
            if now_s - before_s > timeout_s:
                deadline_s += now_s - before_s
        return True

    def arm_watchdog(self) -> None:
        """Let the controller stop the arm by itself when commands stay away.

        It stays armed until the program ends; from here on only `servo` and `kick` keep it alive,
        and blocking moves are refused.
        """
        if not self._require_control().setWatchdog(self._config.watchdog_hz):
            raise LinkError(f"{self._config.host} did not arm the watchdog; nothing will move")
        self._watchdog_armed = True
        self.kick()

    def servo(self, base_link_from_tcp: FloatArray, period_s: float) -> bool:
        """Stream one pose; returns at once. Also feeds the watchdog.

        Raises:
            LinkError: the watchdog is not armed, so nothing would stop a runaway.
        """
        if not self._watchdog_armed:
            raise LinkError("servo was called before arm_watchdog; arm it first")
        self._servoing = True
        pose = matrix_to_ur_pose(base_link_from_tcp).tolist()
        config = self._config
        control = self._require_control()
        try:
            # Speed and acceleration are not used by the controller's servoL.
            return bool(control.servoL(pose, 0.5, 0.5, period_s, config.lookahead_s, config.gain))
        except RuntimeError as error:
            raise LinkLostError(f"{config.host}: {error}") from error

    def brake(self, deceleration_m_s2: float) -> bool:
        """Stop the arm on the controller itself and wait for rest; the program plays on.

        Faster than any stream: what lies ahead of the arm in the controller's smoothing is dropped.
        The next `servo` must start at the measured pose.
        """
        control = self._require_control()
        try:
            with ordinary_priority():
                stopped = bool(control.servoStop(deceleration_m_s2))
        except RuntimeError as error:
            raise LinkLostError(f"{self._config.host}: {error}") from error
        self._servoing = False
        return stopped

    def kick(self) -> bool:
        """Feed the watchdog without moving."""
        return bool(self._require_control().kickWatchdog())

    def move_to(
        self, base_link_from_tcp: ArrayLike, speed_m_s: float = 0.05, acceleration_m_s2: float = 0.3
    ) -> None:
        """Move in a straight line to any TCP pose and wait until the arm has settled there.

        For calibration and other supervised work, before the watchdog is armed.
        """
        self._refuse_under_watchdog("move_to")
        pose = matrix_to_ur_pose(base_link_from_tcp).tolist()
        control = self._require_control()
        if not control.isPoseWithinSafetyLimits(pose):
            raise LinkError(
                f"pose {np.round(pose, 4).tolist()} (controller base) is outside the safety limits "
                "or out of reach; choose another"
            )
        self._finish_move(control.moveL(pose, speed_m_s, acceleration_m_s2), "move_to")

    def move_joints(
        self, joints_rad: ArrayLike, speed_rad_s: float = 0.3, acceleration_rad_s2: float = 0.6
    ) -> None:
        """Move to joint angles (6,) and wait until the arm has settled; as `move_to`."""
        self._refuse_under_watchdog("move_joints")
        joints = [float(value) for value in np.asarray(joints_rad, dtype=np.float64)]
        control = self._require_control()
        if not control.isJointsWithinSafetyLimits(joints):
            raise LinkError(f"joints {np.round(joints, 3).tolist()} are outside the safety limits")
        self._finish_move(control.moveJ(joints, speed_rad_s, acceleration_rad_s2), "move_joints")

    def stop(self) -> None:
        """Brake and end the program; safe to call in any state, and again.

        A program that a protective stop has *paused* does not listen any more, but whoever presses
        play on the pendant resumes it towards the old pose. The dashboard ends it.
        """
        control = self._control
        if control is None:
            return
        ended = False
        try:
            if control.isConnected() and control.isProgramRunning():
                if self._servoing:
                    control.servoStop(_SERVO_STOP_DECELERATION_M_S2)
                ended = bool(control.stopScript()) and not control.isProgramRunning()
        except RuntimeError as error:
            _LOG.error("the arm could not be stopped by command (%s); its watchdog does it", error)
        if not ended and not controller_program.stop_program(self._config.host):
            _LOG.error("the dashboard did not confirm the end of the program")
        self._servoing = False
        self._watchdog_armed = False

    def close(self) -> None:
        """Stop the arm first, then let go of both connections."""
        self.stop()
        for interface in (self._control, self._receive):
            if interface is not None:
                try:
                    interface.disconnect()
                except RuntimeError as error:
                    _LOG.warning("disconnect: %s", error)
        self._control = None
        self._receive = None

    def _require_model(self) -> None:
        """Refuse another arm than the configured one: its links are other ones."""
        wanted, host = self._config.robot_model, self._config.host
        try:
            found = controller_program.robot_model(host)
        except DashboardError as error:
            raise LinkError(f"which arm stands at {host} is not known: {error}") from error
        if found != wanted:
            raise LinkError(
                f"wrong_model: the controller at {host} drives a {found}, but link.robot_model is "
                f"{wanted}; correct the cell file, or the address"
            )

    def _problem_of_refusal(self) -> Problem:
        """Why the library could not be set up; a controller that can be read says so itself."""
        if self._receive is None:
            return Problem.CONNECTION_LOST
        problem = problem_of(self.read(), max_age_s=1.0)
        unexplained = problem in (Problem.NONE, Problem.PROGRAM_STOPPED)
        return Problem.ROBOT_NOT_RUNNING if unexplained else problem

    def _finish_move(self, succeeded: bool, what: str) -> None:
        deadline_s = time.monotonic() + 3.0
        while succeeded and not self.read().at_rest:
            if time.monotonic() > deadline_s:
                raise LinkError(f"{what}: the arm does not come to rest")
            time.sleep(0.01)
        if not succeeded:
            problem = problem_of(self.read(), max_age_s=0.5)
            raise LinkError(f"{what} failed ({problem.value}); {ADVICE[problem]}")

    def _refuse_under_watchdog(self, what: str) -> None:
        if self._watchdog_armed:
            raise LinkError(
                f"{what} blocks for longer than the armed watchdog allows; open a new link for it"
            )

    def _wait_for_step(self) -> float:
        """Smallest advance of the controller's clock seen over some cycles [s]."""
        receive = self._require_receive()
        seen = {receive.getTimestamp()}
        deadline_s = time.monotonic() + 2.0
        while len(seen) < 12 and time.monotonic() < deadline_s:
            seen.add(receive.getTimestamp())
            time.sleep(0.0002)
        if len(seen) < 3:
            raise LinkError(f"the clock of {self._config.host} does not advance; is it frozen?")
        return float(np.min(np.diff(sorted(seen))))

    def _require_receive(self) -> rtde_receive.RTDEReceiveInterface:
        if self._receive is None:
            raise LinkError("the link is closed; open a new one")
        return self._receive

    def _require_control(self) -> rtde_control.RTDEControlInterface:
        if self._control is None:
            raise LinkError("the link is closed or only listens; open a new one")
        return self._control
