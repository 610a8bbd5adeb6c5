# SPDX-License-Identifier: MIT
"""Streamed joint motion under watch: every cycle is checked, and any doubt ends the sequence."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from equi_control.conformance.operator import Aborted
from equi_control.conformance.plan import (
    LONGEST_TRAVEL_RAD,
    MOVED_JOINT,
    RAMP_CRUISE_S,
    RAMP_EASE_S,
    RAMP_SPEED_RAD_S,
    RETURN_SPEED_RAD_S,
    SERVO_GAIN,
    SERVO_LOOKAHEAD_S,
)
from equi_control.rtde.measurement_link import MeasurementLink, Sample
from equi_control.rtde.robot_reading import PROGRAM_PLAYING, ROBOT_MODE_RUNNING

FloatArray = NDArray[np.float64]

Path = Callable[[float], float]
"""Joint angle [rad] relative to the start, over time [s]."""
_NORMAL_BITS = 0x1
_LONGEST_GAP_S = 0.15
_OTHER_JOINTS_RAD = 0.02
_TOO_FAST = 1.6
"""Measured speed above this multiple of the commanded one is an anomaly."""
AT_REST_RAD_S = 0.004
_REST_CYCLES = 6
_SETTLE_LIMIT_S = 8.0


@dataclass
class Recording:
    """Samples of one motion, with what was commanded in each cycle."""

    samples: list[Sample] = field(default_factory=list)
    commanded_rad: list[float] = field(default_factory=list)
    """Angle of the moved joint; shorter than `samples` once nothing is commanded any more."""

    def times_s(self) -> FloatArray:
        """Controller time of each sample, from the first one on."""
        times: FloatArray = np.array([sample.time_s for sample in self.samples])
        times -= times[0]
        return times

    def joint(self, index: int = MOVED_JOINT) -> FloatArray:
        """Measured angle of one joint [rad]."""
        return np.array([sample.joints_rad[index] for sample in self.samples])

    def target(self, index: int = MOVED_JOINT) -> FloatArray:
        """The controller's own target of one joint [rad]."""
        return np.array([sample.target_joints_rad[index] for sample in self.samples])

    def speed(self, index: int = MOVED_JOINT) -> FloatArray:
        """Measured speed of one joint [rad/s]."""
        return np.array([sample.speeds_rad_s[index] for sample in self.samples])


class Watch:
    """Checks every cycle of a motion; raises at the first anomaly."""

    def __init__(self, start: Sample, *, travel_rad: float, speed_rad_s: float) -> None:
        self._start, self._last = start, start
        self._travel_rad, self._speed_rad_s = travel_rad, speed_rad_s

    def check(self, sample: Sample, *, moving: bool = True, playing: bool = True) -> None:
        """One cycle.

        Raises:
            Aborted: says what was seen.
        """
        gap_s = sample.time_s - self._last.time_s
        self._last = sample
        if gap_s > _LONGEST_GAP_S:
            raise Aborted(f"{1e3 * gap_s:.0f} ms of the controller's cycles were lost")
        if sample.robot_mode != ROBOT_MODE_RUNNING or sample.safety_bits != _NORMAL_BITS:
            raise Aborted(
                f"robot mode {sample.robot_mode}, safety bits {sample.safety_bits:#x}: not normal"
            )
        if playing and sample.program_state != PROGRAM_PLAYING:
            raise Aborted("the program has stopped by itself; see the pendant")
        away = np.abs(sample.joints_rad - self._start.joints_rad)
        others = float(np.delete(away, MOVED_JOINT).max())
        if others > _OTHER_JOINTS_RAD:
            raise Aborted(f"another joint has moved by {others:.3f} rad; was the arm pushed?")
        if away[MOVED_JOINT] > self._travel_rad:
            raise Aborted(
                f"the base joint is {away[MOVED_JOINT]:.3f} rad from its start, at most "
                f"{self._travel_rad:.3f} was announced"
            )
        speed = float(np.abs(sample.speeds_rad_s).max())
        if moving and speed > _TOO_FAST * self._speed_rad_s:
            raise Aborted(f"a joint moves at {speed:.2f} rad/s, {self._speed_rad_s:.2f} announced")


def ramp(speed_rad_s: float = RAMP_SPEED_RAD_S, cruise_s: float = RAMP_CRUISE_S) -> Path:
    """Speed up, cruise, slow down; the speed changes by half a cosine."""

    def eased(time_s: float) -> float:
        share = min(max(time_s / RAMP_EASE_S, 0.0), 1.0)
        return RAMP_EASE_S * (share / 2 - math.sin(math.pi * share) / (2 * math.pi))

    def angle(time_s: float) -> float:
        begin = eased(time_s)
        steady = min(max(time_s - RAMP_EASE_S, 0.0), cruise_s)
        end_s = time_s - RAMP_EASE_S - cruise_s
        end = min(max(end_s, 0.0), RAMP_EASE_S) - eased(end_s)
        return speed_rad_s * (begin + steady + end)

    return angle


