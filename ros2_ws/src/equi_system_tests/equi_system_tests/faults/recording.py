# SPDX-License-Identifier: MIT
"""Metrics of the emulator's recording: caps, gaps, travel after a fault, time to standstill."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equi_core.cell_geometry import TCP_FROM_FLANGE_M
from equi_core.motion.safety_limits import SafetyLimits
from equi_core.motion.ur5_kinematics import forward
from ur_emulator.controller.command_registers import Command

TOOL_LENGTH_M = TCP_FROM_FLANGE_M
_STANDSTILL_M_S = 1e-3
_STANDSTILL_RAD_S = 5e-3
# A pose that repeats although the path before it was faster than this was held, not reached.
_HELD_M_S = 0.02


@dataclass(frozen=True)
class Travel:
    """How the arm stopped after an instant."""

    distance_mm: float
    """Length of the TCP's path from the instant to standstill."""
    standstill_s: float
    """Time from the instant to the last motion."""
    speed_before_mm_s: float
    """TCP speed at the instant."""


def tcp_positions_m(rows: NDArray[np.void]) -> NDArray[np.float64]:
    """Measured TCP positions (N, 3) in base_link, from the joints.

    A controller that restarts forgets its TCP, so the recorded TCP poses may change tool.
    """
    frames = np.array([forward(joints) for joints in rows["actual_q"]])
    return frames[:, :3, 3] + TOOL_LENGTH_M * frames[:, :3, 2]


def travel_after(rows: NDArray[np.void], instant_s: float) -> Travel:
    """Path and time of the measured TCP after `instant_s` on the monotonic clock."""
    after = rows[rows["monotonic_s"] >= instant_s]
    if len(after) < 2:
        raise ValueError("the recording ends before the instant; record for longer")
    steps_m = np.linalg.norm(np.diff(tcp_positions_m(after), axis=0), axis=1)
    joint_steps_rad = np.abs(np.diff(after["actual_q"], axis=0)).max(axis=1)
    period_s = np.maximum(np.diff(after["timestamp_s"]), 1e-3)
    moving = (steps_m / period_s > _STANDSTILL_M_S) | (
        joint_steps_rad / period_s > _STANDSTILL_RAD_S
    )
    last = int(np.nonzero(moving)[0][-1]) + 1 if np.any(moving) else 0
    speed = steps_m / period_s
    return Travel(
        distance_mm=float(steps_m[:last].sum()) * 1e3,
        standstill_s=float(after["monotonic_s"][last] - instant_s) if last else 0.0,
        speed_before_mm_s=float(speed[0]) * 1e3,
    )


@dataclass(frozen=True)
class StreamMetrics:
    """The servo stream as the controller received it."""

    cycles: int
    rate_hz: float
    """New servo poses per second, or repeated ones: writes per second of controller time."""
    p99_period_ms: float
    worst_gap_periods: float
    max_command_speed_m_s: float
    """Largest step from one controller cycle to the next, over one period."""
    max_command_acceleration_m_s2: float
    """Of the path that the poses describe, one pose per period; a pause may end it at rest."""
    max_measured_speed_m_s: float
    max_tracking_error_mm: float
    rms_tracking_error_mm: float
    held_cycles: int
    """Controller cycles in the middle of a motion that saw no new pose."""
    longest_hold_cycles: int
    """Longest run of such cycles."""


def stream_metrics(rows: NDArray[np.void], period_s: float) -> StreamMetrics:
    """Metrics of the cycles in which servo poses were streamed."""
    stream = rows[rows["command"] == Command.SERVO_L]
    if len(stream) < 10:
        raise ValueError("the recording holds no servo stream")
    written_s = _write_times_s(stream)
    gaps_s = np.diff(written_s)
    positions = stream["commanded"][:, :3]
    speed = np.linalg.norm(np.diff(positions, axis=0), axis=1) / period_s
    acceleration, holds = _path_acceleration(positions, period_s)
    error_m = np.linalg.norm(positions - stream["actual_tcp"][:, :3], axis=1)
    return StreamMetrics(
        cycles=len(stream),
        rate_hz=float(len(gaps_s) / (written_s[-1] - written_s[0])),
        p99_period_ms=float(np.percentile(gaps_s, 99)) * 1e3,
        worst_gap_periods=float(gaps_s.max() / period_s),
        max_command_speed_m_s=float(speed.max(initial=0.0)),
        max_command_acceleration_m_s2=float(acceleration.max(initial=0.0)),
        max_measured_speed_m_s=float(np.linalg.norm(stream["actual_speed"][:, :3], axis=1).max()),
        max_tracking_error_mm=float(error_m.max()) * 1e3,
        rms_tracking_error_mm=float(np.sqrt(np.mean(error_m**2))) * 1e3,
        held_cycles=int(holds.sum()),
        longest_hold_cycles=int(holds.max(initial=0)),
    )


def gaps_longer_than(rows: NDArray[np.void], limit_s: float) -> list[tuple[float, float]]:
    """Start and end [s], on the monotonic clock, of pauses between two writes of servo poses."""
    written_s = _write_times_s(rows[rows["command"] == Command.SERVO_L])
    long = np.nonzero(np.diff(written_s) > limit_s)[0]
    return [(float(written_s[index]), float(written_s[index + 1])) for index in long]


def _write_times_s(stream: NDArray[np.void]) -> NDArray[np.float64]:
    """When servo poses arrived, (N,) [s] on the monotonic clock."""
    written_s = np.unique(stream["monotonic_s"] - stream["since_write_s"])
    # Two readings of one write time differ by rounding only.
    return written_s[np.concatenate([[True], np.diff(written_s) > 1e-6])]


def _path_acceleration(
    positions: NDArray[np.float64], period_s: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Acceleration [m/s2] at each new pose, and the cycles for which a moving one was held.

    A stream that pauses unintentionally (its sender or the network stalled) may continue as if
    there had been no pause, or from rest; the smaller acceleration of the two is taken.
    """
    changed = np.any(np.diff(positions, axis=0) != 0.0, axis=1)
    rows = np.concatenate([[0], np.nonzero(changed)[0] + 1])
    velocities = np.diff(positions[rows], axis=0) / period_s
    waits = np.diff(rows)[1:] - 1
    onward = np.linalg.norm(np.diff(velocities, axis=0), axis=1) / period_s
    from_rest = np.linalg.norm(velocities[1:], axis=1) / period_s
    moving = np.linalg.norm(velocities[:-1], axis=1) > _HELD_M_S
    acceleration = np.where(waits > 0, np.minimum(onward, from_rest), onward)
    return acceleration, np.where(moving, waits, 0)


def keeps_caps(metrics: StreamMetrics, limits: SafetyLimits) -> bool:
    """Whether no command that reached the controller was above the caps."""
    return (
        metrics.max_command_speed_m_s <= limits.max_speed_m_s
        and metrics.max_command_acceleration_m_s2 <= limits.max_acceleration_m_s2
    )
