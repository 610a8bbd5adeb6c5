# SPDX-License-Identifier: MIT
"""Fits a profile to what was measured on one robot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from statistics import fmean, median
from typing import Any

from ur_emulator.conformance_file import (
    SLIDER_RAMP_EASE_S,
    SLIDER_RAMP_WINDOW_S,
    ConformanceFile,
    SliderPoint,
    StopMeasurement,
    TrackingLag,
)
from ur_emulator.profile import PROTECTIVE_STOP_RAD_S2, Profile

# Emulated strokes at full speed, for which a file holds measured times.
_STROKE_S = 0.085 / 0.150
# Two cycles at 125 Hz pass between a request over TCP and its first effect.
_REACTION_S = 0.016
# Spacing of cycles that are late by a half-normal time of scale 1: its 99th percentile is this much
# above the period (4 million samples).
_P99_OF_JITTER = 2.08
# The kit's look-ahead time, where a file has no measurement of tracking.
_LOOKAHEAD_S = 0.1
_PERIOD_S = 0.008


@dataclass(frozen=True)
class Fit:
    """A profile that behaves like a measured robot, and which of its fields come from it."""

    profile: Profile
    robot: str = ""
    measured: frozenset[str] = frozenset()


def fit(profile: Profile, file: ConformanceFile) -> Fit:
    """The profile with every field that the file has measurements for.

    A value outside what the emulator can do is taken at the nearest end.
    """
    changes: dict[str, Any] = {}
    if file.tracking is not None:
        changes.update(_tracking(file.tracking))
    lag_s = float(changes.get("joint_lag_s", profile.joint_lag_s))
    if file.slider:
        lag_factor = float(changes.get("servo_lag_factor", profile.servo_lag_factor))
        lookahead_s = _LOOKAHEAD_S if file.tracking is None else file.tracking.lookahead_s
        changes["servo_slider_effect"] = _servo_slider_effect(file.slider, lookahead_s * lag_factor)
        changes["move_slider_effect"] = _move_slider_effect(file.slider)
    changes.update(_stops(file.stops, lag_s))
    if file.gripper is not None:
        timing = file.gripper
        stroke_s = fmean((timing.close_s, timing.open_s)) - timing.motion_delay_s
        changes["gripper_activation_s"] = timing.activation_s
        changes["gripper_echo_s"] = timing.echo_delay_s
        changes["gripper_motion_s"] = timing.motion_delay_s
        changes["gripper_speed_scale"] = _STROKE_S / max(stroke_s, 1e-3)
    if file.force is not None:
        changes["force_bias_n"], changes["force_bias_nm"] = file.force.bias_n, file.force.bias_nm
        changes["force_noise_n"], changes["force_noise_nm"] = (
            file.force.noise_n,
            file.force.noise_nm,
        )
        # The bias was measured at one pose, and contains the drift there.
        changes["force_drift_n"] = 0.0
    if file.jitter is not None:
        late_s = file.jitter.spacing_p99_s - 1.0 / file.jitter.rate_hz
        changes["cycle_jitter_s"] = late_s / _P99_OF_JITTER
    if file.script_start_s is not None:
        changes["program_start_s"] = file.script_start_s
    if file.unlock_delay_s is not None:
        changes["unlock_s"] = file.unlock_delay_s
    bounded = {name: _bounded(name, value) for name, value in changes.items()}
    return Fit(replace(profile, **bounded), file.robot.name, frozenset(bounded))


def _bounded(name: str, value: Any) -> Any:
    limits = next(item.metadata for item in fields(Profile) if item.name == name)
    if isinstance(value, tuple):
        return value
    return min(max(float(value), limits["least"]), limits["most"])


def _move_slider_effect(points: Sequence[SliderPoint]) -> float:
    """Least squares of ratio = 1 - effect (1 - slider)."""
    slowed = [1.0 - point.slider_fraction for point in points]
    measured = [1.0 - point.move_speed_ratio for point in points]
    weight = sum(value**2 for value in slowed)
    products = sum(a * b for a, b in zip(slowed, measured, strict=True))
    return products / weight if weight > 0 else 0.0


def _servo_slider_effect(points: Sequence[SliderPoint], lag_s: float) -> float:
    """The effect whose ramps come nearest to the measured ones, over a servo lag [s]."""

    def error(effect: float) -> float:
        shares = [1.0 - effect * (1.0 - point.slider_fraction) for point in points]
        return sum(
            (_ramp_speed(share, lag_s) / _ramp_speed(1.0, lag_s) - point.servo_speed_ratio) ** 2
            for share, point in zip(shares, points, strict=True)
        )

    return min((number / 100 for number in range(101)), key=error)


def _ramp_speed(share: float, lag_s: float) -> float:
    """Speed of the measured ramp behind a servo whose time passes at a share; 1 is full speed."""
    commanded = reached = 0.0
    speeds = []
    for cycle in range(round(SLIDER_RAMP_WINDOW_S[1] / _PERIOD_S)):
        time_s = cycle * _PERIOD_S
        eased = min(time_s / SLIDER_RAMP_EASE_S, 1.0)
        commanded += (1.0 - math.cos(math.pi * eased)) / 2 * _PERIOD_S
        step = (1.0 - math.exp(-share * _PERIOD_S / lag_s)) * (commanded - reached)
        reached += step
        if time_s >= SLIDER_RAMP_WINDOW_S[0]:
            speeds.append(step / _PERIOD_S)
    return median(speeds)


def _tracking(lag: TrackingLag) -> dict[str, float]:
    """Two first-order lags in series and a dead time.

    The joints' lag is measured by itself; the loss of amplitude gives the servo's lag; what is left
    of the delay is dead time.
    """
    omega = 2 * math.pi * lag.frequency_hz

    def ratio(lag_s: float) -> float:
        return 1.0 / math.hypot(1.0, omega * lag_s)

    def delay(lag_s: float) -> float:
        return math.atan(omega * lag_s) / omega

    # `joint_delay_s` is a phase delay: the lag that causes it is a little longer.
    joint_lag_s = math.tan(min(omega * lag.joint_delay_s, 1.4)) / omega
    left = min(lag.amplitude_ratio / ratio(joint_lag_s), 0.9999)
    servo_lag_s = math.sqrt(1.0 / left**2 - 1.0) / omega
    # A delay too short for that loss of amplitude: trust the delay.
    free_s = lag.delay_s - lag.joint_delay_s
    if delay(servo_lag_s) > free_s:
        servo_lag_s = math.tan(min(omega * max(free_s, 0.0), 1.4)) / omega
    return {
        "joint_lag_s": joint_lag_s,
        "servo_lag_factor": servo_lag_s / lag.lookahead_s,
        "servo_dead_time_s": max(free_s - delay(servo_lag_s), 0.0),
    }


def _stops(stops: Sequence[StopMeasurement], lag_s: float) -> dict[str, float]:
    """Decelerations from speed and travel.

    The joints' own lag adds its share of travel, and so does the time that the emulator itself
    takes to react; a robot's reaction that is longer than that counts as gentler braking.
    """

    def deceleration(stop: StopMeasurement) -> float:
        speed = stop.joint_speed_rad_s
        before_rad = speed * (lag_s + _REACTION_S)
        braking_rad = max(stop.joint_travel_rad - before_rad, 0.05 * stop.joint_travel_rad)
        return speed**2 / (2 * braking_rad)

    changes: dict[str, float] = {}
    ends = [deceleration(stop) for stop in stops if stop.cause == "program_end"]
    if ends:
        changes["program_end_rad_s2"] = median(ends)
    scales = [
        deceleration(stop) / PROTECTIVE_STOP_RAD_S2[stop.joint]
        for stop in stops
        if stop.cause == "protective_stop"
    ]
    if scales:
        changes["protective_stop_scale"] = median(scales)
    return changes
