"""Rows of the fault table that a standstill of the computer spoiled are run again, openly."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from equi_system_tests.faults import fault_case
from equi_system_tests.faults.fault_case import MAX_ATTEMPTS, FaultResult, repeatable
from equi_system_tests.faults.recording import Travel
from equi_system_tests.faults.rig import RehearsalError, StoppedTooSoonError

GOOD = FaultResult("row", "HOLD", "HOLD", Travel(10.0, 0.3, 150.0), None, passed=True)
BAD = dataclasses.replace(GOOD, seen="FAULT CONNECTION_LOST", passed=False)

Computer = Callable[..., None]


@pytest.fixture
def computer(monkeypatch: pytest.MonkeyPatch) -> Computer:
    """Says how long the computer stands still in each of the rehearsals to come [ms]."""

    def stands_still_for(*longest_ms: float) -> None:
        coming = iter(longest_ms)

        class Watch:
            def __init__(self, period_s: float) -> None:
                self.begin = lambda: None
                self.finish = lambda: SimpleNamespace(worst_ms=next(coming))

            def __enter__(self) -> Watch:
                return self

            def __exit__(self, *_: object) -> None:
                pass

        monkeypatch.setattr(fault_case, "StallWatch", Watch)

    return stands_still_for


def row(*outcomes: FaultResult | Exception) -> Callable[[], FaultResult]:
    """Runs a row whose rehearsals have these outcomes."""
    coming = iter(outcomes)

    def rehearse(arm: str) -> FaultResult:
        outcome = next(coming)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    case = repeatable("row", rehearse)
    return lambda: case.run("kinematic")


def test_a_row_that_passes_is_run_once_whatever_the_computer_does(computer: Computer) -> None:
    computer(500.0)

    assert row(GOOD)() == GOOD
    assert GOOD.attempts == 1


def test_a_row_that_failed_during_a_standstill_is_run_again_and_says_so(computer: Computer) -> None:
    computer(130.0, 2.0)

    result = row(BAD, GOOD)()

    assert result.passed
    assert result.attempts == 2
    assert result.spoiled == ("FAULT CONNECTION_LOST (a processor was away for 130 ms)",)


def test_a_failure_on_a_computer_that_ran_is_a_failure(computer: Computer) -> None:
    computer(20.0)

    result = row(BAD)()

    assert not result.passed
    assert result.attempts == 1


def test_the_last_rehearsal_counts_whatever_the_computer_did(computer: Computer) -> None:
    computer(*[200.0] * MAX_ATTEMPTS)

    result = row(*[BAD] * MAX_ATTEMPTS)()

    assert not result.passed
    assert result.attempts == MAX_ATTEMPTS


def test_a_rehearsal_that_broke_off_during_a_standstill_is_repeated(computer: Computer) -> None:
    computer(300.0, 1.0)

    result = row(RehearsalError("never happened: the arm is fast"), GOOD)()

    assert result.passed
    assert "the arm is fast" in result.spoiled[0]


def test_an_arm_that_stopped_before_the_fault_is_sent_off_again(computer: Computer) -> None:
    computer(10.0, 1.0)

    assert row(StoppedTooSoonError("stopped before the fault: watchdog"), GOOD)().attempts == 2


def test_a_rehearsal_that_breaks_off_without_a_reason_is_an_error(computer: Computer) -> None:
    computer(10.0)

    with pytest.raises(RehearsalError, match="never rests"):
        row(RehearsalError("never rests"))()
