"""Gaps in the servo stream, and which of them the machine itself made."""

import numpy as np
import pytest

from equi_system_tests.faults.recording import SERVO_L, gaps_longer_than
from equi_system_tests.faults.scheduler_stalls import MachineStalls
from ur_emulator.controller.recorder import FIELDS


def stream_written_at(*times_s: float) -> np.ndarray:
    """One recorded cycle per write, seen 1 ms after it arrived."""
    rows = np.zeros(len(times_s), dtype=FIELDS)
    rows["command"] = SERVO_L
    rows["monotonic_s"] = np.array(times_s) + 0.001
    rows["since_write_s"] = 0.001
    return rows


def stalls(*intervals_s: tuple[float, float]) -> MachineStalls:
    return MachineStalls(intervals_s=intervals_s, worst_ms=0.0, real_time=True)


def test_a_pause_between_two_poses_is_found_with_its_start_and_end():
    rows = stream_written_at(0.000, 0.008, 0.016, 0.056, 0.064)
    (gap,) = gaps_longer_than(rows, 0.024)
    assert gap == pytest.approx((0.016, 0.056))


def test_a_stream_without_pauses_has_no_gaps():
    assert gaps_longer_than(stream_written_at(*np.arange(0.0, 1.0, 0.008)), 0.024) == []


def test_a_machine_that_never_stalled_explains_nothing_of_a_gap():
    assert stalls().running_s((1.0, 1.5)) == pytest.approx(0.5)


def test_only_the_part_of_a_stall_inside_a_gap_is_taken_off():
    assert stalls((0.9, 1.1), (1.4, 1.6)).running_s((1.0, 1.5)) == pytest.approx(0.3)


def test_two_processors_away_at_the_same_time_count_once():
    assert stalls((1.1, 1.3), (1.2, 1.25), (1.2, 1.4)).running_s((1.0, 1.5)) == pytest.approx(0.2)


def test_a_gap_within_one_long_stall_is_all_the_machines():
    assert stalls((0.0, 9.0)).running_s((1.0, 1.5)) == 0.0
