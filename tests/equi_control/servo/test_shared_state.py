# SPDX-License-Identifier: MIT
"""The state between two processes: whole records only, and no reader hangs on a dead writer."""

from __future__ import annotations

import multiprocessing
import time

import numpy as np
import pytest

from equi_control.servo.shared_state import Phase, ServoState, SharedState

FULL = ServoState(
    heartbeat_s=12.5,
    cycles=7,
    phase=Phase.STREAMING,
    problem="watchdog",
    message="contact: 13 mm behind the target",
    period_s=0.008,
    task_from_tcp=np.arange(16.0).reshape(4, 4),
    twist=np.arange(6.0),
    wrench=np.arange(6.0) + 10,
    joints_rad=np.arange(6.0) + 20,
    joint_speeds_rad_s=np.arange(6.0) + 30,
    state_age_s=0.001,
    robot_mode=7,
    safety_mode=1,
    commanded=np.array([0.5, 0.0, 0.2, 0.3]),
    target_number=3,
    finished=True,
    blocked=True,
    worst_gap_s=0.012,
    late_cycles=1,
    repeated_cycles=2,
    guard_trips=4,
)


def require_full(state: ServoState) -> None:
    for name, value in FULL._asdict().items():
        np.testing.assert_array_equal(getattr(state, name), value, err_msg=name)
        assert isinstance(getattr(state, name), type(value)), name


def die_in_mid_write(state: SharedState) -> None:
    """End a write half way, as a signal or a kill does: cycles are written, the twist is not."""
    with pytest.raises(ValueError, match="broadcast"):
        state.write(ServoState(cycles=99, twist=np.zeros(5)))


def test_what_was_written_is_read_field_by_field() -> None:
    state = SharedState()
    state.write(FULL)
    require_full(state.read())


@pytest.mark.timeout(60)
def test_another_process_writes_what_this_one_reads() -> None:
    context = multiprocessing.get_context("spawn")
    state = SharedState(context)
    writer = context.Process(target=state.write, args=(FULL,))
    writer.start()
    writer.join()
    require_full(state.read())


def test_what_was_read_does_not_change_with_the_next_write() -> None:
    state = SharedState()
    state.write(FULL)
    before = state.read()
    state.write(ServoState(twist=np.full(6, 9.0)))
    require_full(before)


def test_before_the_first_write_the_state_is_connecting() -> None:
    state = SharedState().read()
    assert state.phase is Phase.CONNECTING
    assert not state.has_measured


def test_the_end_is_told_without_losing_the_last_measurement() -> None:
    state = SharedState()
    state.write(FULL)
    state.write_end(Phase.FAULTED, "the cable is out", "connection_lost")
    last = state.read()
    assert (last.phase, last.problem) == (Phase.FAULTED, "connection_lost")
    assert last.message == "the cable is out"
    np.testing.assert_array_equal(last.twist, FULL.twist)


@pytest.mark.timeout(60)
def test_a_writer_that_died_in_mid_write_leaves_the_last_whole_record_to_its_reader() -> None:
    state = SharedState()
    state.write(ServoState(cycles=7))
    state.read()
    die_in_mid_write(state)

    began_s = time.monotonic()
    last = state.read()

    assert time.monotonic() - began_s < 5.0
    assert last.cycles == 7


@pytest.mark.timeout(60)
def test_the_next_write_completes_one_that_was_interrupted() -> None:
    state = SharedState()
    state.write(ServoState(cycles=7))
    die_in_mid_write(state)

    state.write_end(Phase.ENDED, "asked to end")
    last = state.read()

    assert last.phase is Phase.ENDED
    assert last.cycles == 99
    state.write(ServoState(cycles=100))
    assert state.read().cycles == 100
