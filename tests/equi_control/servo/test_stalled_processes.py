# SPDX-License-Identifier: MIT
"""A process that stands still in mid-motion: the arm waits, and is never asked to catch up.

The processes are really stopped and continued (SIGSTOP), and the emulated controller's own record
says what reached it. Watchdog and age limits are wide, so that no fault hides what is tested.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from equi_control.driver.state import DriverState
from equi_control.driver.steps import Outcome
from equi_system_tests.faults.recording import keeps_caps, stream_metrics
from equi_system_tests.faults.rig import Rig

STALLS = 5
STALLED_S = 0.1
PERIOD_S = 0.008


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def stall_the_controller(rig: Rig) -> None:
    with stopped(rig.emulator.pid):
        rig.until(lambda: rig.servo_state.state_age_s > STALLED_S, "the driver hears nothing")


def stall_the_servo_process(rig: Rig) -> None:
    began_s = rig.emulator.api.status()["timestamp_s"]
    pid = rig.driver.servo_pid
    assert pid is not None
    with stopped(pid):
        rig.until(
            lambda: rig.emulator.api.status()["timestamp_s"] > began_s + STALLED_S,
            "the controller goes on",
        )


def stall_both(rig: Rig) -> None:
    pid = rig.driver.servo_pid
    assert pid is not None
    with stopped(pid):
        stall_the_controller_blindly(rig)


def stall_the_controller_blindly(rig: Rig) -> None:
    """As a host that takes the whole machine off the processor; nobody is there to see it."""
    rounds = 0

    def some_rounds_later() -> bool:
        nonlocal rounds
        rounds += 1
        return rounds > 25

    with stopped(rig.emulator.pid):
        rig.until(some_rounds_later, "time passes")


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with Rig.patient() as running:
        running.take_over()
        yield running


@pytest.mark.parametrize("stall", [stall_the_controller, stall_the_servo_process, stall_both])
def test_after_a_stall_no_command_above_the_caps_reaches_the_arm(
    rig: Rig, stall: Callable[[Rig], None], request: pytest.FixtureRequest
) -> None:
    rig.begin_episode(request.node.name)
    rig.record()

    reports = []
    for _ in range(STALLS):
        rig.start_moving()
        stall(rig)
        reports += rig.finish_step()
    figures = stream_metrics(rig.recorded(), PERIOD_S)

    assert rig.driver.state is DriverState.HOLD, rig.driver.fault
    assert [report.outcome for report in reports] == [Outcome.COMPLETED] * STALLS, [
        report.reasons for report in reports
    ]
    # The stalls were there, in the middle of motions, and much longer than a stutter.
    assert figures.worst_gap_periods > 10
    assert figures.held_cycles > 0
    assert keeps_caps(figures, rig.config.servo.limits), figures
