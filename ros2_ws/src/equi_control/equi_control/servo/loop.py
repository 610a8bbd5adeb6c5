# SPDX-License-Identifier: MIT
"""The servo process: owns the link, streams checked poses at the controller's rate.

It stops the arm first and explains second. It ends, with the arm stopped, on any problem of the
robot, on any error of its own, and when its parent is gone or hangs; a new start is a new process.
If it is killed or hangs itself, the controller's watchdog stops the arm.

The loop sleeps to absolute deadlines on the monotonic clock that are locked to the controller's
own cycles. It sends a new pose only when the controller has read the last one (`cycle_clock`), and
repeats the last one otherwise, also while the controller is silent: that keeps its watchdog quiet.
After a pause that the arm could feel, the motion speeds up from rest.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import time
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from equi_control.rtde.robot_reading import Problem, Reading, problem_of
from equi_control.rtde.rtde_link import LinkError, RtdeLink
from equi_control.servo.config import ServoConfig
from equi_control.servo.cycle_clock import CycleClock
from equi_control.servo.heartbeat import Heartbeat
from equi_control.servo.log_relay import LogSender
from equi_control.servo.shared_state import Phase, ServoState, SharedState
from equi_control.servo.streamer import Streamer, TakeOverError
from equi_control.servo.yielding import ContactYielding
from equi_core.motion.joint_limits import warm_up
from equi_core.motion.realtime import raise_priority

_LOG = logging.getLogger(__name__)

# Commands to the robot during shutdown may hang in the library: after this the kernel ends us.
_SHUTDOWN_LIMIT_S = 3.0
# An orderly end brakes along the trajectory first, for at most this long.
_ORDERLY_END_S = 1.0
# Wake up this long before the controller's next cycle is due, and look for it from then on.
_EARLY_S = 0.0008
# A stop of the program this soon after a gap in the stream is the work of the watchdog.
_STARVATION_MEMORY_S = 1.0
# A refused servo command is explained by one of the next readings.
_EXPLANATION_S = 0.1
# Slower than this the stream is not planned: the arm then lags, and the step ends as not arrived.
_LEAST_SPEED_SHARE = 0.05
# A change of the controller's speed smaller than this is not worth a new plan.
_SPEED_SHARE_STEP = 0.03
# An arm further behind its commanded pose than smoothing explains is slowed by the controller.
_FAR_BEHIND_M = 0.045


def run_servo(
    config: ServoConfig,
    commands: Connection,
    state: SharedState,
    heartbeat: Heartbeat,
    log: socket.socket,
) -> None:
    """Entry point of the process."""
    LogSender(log).install()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to end
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, _terminate)
    granted = raise_priority(config.realtime_priority)
    _LOG.info("servo process runs at %s priority", granted.value)
    link = RtdeLink(config.link)
    try:
        _ServoLoop(link, config, commands, state, heartbeat).run()
    except SystemExit:
        state.write_end(Phase.ENDED, "asked to end")
    except LinkError as error:
        state.write_end(Phase.FAULTED, str(error), error.problem.value)
    except Exception as error:
        state.write_end(Phase.FAULTED, f"{error}", "internal")
        _LOG.exception("servo process failed")
    finally:
        _end(link, state)


def _end(link: RtdeLink, state: SharedState) -> None:
    """Stop the arm if it can be reached; then leave without waiting for the library."""
    # The default action of SIGALRM ends the process even while a library call holds Python's lock.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, _SHUTDOWN_LIMIT_S)
    lost = state.read().problem == Problem.CONNECTION_LOST.value
    if not lost:
        link.stop()
    os._exit(0)


def _terminate(*_: object) -> None:
    raise SystemExit


class _ServoLoop:
    """Cycle by cycle: commands in, state out, one pose to the robot."""

    def __init__(
        self,
        link: RtdeLink,
        config: ServoConfig,
        commands: Connection,
        state: SharedState,
        heartbeat: Heartbeat,
    ) -> None:
        self._link, self._config, self._heartbeat = link, config, heartbeat
        self._geometry = config.link.geometry
        self._commands, self._state = commands, state
        self._streamer: Streamer | None = None
        self._period_s = 0.008
        self._target_number = 0
        self._yielding = ContactYielding(link, config, self._period_s)
        self._speed_share = 1.0
        self._take_over_refusals = 0
        self._message = ""
        self._cycles = 0
        self._late_cycles = 0
        self._worst_gap_s = 0.0
        self._repeated_cycles = 0
        self._last_sent_s = math.nan
        self._starved_s = -math.inf
        self._clock = CycleClock(self._period_s)
        self._end_by_s: float | None = None

    def run(self) -> None:
        """Connect, then serve until a problem or the end."""
        self._state.write(ServoState(heartbeat_s=time.monotonic()))
        warm_up(self._config.joint_limits)
        self._link.open()
        self._period_s = 1.0 / self._link.rate_hz
        self._clock = CycleClock(self._period_s)
        self._yielding = ContactYielding(self._link, self._config, self._period_s)
        deadline_s = time.monotonic()
        answered_s = math.nan
        while True:
            _sleep_until(deadline_s - _EARLY_S)
            fresh = self._link.wait_for_cycle(answered_s, timeout_s=self._period_s)
            arrived_s = time.monotonic()
            self._late_cycles += arrived_s - deadline_s > self._period_s / 2
            self._receive_commands()
            if self._ended():
                return
            reading = self._link.read()
            if fresh:
                self._clock.saw_cycle(reading.controller_time_s, time.monotonic())
                self._yielding.see(reading)
            deadline_s = self._clock.next_due_s(reading.controller_time_s)
            problem = problem_of(reading, self._config.max_state_age_s)
            if problem is Problem.NONE and self._driver_hangs():
                problem = Problem.DRIVER_SILENT
            if problem is Problem.NONE and self._streamer is not None:
                problem = self._stream(self._streamer, reading, fresh=fresh)
                if fresh:
                    # Cycles that passed while this one was computed are answered as well.
                    answered_s = self._link.cycle_time_s()
            elif fresh:
                answered_s = reading.controller_time_s
            if problem is not Problem.NONE:
                self._fail(reading, problem)
                return
            self._publish(reading, Phase.IDLE if self._streamer is None else Phase.STREAMING)

    def _driver_hangs(self) -> bool:
        """Whether the arm is driven for a driver that does not poll any more."""
        if self._streamer is None or self._end_by_s is not None:
            return False
        return self._heartbeat.age_s() > self._config.driver_silence_s

    def _receive_commands(self) -> None:
        try:
            while self._commands.poll():
                command = self._commands.recv()
                if self._end_by_s is None or command[0] == "abort":
                    self._handle(command)
        except (EOFError, OSError):
            if self._end_by_s is None:
                self._begin_end("the driver is gone")

    def _begin_end(self, why: str) -> None:
        """Brake along the trajectory before the program is stopped."""
        self._message = why
        self._end_by_s = time.monotonic() + _ORDERLY_END_S
        if self._streamer is not None:
            self._streamer.decelerate()

    def _ended(self) -> bool:
        if self._end_by_s is None:
            return False
        at_rest = self._streamer is None or self._streamer.finished
        if at_rest or time.monotonic() > self._end_by_s:
            self._state.write_end(Phase.ENDED, self._message)
            return True
        return False

    def _handle(self, command: tuple[Any, ...]) -> None:
        name, *arguments = command
        if name == "end":
            self._begin_end("asked to end")
        elif name == "abort":
            # The driver has seen a limit broken: not along any trajectory, at once.
            self._message = str(arguments[0])
            self._end_by_s = -math.inf
        elif name == "activate":
            self._take_over()
        elif self._streamer is None:
            return
        elif name == "target":
            self._target_number, target = int(arguments[0]), arguments[1]
            self._yielding.begin_step()
            self._streamer.set_target(target)
        elif name == "decelerate":
            self._decelerate(self._streamer)
        elif name == "settle":
            here = self._geometry.to_task(self._link.read().base_link_from_tcp)
            self._streamer.settle_at(here)

    def _decelerate(self, streamer: Streamer) -> None:
        """Stop on the way; an arm that has fallen behind must not creep after the stream."""
        here = self._geometry.to_task(self._link.read().base_link_from_tcp)
        if float(np.linalg.norm(here[:3, 3] - streamer.commanded[:3])) > _FAR_BEHIND_M:
            self._link.brake(self._config.contact_deceleration_m_s2)
            streamer.restart_at(self._geometry.to_task(self._link.read().base_link_from_tcp))
        streamer.decelerate()

    def _take_over(self) -> None:
        """Start streaming at the measured pose, whatever was requested before.

        A tool that points straight down stays where it is. A tilted one is slowly uprighted
        about the TCP, which counts as motion.
        """
        if self._streamer is not None:
            return
        reading = self._link.read()
        try:
            self._streamer = Streamer(reading, self._config, self._period_s)
        except TakeOverError as error:
            self._message = str(error)
            self._take_over_refusals += 1
            return
        self._message = ""
        self._yielding.take_over()
        self._link.arm_watchdog()
        self._last_sent_s = math.nan

    def _stream(self, streamer: Streamer, reading: Reading, *, fresh: bool) -> Problem:
        """Send one pose; a refusal is turned into the problem that explains it."""
        self._follow_speed(streamer, reading)
        noticed = self._yielding.contacts
        stopped = self._yielding.watch(streamer, reading)
        if self._yielding.contacts > noticed:
            self._message = self._yielding.message
        if not stopped:
            return self._refusal_cause()
        is_new = fresh and self._clock.may_send(reading.controller_time_s)
        if is_new:
            if self._clock.paused:
                streamer.resume_from_rest()
            streamer.advance()
        else:
            self._repeated_cycles += 1
        if not self._link.servo(self._geometry.to_base_link(streamer.pose), self._period_s):
            return self._refusal_cause()
        now_s = time.monotonic()
        if is_new:
            self._clock.handed_over(now_s)
        self._note_gap(now_s)
        return Problem.NONE

    def _note_gap(self, now_s: float) -> None:
        gap_s = now_s - self._last_sent_s
        self._last_sent_s = now_s
        if math.isnan(gap_s):
            return
        self._worst_gap_s = max(self._worst_gap_s, gap_s)
        if gap_s > 1.0 / self._config.link.watchdog_hz:
            self._starved_s = now_s

    def _refusal_cause(self) -> Problem:
        """Why the controller refused: the reading that says so may be a cycle or two behind."""
        until_s = time.monotonic() + _EXPLANATION_S
        while time.monotonic() < until_s:
            problem = problem_of(self._link.read(), self._config.max_state_age_s)
            # A stopped program is only the symptom if a safety state is about to follow.
            if problem not in (Problem.NONE, Problem.PROGRAM_STOPPED):
                return problem
            time.sleep(self._period_s / 2)
        return Problem.PROGRAM_STOPPED

    def _follow_speed(self, streamer: Streamer, reading: Reading) -> None:
        """Stretch the motion as the controller does: slider, reduced mode, its own limits."""
        share = max(reading.speed_share, _LEAST_SPEED_SHARE)
        if abs(share - self._speed_share) > _SPEED_SHARE_STEP or (
            share == 1.0 and self._speed_share != 1.0
        ):
            self._speed_share = share
            streamer.set_speed_share(share)

    def _fail(self, reading: Reading, problem: Problem) -> None:
        """Stop first, explain second."""
        starved = time.monotonic() - self._starved_s < _STARVATION_MEMORY_S
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
            ServoState(
                heartbeat_s=time.monotonic(),
                cycles=self._cycles,
                phase=phase,
                problem=problem,
                message=self._message,
                period_s=self._period_s,
                task_from_tcp=self._geometry.to_task(reading.base_link_from_tcp),
                twist=self._geometry.rotate_to_task(reading.twist),
                wrench=self._geometry.rotate_to_task(reading.wrench),
                joints_rad=reading.joints_rad,
                joint_speeds_rad_s=reading.joint_speeds_rad_s,
                state_age_s=reading.age_s,
                robot_mode=reading.robot_mode,
                safety_mode=reading.safety_mode,
                commanded=np.zeros(4) if streamer is None else streamer.commanded,
                target_number=self._target_number,
                finished=streamer is None or streamer.finished,
                blocked=self._yielding.blocked,
                contacts=self._yielding.contacts,
                speed_slider=reading.speed_slider,
                speed_scaling=reading.speed_scaling,
                take_over_refusals=self._take_over_refusals,
                worst_gap_s=self._worst_gap_s,
                late_cycles=self._late_cycles,
                repeated_cycles=self._repeated_cycles,
                guard_trips=0 if streamer is None else streamer.guard_trips,
            )
        )


def _sleep_until(deadline_s: float) -> None:
    """Absolute deadline on the monotonic clock."""
    left_s = deadline_s - time.monotonic()
    if left_s > 0:
        time.sleep(left_s)
