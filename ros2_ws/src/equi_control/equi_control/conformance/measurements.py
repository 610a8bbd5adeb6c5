# SPDX-License-Identifier: MIT
"""Measurements at rest and of undisturbed motion: timing, force, start, tracking, speed slider."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equi_control.conformance.operator import Aborted
from equi_control.conformance.plan import (
    RAMP_SPEED_RAD_S,
    SERVO_GAIN,
    SERVO_LOOKAHEAD_S,
    SINE_AMPLITUDE_RAD,
    SINE_HZ,
    SINE_PERIODS,
    SINE_SPEED_RAD_S,
    SLIDER_FRACTIONS,
)
from equi_control.conformance.streaming import (
    CRUISING_S,
    RAMP_END_S,
    Recording,
    move,
    ramp,
    stream,
    watch_until_rest,
)
from equi_control.rtde.measurement_link import MeasurementLink

FloatArray = NDArray[np.float64]

_JITTER_S = 5.0
_FORCE_S = 3.0
_STARTS = 3
_MOVE_RAD = 0.15


def measure_jitter(link: MeasurementLink) -> dict[str, Any]:
    """When RTDE packages arrive, over some seconds."""
    samples = [link.next_sample(link.sample())]
    while samples[-1].arrived_s - samples[0].arrived_s < _JITTER_S:
        samples.append(link.next_sample(samples[-1]))
    spacing = np.diff([sample.arrived_s for sample in samples])
    cycles = samples[-1].time_s - samples[0].time_s
    step = float(np.median(np.diff([sample.time_s for sample in samples])))
    return {
        "rate_hz": round(cycles / step) / (samples[-1].arrived_s - samples[0].arrived_s),
        "spacing_p99_s": float(np.quantile(spacing, 0.99)),
        "spacing_max_s": float(spacing.max()),
    }


def measure_force(link: MeasurementLink) -> dict[str, Any]:
    """Bias and noise of the estimated TCP force of an arm at rest."""
    readings: list[FloatArray] = []
    sample = link.next_sample(link.sample())
    begun_s = sample.time_s
    while sample.time_s - begun_s < _FORCE_S:
        readings.append(link.force())
        sample = link.next_sample(sample)
    values = np.array(readings)
    if float(np.abs(sample.speeds_rad_s).max()) > 0.01:
        raise Aborted("the arm moved while the force at rest was read")
    mean, noise = values.mean(axis=0), values.std(axis=0)
    return {
        "bias_n": mean[:3].tolist(),
        "noise_n": float(noise[:3].mean()),
        "bias_nm": mean[3:].tolist(),
        "noise_nm": float(noise[3:].mean()),
    }


def measure_start(link: MeasurementLink) -> float:
    """From the end of an upload until the program plays: median of some starts [s]."""
    link.start_program()
    times = []
    for _ in range(_STARTS):
        link.stop()
        started_s = link.start_program()
        if started_s is not None:
            times.append(started_s)
    if not times:
        raise Aborted("no start of the program could be timed")
    return float(np.median(times))


def measure_tracking(link: MeasurementLink) -> dict[str, Any]:
    """Delay and amplitude of a streamed sine, from its phase."""
    link.start_program()
    period_s = 1.0 / SINE_HZ

    def path(time_s: float) -> float:
        # Speeds up over the first period, which is not evaluated.
        swell = min(time_s / period_s, 1.0)
        return swell * SINE_AMPLITUDE_RAD * math.sin(2 * math.pi * SINE_HZ * time_s)

    recording = stream(
        link,
        path,
        SINE_PERIODS * period_s,
        travel_rad=2 * SINE_AMPLITUDE_RAD,
        speed_rad_s=2 * SINE_SPEED_RAD_S,
    )
    link.servo_stop()
    watch_until_rest(link, recording, kick=True)
    count = len(recording.commanded_rad)
    times = recording.times_s()[:count]
    used = times >= 2 * period_s
    commanded = _sine(times[used], np.array(recording.commanded_rad)[used])
    target = _sine(times[used], recording.target()[:count][used])
    measured = _sine(times[used], recording.joint()[:count][used])
    return {
        "lookahead_s": SERVO_LOOKAHEAD_S,
        "servo_gain": SERVO_GAIN,
        "frequency_hz": SINE_HZ,
        "delay_s": _delay(commanded, measured),
        "amplitude_ratio": abs(measured) / abs(commanded),
        "joint_delay_s": _delay(target, measured),
    }


def measure_slider(link: MeasurementLink) -> list[dict[str, Any]]:
    """Speed of streamed motion and of moves at several settings of the speed slider."""
    points: list[dict[str, Any]] = []
    servo_full, move_full = 1.0, 1.0
    for number, fraction in enumerate(SLIDER_FRACTIONS):
        link.set_slider(fraction)
        link.start_program()
        start = link.next_sample(link.sample())
        recording = stream(link, ramp(), RAMP_END_S)
        cruise = cruising(recording)
        middle = recording.samples[int(np.flatnonzero(cruise)[-1])]
        servo_speed = float(np.median(recording.speed()[: len(cruise)][cruise]))
        link.servo_stop()
        watch_until_rest(link, recording, kick=True)
        move_speed = _move_speed(link, link.sample().joints_rad)
        link.set_slider(SLIDER_FRACTIONS[0])  # the way back is not measured
        move(link, start.joints_rad)
        if number == 0:
            servo_full, move_full = servo_speed, move_speed
        points.append(
            {
                "slider_fraction": fraction,
                "servo_speed_ratio": _ratio(servo_speed, servo_full),
                "move_speed_ratio": _ratio(move_speed, move_full),
                "target_speed_fraction": middle.target_speed_fraction,
                "speed_scaling": middle.speed_scaling,
            }
        )
        link.stop()
    link.restore_slider()
    return points


def cruising(recording: Recording) -> NDArray[np.bool_]:
    """Which commanded samples of a ramp lie in its steady part."""
    count = len(recording.commanded_rad)
    times = recording.times_s()[:count]
    return (times > CRUISING_S) & (times < RAMP_END_S - 0.35)


def _move_speed(link: MeasurementLink, here_rad: FloatArray) -> float:
    """Cruise speed of a move back over a part of the way [rad/s]."""
    goal = here_rad.copy()
    goal[0] -= math.copysign(min(_MOVE_RAD, 0.9 * RAMP_SPEED_RAD_S), 1.0)
    speeds = np.abs(move(link, goal, RAMP_SPEED_RAD_S).speed())
    return float(np.quantile(speeds[speeds > 0.3 * speeds.max()], 0.9))


def _ratio(speed: float, full: float) -> float:
    if full < 0.25 * RAMP_SPEED_RAD_S:
        raise Aborted(f"the arm moved at {full:.3f} rad/s with the slider at 100 %; is it held?")
    return min(max(speed / full, 0.0), 1.2)


def _sine(times_s: FloatArray, values: FloatArray) -> complex:
    """Complex amplitude of the sine's frequency in a signal, by least squares."""
    angle = 2 * np.pi * SINE_HZ * times_s
    columns = np.stack([np.sin(angle), np.cos(angle), np.ones_like(angle)], axis=1)
    (sine, cosine, _), *_ = np.linalg.lstsq(columns, values, rcond=None)
    return complex(sine, cosine)


def _delay(earlier: complex, later: complex) -> float:
    """How much later a signal is than another [s]; not below zero."""
    angle = float(np.angle(earlier / later))
    return max(0.0, angle / (2 * np.pi * SINE_HZ))
