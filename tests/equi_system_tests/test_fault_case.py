# SPDX-License-Identifier: MIT
"""Rows of the fault table that failed during a scheduler stall are run again, and say so."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from equi_system_tests.faults import fault_case
from equi_system_tests.faults.fault_case import MAX_ATTEMPTS, FaultResult, Robot, repeatable
from equi_system_tests.faults.recording import Travel
from equi_system_tests.faults.rig import RigError, StoppedTooSoonError

GOOD = FaultResult("row", "HOLD", "HOLD", Travel(10.0, 0.3, 150.0), None, passed=True)
BAD = dataclasses.replace(GOOD, observed="FAULT CONNECTION_LOST", passed=False)

Stalls = Callable[..., None]


@pytest.fixture
def stalls(monkeypatch: pytest.MonkeyPatch) -> Stalls:
    """Sets the longest scheduler stall of each coming run [ms]."""

    def last_for(*longest_ms: float) -> None:
        coming = iter(longest_ms)

        class Monitor:
            def __init__(self, limit_s: float) -> None:
                self.begin = lambda: None
                self.finish = lambda: SimpleNamespace(worst_ms=next(coming))

            def __enter__(self) -> Monitor:
                return self

            def __exit__(self, *_: object) -> None:
                pass

        monkeypatch.setattr(fault_case, "StallMonitor", Monitor)

    return last_for


def row(*outcomes: FaultResult | Exception) -> Callable[[], FaultResult]:
    """Runs a row whose runs have these outcomes."""
    coming = iter(outcomes)

    def run_once(robot: Robot) -> FaultResult:
        outcome = next(coming)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    case = repeatable("row", run_once)
    return lambda: case.run(Robot())


def test_a_row_that_passes_is_run_once_whatever_the_scheduler_does(stalls: Stalls) -> None:
    stalls(500.0)

    assert row(GOOD)() == GOOD
    assert GOOD.attempts == 1


def test_a_row_that_failed_during_a_stall_is_run_again_and_says_so(stalls: Stalls) -> None:
    stalls(130.0, 2.0)

    result = row(BAD, GOOD)()

    assert result.passed
    assert result.attempts == 2
    assert result.discarded == ("FAULT CONNECTION_LOST (not scheduled for 130 ms)",)


def test_a_failure_without_a_stall_is_a_failure(stalls: Stalls) -> None:
    stalls(20.0)

    result = row(BAD)()

    assert not result.passed
    assert result.attempts == 1


def test_the_last_run_counts_whatever_the_scheduler_did(stalls: Stalls) -> None:
    stalls(*[200.0] * MAX_ATTEMPTS)

    result = row(*[BAD] * MAX_ATTEMPTS)()

    assert not result.passed
    assert result.attempts == MAX_ATTEMPTS


def test_a_run_that_broke_off_during_a_stall_is_repeated(stalls: Stalls) -> None:
    stalls(300.0, 1.0)

    result = row(RigError("never happened: the arm is fast"), GOOD)()

    assert result.passed
    assert "the arm is fast" in result.discarded[0]


def test_a_row_whose_arm_stopped_before_the_fault_is_run_again(stalls: Stalls) -> None:
    stalls(10.0, 1.0)

    assert row(StoppedTooSoonError("stopped before the fault: watchdog"), GOOD)().attempts == 2


def test_a_run_that_breaks_off_without_a_stall_is_an_error(stalls: Stalls) -> None:
    stalls(10.0)

    with pytest.raises(RigError, match="never rests"):
        row(RigError("never rests"))()
