"""A row of the fault table: how it is run, and what came of it.

The driver's limits are 0.1 s, and a computer may stand still for longer. A row that failed while it
did says nothing about the driver, so it is run again on a fresh robot, and the report says so. How
long the computer stood still is measured (`machine_stalls`); without that a failure is a failure.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass

from equi_system_tests.faults.recording import Travel
from equi_system_tests.faults.rig import RehearsalError, Rig, StoppedTooSoonError
from equi_system_tests.faults.scheduler_stalls import StallWatch

LOGGER = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
"""Rehearsals of one row at most; the last one counts, whatever the computer did."""
SPOILING_S = 0.05
"""A processor that was away for longer may have brought on one of the driver's limits of 0.1 s."""


@dataclass(frozen=True)
class FaultResult:
    """One row of the report."""

    fault: str
    expected: str
    seen: str
    travel: Travel
    resume_motion_mm: float | None
    """Motion after reset and activation although nothing was commanded; None if not applicable."""
    passed: bool
    spoiled: tuple[str, ...] = ()
    """What came of earlier rehearsals that a standstill of the computer spoiled."""

    @property
    def attempts(self) -> int:
        """Rehearsals begun until one counted."""
        return len(self.spoiled) + 1


@dataclass(frozen=True)
class FaultCase:
    """One row of the table before it is run."""

    name: str
    run: Callable[[str], FaultResult]
    """Runs the row on a fresh robot with the arm of that kind: `kinematic` or `physics`."""


def repeatable(name: str, rehearse: Callable[[str], FaultResult]) -> FaultCase:
    """A row that is run again if it failed while the computer stood still."""

    def run(arm: str) -> FaultResult:
        spoiled: tuple[str, ...] = ()
        while True:
            result, error, longest_ms = _watched(rehearse, arm)
            if result is not None and result.passed:
                break
            excused = longest_ms > SPOILING_S * 1e3 or isinstance(error, StoppedTooSoonError)
            if not excused or len(spoiled) + 1 >= MAX_ATTEMPTS:
                break
            seen = str(error) if result is None else result.seen
            spoiled = (*spoiled, f"{seen} (a processor was away for {longest_ms:.0f} ms)")
            LOGGER.warning("%s: once more on a fresh robot; %s", name, spoiled[-1])
        if result is None:
            raise RehearsalError(f"{error}, attempt {len(spoiled) + 1}") from error
        return dataclasses.replace(result, spoiled=spoiled)

    return FaultCase(name, run)


def on_a_rig(name: str, rehearse: Callable[[Rig], FaultResult]) -> FaultCase:
    """A row that needs a robot with a driver on it, at home and in an episode."""

    def run(arm: str) -> FaultResult:
        with Rig(arm=arm) as rig:
            rig.take_over()
            return rehearse(rig)

    return repeatable(name, run)


def _watched(
    rehearse: Callable[[str], FaultResult], arm: str
) -> tuple[FaultResult | None, RehearsalError | None, float]:
    """What came of a rehearsal, or its error, and the longest standstill meanwhile [ms]."""
    with StallWatch(SPOILING_S) as machine:
        machine.begin()
        result, error = None, None
        try:
            result = rehearse(arm)
        except RehearsalError as failure:
            error = failure
        return result, error, machine.finish().worst_ms
