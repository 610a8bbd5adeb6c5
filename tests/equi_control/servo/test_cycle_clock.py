# SPDX-License-Identifier: MIT
"""One pose per controller cycle, whoever is late: the rule, on a clock of the test's own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equi_control.servo.cycle_clock import CycleClock

PERIOD_S = 0.008
CLOCKS_APART_S = 1234.5
"""The controller's clock shows this much less than ours."""
LISTENING = 5
"""Cycles in which the driver listens before it streams."""

transit_s = st.floats(0.0001, 0.0017)
hold_up_s = st.one_of(st.just(0.0), st.just(0.0), st.floats(0.0, 0.01), st.floats(0.0, 0.1))


def stream(
    controller_late_s: Sequence[float],
    driver_late_s: Sequence[float],
    down_s: Sequence[float],
    up_s: Sequence[float],
) -> list[int]:
    """The number of the pose that each controller cycle read.

    A controller cycle begins at its time or later, reads the newest pose that has arrived, and
    sends a package that the driver has `down_s` later. The driver looks at the newest package, is
    held up before its decision and between decision and sending, and its pose needs `up_s`. For the
    first cycles the driver only listens, as it does before an arm is taken over.
    """
    begins_s: list[float] = []
    for cycle, late_s in enumerate(controller_late_s):
        earliest_s = begins_s[-1] + 1e-4 if begins_s else 0.0
        begins_s.append(max(cycle * PERIOD_S + late_s, earliest_s))
    arrives_s = [begin + down for begin, down in zip(begins_s, down_s, strict=True)]
    clock = CycleClock(PERIOD_S)
    poses_s: list[float] = []
    now_s, answered, wake = 0.0, -1, 0
    while answered < len(begins_s) - 1:
        # Packages travel on one connection: the newest one is the last of those that have come.
        newest = max((k for k, at_s in enumerate(arrives_s) if at_s <= now_s), default=-1)
        if newest == answered:
            now_s = min(at_s for k, at_s in enumerate(arrives_s) if k > answered)
            continue
        answered = newest
        shown_s = newest * PERIOD_S - CLOCKS_APART_S
        if newest >= LISTENING:
            now_s += driver_late_s[wake % len(driver_late_s)]
        clock.saw_cycle(shown_s, now_s)
        if newest >= LISTENING and clock.may_send(shown_s):
            now_s += driver_late_s[(wake + 1) % len(driver_late_s)]
            poses_s.append(now_s + up_s[wake % len(up_s)])
            clock.handed_over(now_s)
        now_s += 1e-4
        wake += 1
    return [sum(at_s <= begin for at_s in poses_s) for begin in begins_s]


@given(st.data())
def test_every_pose_is_read_before_the_next_is_sent_however_late_anybody_is(
    data: st.DataObject,
) -> None:
    cycles = LISTENING + data.draw(st.integers(5, 60))
    late_s = data.draw(
        st.lists(hold_up_s, min_size=cycles - LISTENING, max_size=cycles - LISTENING)
    )
    controller_late_s = [0.0] * LISTENING + late_s
    driver_late_s = data.draw(st.lists(hold_up_s, min_size=1, max_size=20))
    down_s = data.draw(st.lists(transit_s, min_size=cycles, max_size=cycles))
    up_s = data.draw(st.lists(transit_s, min_size=1, max_size=20))

    read = stream(controller_late_s, driver_late_s, down_s, up_s)

    assert all(later - earlier in (0, 1) for earlier, later in pairwise(read))


def test_a_punctual_stream_has_a_new_pose_in_every_cycle() -> None:
    read = stream([0.0] * 200, [0.0005], [0.0008] * 200, [0.0002])

    assert read[LISTENING:] == list(range(200 - LISTENING))


def test_the_stream_goes_on_at_full_rate_after_a_hold_up_of_the_controller() -> None:
    late_s = [0.0] * 200
    late_s[50] = 0.06

    read = stream(late_s, [0.0005], [0.0008] * 200, [0.0002])

    assert read[-1] - read[100] == 99


def test_clocks_that_drift_apart_do_not_hold_up_the_stream() -> None:
    clock = CycleClock(PERIOD_S)
    sent = 0
    for cycle in range(100_000):
        # A controller whose quartz is slow by 200 parts per million.
        shown_s, now_s = cycle * PERIOD_S, cycle * PERIOD_S * 1.0002 + 0.001
        clock.saw_cycle(shown_s, now_s)
        if clock.may_send(shown_s):
            clock.handed_over(now_s + 0.0005)
            sent += 1

    assert sent == 100_000


def test_a_late_package_does_not_shift_the_time_at_which_the_next_is_due() -> None:
    clock = CycleClock(PERIOD_S)
    clock.saw_cycle(0.0, 10.0)

    clock.saw_cycle(PERIOD_S, 10.0 + PERIOD_S + 0.003)

    assert clock.next_due_s(PERIOD_S) == pytest.approx(10.0 + 2 * PERIOD_S, abs=1e-4)


def test_after_a_pause_the_next_pose_waits_for_two_cycles_and_begins_from_rest() -> None:
    clock = CycleClock(PERIOD_S)
    for cycle in range(LISTENING):
        clock.saw_cycle(cycle * PERIOD_S, cycle * PERIOD_S)
    clock.handed_over((LISTENING - 1) * PERIOD_S)
    assert not clock.paused

    # Ten cycles later the first old package comes out of the queue, then the newest one.
    resumed_s = (LISTENING + 10) * PERIOD_S
    clock.saw_cycle(LISTENING * PERIOD_S, resumed_s)
    assert clock.paused
    assert not clock.may_send(LISTENING * PERIOD_S)
    clock.saw_cycle(resumed_s, resumed_s + 0.001)
    assert clock.may_send(resumed_s)

    clock.handed_over(resumed_s + 0.002)
    assert not clock.paused


def test_a_pose_that_took_long_to_leave_is_a_pause_as_well() -> None:
    clock = CycleClock(PERIOD_S)
    clock.saw_cycle(0.0, 0.0)

    clock.handed_over(5 * PERIOD_S)

    assert clock.paused
    clock.saw_cycle(6 * PERIOD_S, 6 * PERIOD_S)
    assert not clock.may_send(6 * PERIOD_S)
    clock.saw_cycle(7 * PERIOD_S, 7 * PERIOD_S)
    assert clock.may_send(7 * PERIOD_S)