RAMP_END_S = 2 * RAMP_EASE_S + RAMP_CRUISE_S
CRUISING_S = RAMP_EASE_S + 0.3
"""From here on a ramp's speed is steady, also behind a servo lag."""


def stream(
    link: MeasurementLink,
    path: Path,
    until_s: float,
    *,
    travel_rad: float = LONGEST_TRAVEL_RAD,
    speed_rad_s: float = RAMP_SPEED_RAD_S,
) -> Recording:
    """Stream a path of the base joint from where the arm is, for `until_s` of controller time.

    The arm still moves, or is held at the last target, when it returns: the caller stops it.

    Raises:
        Aborted: any anomaly.
    """
    recording = Recording()
    period_s = cycle_s(link)
    start = link.next_sample(link.sample())
    watch = Watch(start, travel_rad=travel_rad, speed_rad_s=speed_rad_s)
    goal = start.target_joints_rad.copy()
    sample = start
    while True:
        elapsed_s = sample.time_s - start.time_s
        if elapsed_s >= until_s:
            return recording
        commanded = start.target_joints_rad[MOVED_JOINT] + path(elapsed_s)
        goal[MOVED_JOINT] = commanded
        link.servo(goal, period_s, SERVO_LOOKAHEAD_S, SERVO_GAIN)
        recording.samples.append(sample)
        recording.commanded_rad.append(commanded)
        sample = link.next_sample(sample)
        watch.check(sample)


def cycle_s(link: MeasurementLink) -> float:
    """Time between two cycles of this generation of controllers [s]."""
    first = link.next_sample(link.sample())
    return 0.002 if link.next_sample(first).time_s - first.time_s < 0.004 else 0.008


def watch_until_rest(link: MeasurementLink, recording: Recording, *, kick: bool = False) -> int:
    """Sample on until the arm rests.

    Args:
        link: the robot.
        recording: of the motion so far; grows.
        kick: feed the watchdog meanwhile, for a program that goes on; otherwise nothing is sent.

    Returns:
        Index of the first sample of the rest.

    Raises:
        Aborted: it does not come to rest, or goes further than announced.
    """
    begin = len(recording.samples)
    start = recording.samples[0]
    quiet = 0
    sample = recording.samples[-1]
    while quiet < _REST_CYCLES:
        sample = link.next_sample(sample, timeout_s=2.0)
        recording.samples.append(sample)
        if kick:
            link.kick()
        quiet = quiet + 1 if float(np.abs(sample.speeds_rad_s).max()) < AT_REST_RAD_S else 0
        away = abs(float(sample.joints_rad[MOVED_JOINT] - start.joints_rad[MOVED_JOINT]))
        if away > LONGEST_TRAVEL_RAD:
            raise Aborted(f"the arm moved on by {away:.3f} rad after it was told to stop")
        if sample.time_s - recording.samples[begin - 1].time_s > _SETTLE_LIMIT_S:
            raise Aborted(f"the arm does not come to rest within {_SETTLE_LIMIT_S} s")
    return len(recording.samples) - _REST_CYCLES


def move(
    link: MeasurementLink, goal_rad: FloatArray, speed_rad_s: float = RETURN_SPEED_RAD_S
) -> Recording:
    """MoveJ to joints (6,), watched; returns when the arm rests there.

    Raises:
        Aborted: any anomaly, or it does not arrive.
    """
    recording = Recording()
    sample = link.next_sample(link.sample())
    watch = Watch(sample, travel_rad=LONGEST_TRAVEL_RAD, speed_rad_s=max(speed_rad_s, 0.05))
    recording.samples.append(sample)
    link.begin_move(goal_rad.tolist(), speed_rad_s)
    begun_s, quiet = sample.time_s, 0
    while True:
        link.kick()
        sample = link.next_sample(sample)
        watch.check(sample)
        recording.samples.append(sample)
        left = float(np.abs(sample.joints_rad - goal_rad).max())
        resting = float(np.abs(sample.speeds_rad_s).max()) < AT_REST_RAD_S
        quiet = quiet + 1 if resting and left < 0.003 else 0
        if quiet >= _REST_CYCLES and link.move_ended:
            return recording
        if sample.time_s - begun_s > 60.0:
            raise Aborted(f"a move has not arrived after 60 s, {left:.3f} rad are left")
