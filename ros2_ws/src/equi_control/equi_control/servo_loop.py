"""The servo process: owns the link, streams checked poses at the controller's rate.

It stops the arm first and explains second. It ends, with the arm stopped, on any problem of the
robot, on any error of its own, and when its parent is gone; a new start is a new process. If it is
killed or hangs, the controller's watchdog stops the arm.

The loop sleeps to absolute deadlines on the monotonic clock that are locked to the controller's
own cycles, and sends at most one pose per controller cycle. A process that is late repeats its last
pose and moves the arm later, never faster: no catching up, no two steps in one cycle.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from equi_control.rtde_link import (
    LinkConfig,
    LinkError,
    LinkLostError,
    Problem,
    Reading,
    RtdeLink,
    problem_of,
)
from equi_control.shared_state import Phase, SharedState
from equi_core.geometry import tilt_of, top_down_pose, wrap_angle_rad, yaw_of
from equi_core.realtime import raise_priority
from equi_core.safety import SafetyLimits, guard_setpoint
from equi_core.trajectory import TrajectoryGenerator

FloatArray = NDArray[np.float64]

_LOG = logging.getLogger(__name__)

# Commands to the robot during shutdown may hang in the library: after this the kernel ends us.
_LAST_WORDS_S = 3.0
_UPRIGHTING_RATE_RAD_S = 0.1
# An orderly end brakes along the trajectory first, for at most this long.
_ORDERLY_END_S = 1.0
# Wake up this long before the controller's next cycle is due, and look for it from then on.
_EARLY_S = 0.0008
# A pose computed later than this share of the cycle might meet the next one in the controller.
_LATEST_SHARE = 0.6
# Cycles that follow each other faster than this share of a period are a controller catching up:
# it may read both answers in one cycle.
_LEAST_SPACING = 0.5
# How fast the estimate of "when is a cycle due" may grow, in periods per cycle.
_CLOCK_SLIP = 0.25
# A refused servo command is explained by one of the next readings.
_EXPLANATION_S = 0.1


@dataclass(frozen=True)
class ServoConfig:
    """Everything the servo process needs; plain data, so that it can be sent to it."""

    link: LinkConfig
    limits: SafetyLimits = field(default_factory=SafetyLimits)
    max_state_age_s: float = 0.1
    """No news from the controller for this long is a lost connection [s]."""
    blocked_lag_m: float = 0.012
    """Measured TCP behind the controller's own target by this much means contact [m]."""
    max_contact_force_n: float = 80.0
    """Estimated force at the TCP that counts as contact [N]."""
    max_tilt_rad: float = 0.2
    """A tool tilted further than this from straight down is not taken over [rad]."""
    realtime_priority: int = 5
    """Real-time priority wished for the process; ignored without permission."""


class TakeOverError(Exception):
    """The arm is in a pose from which it must not be driven; says what to do."""


