# SPDX-License-Identifier: MIT
"""Gaps in the servo stream, and which of them a scheduler stall explains."""

import numpy as np
import pytest

from equi_system_tests.faults.recording import gaps_longer_than
from equi_system_tests.faults.scheduler_stalls import SchedulerStalls
from ur_emulator.controller.command_registers import Command
from ur_emulator.controller.recorder import FIELDS


def stream_written_at(*times_s: float) -> np.ndarray:
    """One recorded cycle per write, read 1 ms after it arrived."""
    rows = np.zeros(len(times_s), dtype=FIELDS)
    rows["command"] = Command.SERVO_L
    rows["monotonic_s"] = np.array(times_s) + 0.001
    rows["since_write_s"] = 0.001
    return rows


def stalls(*intervals_s: tuple[float, float]) -> SchedulerStalls:
    return SchedulerStalls(intervals_s=intervals_s, worst_ms=0.0, real_time=True)


def test_a_pause_between_two_poses_is_found_with_its_start_and_end():
    rows = stream_written_at(0.000, 0.008, 0.016, 0.056, 0.064)
    (gap,) = gaps_longer_than(rows, 0.024)
    assert gap == pytest.approx((0.016, 0.056))


def test_a_stream_without_pauses_has_no_gaps():
    assert gaps_longer_than(stream_written_at(*np.arange(0.0, 1.0, 0.008)), 0.024) == []


def test_without_stalls_nothing_of_a_gap_is_explained():
    assert stalls().running_s((1.0, 1.5)) == pytest.approx(0.5)


def test_only_the_part_of_a_stall_inside_a_gap_is_taken_off():
    assert stalls((0.9, 1.1), (1.4, 1.6)).running_s((1.0, 1.5)) == pytest.approx(0.3)


def test_stalls_of_two_processors_at_the_same_time_count_once():
    assert stalls((1.1, 1.3), (1.2, 1.25), (1.2, 1.4)).running_s((1.0, 1.5)) == pytest.approx(0.2)


def test_a_gap_within_one_long_stall_is_explained_entirely():
    assert stalls((0.0, 9.0)).running_s((1.0, 1.5)) == 0.0
