# SPDX-License-Identifier: MIT
"""Stopping distances and times: the base joint is stopped out of a steady ramp, in four ways."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from equi_control.conformance.operator import Aborted
from equi_control.conformance.plan import (
    LONGEST_TRAVEL_RAD,
    MOVED_JOINT,
    RAMP_SPEED_RAD_S,
    SERVO_GAIN,
    SERVO_LOOKAHEAD_S,
    STOP_REPEATS,
)
from equi_control.conformance.streaming import (
    CRUISING_S,
    RAMP_END_S,
    Recording,
    Watch,
    cycle_s,
    move,
    ramp,
    stream,
    watch_until_rest,
)
from equi_control.rtde.dashboard import Dashboard
from equi_control.rtde.measurement_link import MeasurementLink

_STOP_AT_S = CRUISING_S + 0.25
_UNLOCK_LIMIT_S = 15.0
_UNLOCK_POLL_S = 0.1
_CHILD_START_S = 20.0


def measure_stops(link: MeasurementLink, dashboard: Dashboard, cause: str) -> list[dict[str, Any]]:
    """Stop the arm several times in one way; it is moved back after each."""
    request = {
        "servo_stop": link.servo_stop,
        "program_end": lambda: dashboard.ask("stop"),
    }[cause]
    return [_stop_once(link, cause, request) for _ in range(STOP_REPEATS)]


def measure_protective_stop(
    link: MeasurementLink, dashboard: Dashboard
) -> tuple[list[dict[str, Any]], float]:
    """A protective stop; returns the stop, and when the controller let it be unlocked [s].

    The program is ended before it is unlocked: an unlocked program would go on by itself.
    """
    home = link.next_sample(link.sample()).joints_rad
    link.start_program()
    recording = stream(link, ramp(), _STOP_AT_S)
    stopped_s = time.monotonic()
    link.trigger_protective_stop()
    stop = _evaluate("protective_stop", recording, watch_until_rest(link, recording))
    dashboard.ask("stop")
    while True:
        dashboard.ask("close safety popup")
        answer = dashboard.ask("unlock protective stop")
        waited_s = time.monotonic() - stopped_s
        if link.sample().safety_bits == 1:
            break
        if waited_s > _UNLOCK_LIMIT_S:
            raise Aborted(
                f"the protective stop cannot be unlocked after {waited_s:.0f} s ('{answer}'); "
                "unlock it at the pendant, and do not press play"
            )
        time.sleep(_UNLOCK_POLL_S)
    _return_to(link, home)
    return [stop], waited_s


def measure_closed_connection(link: MeasurementLink) -> list[dict[str, Any]]:
    """Kill the process that streams; the controller's watchdog stops the arm."""
    home = link.next_sample(link.sample()).joints_rad
    link.release()
    context = multiprocessing.get_context("spawn")
    parent_end, child_end = context.Pipe()
    child = context.Process(
        target=_stream_until_killed, args=(link.host, child_end), name="stream", daemon=True
    )
    child.start()
    child_end.close()
    try:
        recording = _watch_child(link, parent_end)
        if child.pid is not None:
            os.kill(child.pid, signal.SIGKILL)
        stop = _evaluate("connection_closed", recording, watch_until_rest(link, recording))
    finally:
        child.kill()
        child.join(5.0)
        parent_end.close()
    _return_to(link, home)
    return [stop]


def _stop_once(link: MeasurementLink, cause: str, request: Callable[[], object]) -> dict[str, Any]:
    home = link.next_sample(link.sample()).joints_rad
    link.start_program()
    recording = stream(link, ramp(), _STOP_AT_S)
    # The request may block until the arm rests; the way there is watched meanwhile.
    asking = threading.Thread(target=request, daemon=True)
    asking.start()
    stop = _evaluate(cause, recording, watch_until_rest(link, recording))
    asking.join(5.0)
    _return_to(link, home)
    return stop


def _evaluate(cause: str, recording: Recording, rest: int) -> dict[str, Any]:
    """Travel and time from the last commanded cycle to standstill."""
    asked = len(recording.commanded_rad) - 1
    joint, times = recording.joint(), recording.times_s()
    speed = float(np.median(np.abs(recording.speed()[max(0, asked - 8) : asked + 1])))
    if speed < 0.5 * RAMP_SPEED_RAD_S:
        raise Aborted(
            f"the base joint moved at {speed:.3f} rad/s when it was to be stopped, "
            f"{RAMP_SPEED_RAD_S} expected"
        )
    return {
        "cause": cause,
        "joint": MOVED_JOINT,
        "joint_speed_rad_s": speed,
        "joint_travel_rad": max(float(abs(joint[-1] - joint[asked])), 1e-6),
        "time_s": max(float(times[rest] - times[asked]), 1e-4),
    }


def _return_to(link: MeasurementLink, home: Any) -> None:
    link.release()  # a program that was ended by others leaves its last command in the registers
    link.start_program()
    move(link, home)
    link.stop()


def _watch_child(link: MeasurementLink, pipe: Connection) -> Recording:
    """Sample until the child has streamed long enough; it tells each cycle that it commanded."""
    if not pipe.poll(_CHILD_START_S) or pipe.recv() != "streaming":
        raise Aborted("the streaming process did not start")
    recording = Recording()
    sample = link.next_sample(link.sample())
    watch = Watch(sample, travel_rad=LONGEST_TRAVEL_RAD, speed_rad_s=RAMP_SPEED_RAD_S)
    begun_s = sample.time_s
    while sample.time_s - begun_s < _STOP_AT_S:
        recording.samples.append(sample)
        recording.commanded_rad.append(float(sample.target_joints_rad[MOVED_JOINT]))
        sample = link.next_sample(sample)
        watch.check(sample)
    return recording


def _stream_until_killed(host: str, pipe: Connection) -> None:
    """Entry point of the child: one ramp, held at its end; ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with MeasurementLink(host) as link:
        link.start_program()
        period_s = cycle_s(link)
        start = sample = link.next_sample(link.sample())
        goal, path = start.target_joints_rad.copy(), ramp()
        pipe.send("streaming")
        try:
            while not pipe.poll():
                goal[MOVED_JOINT] = start.target_joints_rad[MOVED_JOINT] + path(
                    min(sample.time_s - start.time_s, RAMP_END_S)
                )
                link.servo(goal, period_s, SERVO_LOOKAHEAD_S, SERVO_GAIN)
                sample = link.next_sample(sample)
        except (EOFError, OSError):
            return