class Streamer:
    """Commanded pose from take-over on: trajectory, guard, and uprighting of a tilted tool."""

    def __init__(self, reading: Reading, config: ServoConfig, period_s: float) -> None:
        limits = config.limits
        pose = reading.base_link_from_tcp
        tilt_rad = float(tilt_of(pose))
        if tilt_rad > config.max_tilt_rad:
            raise TakeOverError(
                f"the tool is tilted by {tilt_rad:.2f} rad, at most {config.max_tilt_rad} is "
                "allowed; jog it to point straight down"
            )
        position = pose[:3, 3]
        inside = np.clip(position, limits.workspace.lower_m, limits.workspace.upper_m)
        outside_m = float(np.linalg.norm(position - inside))
        if outside_m > limits.max_outside_m:
            raise TakeOverError(
                f"the TCP at {np.round(position, 3).tolist()} m is {outside_m:.3f} m outside the "
                f"workspace, at most {limits.max_outside_m} is allowed; jog it back"
            )
        self._limits, self._period_s = limits, period_s
        yaw = float(yaw_of(pose))
        upright = top_down_pose(position, yaw)
        self._residual = Rotation.from_matrix(upright[:3, :3].T @ pose[:3, :3]).as_rotvec()
        self._uprighting_s = float(np.linalg.norm(self._residual)) / _UPRIGHTING_RATE_RAD_S * 1.6
        self._time_s = 0.0
        self.trajectory = TrajectoryGenerator(limits, period_s, [*position, yaw])
        self.commanded = np.array([*position, yaw])
        self.pose = pose.copy()
        """base_link_from_tcp (4, 4) to be sent in this cycle."""
        self.guard_trips = 0

    def advance(self) -> None:
        """Compute `pose` for the next cycle."""
        state = self.trajectory.step()
        guarded = guard_setpoint(
            state.position[:3],
            float(state.position[3]),
            self.commanded[:3],
            float(self.commanded[3]),
            self._period_s,
            self._limits,
        )
        if guarded.findings:
            self.guard_trips += 1
            self.trajectory.restart(self.commanded)
            _LOG.error("set-point refused: %s", guarded.findings[0].message)
        self.commanded = np.array([*guarded.position_m, guarded.yaw_rad])
        pose = top_down_pose(guarded.position_m, guarded.yaw_rad)
        self._time_s += self._period_s
        if self._time_s < self._uprighting_s:
            # From the measured tilt to none, starting and ending at rest.
            share = (1.0 + math.cos(math.pi * self._time_s / self._uprighting_s)) / 2
            pose[:3, :3] = pose[:3, :3] @ Rotation.from_rotvec(share * self._residual).as_matrix()
        self.pose = pose

    def yield_to_contact(self, measured: FloatArray) -> None:
        """Give up the target and settle where the arm was stopped."""
        yaw = float(yaw_of(measured))
        yaw = float(self.commanded[3]) + float(wrap_angle_rad(yaw - self.commanded[3]))
        self.trajectory.retarget([*measured[:3, 3], yaw])


