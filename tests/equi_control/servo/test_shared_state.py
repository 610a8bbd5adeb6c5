"""The state between two processes: whole records only, and no reader hangs on a dead writer."""

from __future__ import annotations

import time

import numpy as np
import pytest

from equi_control.servo.shared_state import Phase, SharedState


def die_in_mid_write(state: SharedState) -> None:
    """End a write half way, as a signal or a kill does: cycles are written, the twist is not."""
    with pytest.raises(ValueError, match="broadcast"):
        state.write(cycles=99, twist=np.zeros(5))


def test_what_was_written_is_read() -> None:
    state = SharedState()
    state.write(phase=Phase.IDLE, cycles=7, message="well")

    record = state.read()

    assert (record["phase"], record["cycles"], record["message"]) == (Phase.IDLE, 7, "well")


def test_before_the_first_write_the_state_is_connecting() -> None:
    assert SharedState().read()["phase"] == Phase.CONNECTING


@pytest.mark.timeout(60)
def test_a_writer_that_died_in_mid_write_leaves_the_last_whole_record_to_its_reader() -> None:
    state = SharedState()
    state.write(cycles=7)
    state.read()
    die_in_mid_write(state)

    began_s = time.monotonic()
    record = state.read()

    assert time.monotonic() - began_s < 5.0
    assert record["cycles"] == 7


@pytest.mark.timeout(60)
def test_the_next_write_completes_one_that_was_interrupted() -> None:
    state = SharedState()
    state.write(cycles=7)
    die_in_mid_write(state)

    state.write(phase=Phase.ENDED)
    record = state.read()

    assert record["phase"] == Phase.ENDED
    assert record["cycles"] == 99
    state.write(cycles=100)
    assert state.read()["cycles"] == 100