def run_servo(config: ServoConfig, commands: Connection, state: SharedState) -> None:
    """Entry point of the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to end
    signal.signal(signal.SIGTERM, _terminate)
    granted = raise_priority(config.realtime_priority)
    _LOG.info("servo process runs at %s priority", granted.value)
    link = RtdeLink(config.link)
    try:
        _ServoLoop(link, config, commands, state).run()
    except SystemExit:
        state.write(phase=Phase.ENDED, message="asked to end")
    except LinkLostError as error:
        lost = Problem.CONNECTION_LOST.value
        state.write(phase=Phase.FAULTED, problem=lost, message=str(error))
    except LinkError as error:
        state.write(
            phase=Phase.FAULTED, problem=Problem.ROBOT_NOT_RUNNING.value, message=str(error)
        )
    except Exception as error:
        state.write(phase=Phase.FAULTED, problem="internal", message=f"{error}")
        _LOG.exception("servo process failed")
    finally:
        _end(link, state)


def _end(link: RtdeLink, state: SharedState) -> None:
    """Stop the arm if it can be reached; then leave without waiting for the library."""
    # The default action of SIGALRM ends the process even while a library call holds Python's lock.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, _LAST_WORDS_S)
    lost = str(state.read()["problem"]) == Problem.CONNECTION_LOST.value
    if not lost:
        link.stop()
    os._exit(0)


def _terminate(*_: object) -> None:
    raise SystemExit


class _ServoLoop:
    """Cycle by cycle: commands in, state out, one pose to the robot."""

    def __init__(
        self, link: RtdeLink, config: ServoConfig, commands: Connection, state: SharedState
    ) -> None:
        self._link, self._config = link, config
        self._commands, self._state = commands, state
        self._streamer: Streamer | None = None
        self._period_s = 0.008
        self._target_number = 0
        self._blocked = False
        self._message = ""
        self._cycles = 0
        self._late_cycles = 0
        self._worst_gap_s = 0.0
        self._repeated_cycles = 0
        self._last_sent_s = math.nan
        self._last_advance_s = -math.inf
        self._clock_offset_s = math.inf
        self._end_by_s: float | None = None

    def run(self) -> None:
        """Connect, then serve until a problem or the end."""
        self._state.write(phase=Phase.CONNECTING, heartbeat_s=time.monotonic())
        self._link.open()
        self._period_s = 1.0 / self._link.rate_hz
        deadline_s = time.monotonic()
        answered_s = math.nan
        while True:
            _sleep_until(deadline_s - _EARLY_S)
            fresh = self._link.wait_for_cycle(answered_s, timeout_s=2 * self._period_s)
            arrived_s = time.monotonic()
            self._late_cycles += arrived_s - deadline_s > self._period_s / 2
            deadline_s = arrived_s + self._period_s
            self._take_commands()
            if self._ended():
                return
            reading = self._link.read()
            self._follow_clock(arrived_s - reading.controller_time_s)
            problem = problem_of(reading, self._config.max_state_age_s)
            if problem is Problem.NONE and fresh and self._streamer is not None:
                problem = self._stream(self._streamer, reading)
                # Cycles that passed while this one was computed are answered as well.
                answered_s = self._link.cycle_time_s()
            elif fresh:
                answered_s = reading.controller_time_s
            if problem is not Problem.NONE:
                self._fail(reading, problem)
                return
            self._publish(reading, Phase.IDLE if self._streamer is None else Phase.STREAMING)

    def _take_commands(self) -> None:
        if self._end_by_s is not None:
            return
        try:
            while self._commands.poll():
                self._obey(self._commands.recv())
        except (EOFError, OSError):
            self._begin_end("the driver is gone")

    def _begin_end(self, why: str) -> None:
        """Brake along the trajectory before the program is stopped."""
        self._message = why
        self._end_by_s = time.monotonic() + _ORDERLY_END_S
        if self._streamer is not None:
            self._streamer.trajectory.stop()

    def _ended(self) -> bool:
        if self._end_by_s is None:
            return False
        at_rest = self._streamer is None or self._streamer.trajectory.finished
        if at_rest or time.monotonic() > self._end_by_s:
            self._state.write(phase=Phase.ENDED, message=self._message)
            return True
        return False

    def _obey(self, command: tuple[Any, ...]) -> None:
        name, *arguments = command
        if name == "end":
            self._begin_end("asked to end")
        elif name == "activate":
            self._take_over()
        elif self._streamer is None:
            return
        elif name == "target":
            self._target_number, target = int(arguments[0]), arguments[1]
            self._blocked = False
            self._streamer.trajectory.retarget(target)
        elif name == "brake":
            self._streamer.trajectory.stop()

    def _take_over(self) -> None:
        """Start streaming at the measured pose: nothing moves, whatever was wished before."""
        if self._streamer is not None:
            return
        reading = self._link.read()
        try:
            self._streamer = Streamer(reading, self._config, self._period_s)
        except TakeOverError as error:
            self._message = str(error)
            return
        self._message = ""
        self._blocked = False
        self._link.arm_watchdog()
        self._last_sent_s = math.nan

    def _stream(self, streamer: Streamer, reading: Reading) -> Problem:
        """Send one pose; a refusal is turned into the problem that explains it."""
        self._notice_contact(streamer, reading)
        now_s = time.monotonic()
        spaced = now_s - self._last_advance_s >= _LEAST_SPACING * self._period_s
        if spaced and self._share_of_cycle_gone(reading) <= _LATEST_SHARE:
            streamer.advance()
            self._last_advance_s = now_s
        else:
            self._repeated_cycles += 1
        if not self._link.servo(streamer.pose, self._period_s):
            return self._explanation()
        now_s = time.monotonic()
        if not math.isnan(self._last_sent_s):
            self._worst_gap_s = max(self._worst_gap_s, now_s - self._last_sent_s)
        self._last_sent_s = now_s
        return Problem.NONE

    def _follow_clock(self, offset_s: float) -> None:
        """Learn when cycles are due: the least delay seen, allowed to grow slowly."""
        slip_s = _CLOCK_SLIP * self._period_s
        self._clock_offset_s = min(offset_s, self._clock_offset_s + slip_s)

    def _share_of_cycle_gone(self, reading: Reading) -> float:
        due_s = self._clock_offset_s + reading.controller_time_s
        return (time.monotonic() - due_s) / self._period_s

    def _explanation(self) -> Problem:
        """Why the controller refused: the reading that says so may be a cycle or two behind."""
        until_s = time.monotonic() + _EXPLANATION_S
        while time.monotonic() < until_s:
            problem = problem_of(self._link.read(), self._config.max_state_age_s)
            # A stopped program is only the symptom if a safety state is about to follow.
            if problem not in (Problem.NONE, Problem.PROGRAM_STOPPED):
                return problem
            time.sleep(self._period_s / 2)
        return Problem.PROGRAM_STOPPED

    def _notice_contact(self, streamer: Streamer, reading: Reading) -> None:
        if self._blocked or streamer.trajectory.finished:
            return
        lag_m = float(
            np.linalg.norm(
                reading.base_link_from_target_tcp[:3, 3] - reading.base_link_from_tcp[:3, 3]
            )
        )
        force_n = float(np.linalg.norm(reading.wrench[:3]))
        if lag_m > self._config.blocked_lag_m or force_n > self._config.max_contact_force_n:
            self._blocked = True
            self._message = f"contact: {lag_m * 1e3:.0f} mm behind the target, {force_n:.0f} N"
            streamer.yield_to_contact(reading.base_link_from_tcp)

    def _fail(self, reading: Reading, problem: Problem) -> None:
        """Stop first, explain second."""
        period_s = 1.0 / self._config.link.watchdog_hz
        starved = self._streamer is not None and self._worst_gap_s > period_s
        if problem is not Problem.CONNECTION_LOST:
            self._link.stop()
        code = "watchdog" if problem is Problem.PROGRAM_STOPPED and starved else problem.value
        words = problem.value.replace("_", " ")
        self._message = f"{code}: {words} while {'driving' if self._streamer else 'idle'}"
        self._publish(reading, Phase.FAULTED, problem=code)

    def _publish(self, reading: Reading, phase: Phase, problem: str = "none") -> None:
        self._cycles += 1
        streamer = self._streamer
        self._state.write(
            heartbeat_s=time.monotonic(),
            cycles=self._cycles,
            phase=phase,
            problem=problem,
            message=self._message,
            period_s=self._period_s,
            base_link_from_tcp=reading.base_link_from_tcp,
            twist=reading.twist,
            wrench=reading.wrench,
            joints_rad=reading.joints_rad,
            joint_speeds_rad_s=reading.joint_speeds_rad_s,
            state_age_s=reading.age_s,
            robot_mode=reading.robot_mode,
            safety_mode=reading.safety_mode,
            commanded=np.zeros(4) if streamer is None else streamer.commanded,
            commanded_speed_m_s=0.0
            if streamer is None
            else float(np.linalg.norm(streamer.trajectory.state.velocity[:3])),
            target_number=self._target_number,
            finished=streamer is None or streamer.trajectory.finished,
            blocked=self._blocked,
            worst_gap_s=self._worst_gap_s,
            late_cycles=self._late_cycles,
            repeated_cycles=self._repeated_cycles,
            guard_trips=0 if streamer is None else streamer.guard_trips,
        )


def _sleep_until(deadline_s: float) -> None:
    """Absolute deadline on the monotonic clock."""
    left_s = deadline_s - time.monotonic()
    if left_s > 0:
        time.sleep(left_s)
