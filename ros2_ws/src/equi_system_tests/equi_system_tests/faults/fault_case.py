# SPDX-License-Identifier: MIT
"""A row of the fault table: how it is run, and its result.

The driver's limits are 0.1 s, and a busy or virtual computer may not schedule a process for longer.
A row that failed during such a stall says nothing about the driver, so it is run again on a fresh
robot, and the report says so. Stalls are measured (`scheduler_stalls`); without one a failure is a
failure.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass

from equi_system_tests.faults.recording import Travel
from equi_system_tests.faults.rig import Rig, RigError, StoppedTooSoonError
from equi_system_tests.faults.scheduler_stalls import StallMonitor

LOGGER = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
"""Runs of one row at most; the last one counts, whatever the scheduler did."""
EXCUSING_STALL_S = 0.05
"""A longer stall may have triggered one of the driver's limits of 0.1 s."""


@dataclass(frozen=True)
class Robot:
    """The emulated robot that the rows run on."""

    arm: str = "kinematic"
    """`kinematic` or `physics`."""
    profile: str = "lenient"
    """`lenient` or `strict`."""


@dataclass(frozen=True)
class FaultResult:
    """One row of the report."""

    fault: str
    expected: str
    observed: str
    travel: Travel
    resume_motion_mm: float | None
    """Motion after reset and activation although nothing was commanded; None if not applicable."""
    passed: bool
    discarded: tuple[str, ...] = ()
    """What was observed in earlier runs that a scheduler stall made worthless."""

    @property
    def attempts(self) -> int:
        """Runs until one counted."""
        return len(self.discarded) + 1


@dataclass(frozen=True)
class FaultCase:
    """One row of the table before it is run."""

    name: str
    run: Callable[[Robot], FaultResult]
    """Runs the row on a fresh robot of that kind."""
    strict_only: bool = False
    """Whether a lenient robot cannot show the fault."""


def repeatable(
    name: str, run_once: Callable[[Robot], FaultResult], *, strict_only: bool = False
) -> FaultCase:
    """A row that is run again if it failed during a scheduler stall."""

    def run(robot: Robot) -> FaultResult:
        discarded: tuple[str, ...] = ()
        while True:
            result, error, longest_ms = _monitored(run_once, robot)
            if result is not None and result.passed:
                break
            excused = longest_ms > EXCUSING_STALL_S * 1e3 or isinstance(error, StoppedTooSoonError)
            if not excused or len(discarded) + 1 >= MAX_ATTEMPTS:
                break
            observed = str(error) if result is None else result.observed
            discarded = (*discarded, f"{observed} (not scheduled for {longest_ms:.0f} ms)")
            LOGGER.warning("%s: run again on a fresh robot; %s", name, discarded[-1])
        if result is None:
            raise RigError(f"{error}, attempt {len(discarded) + 1}") from error
        return dataclasses.replace(result, discarded=discarded)

    return FaultCase(name, run, strict_only)


def on_a_rig(
    name: str, run_once: Callable[[Rig], FaultResult], *, strict_only: bool = False
) -> FaultCase:
    """A row that needs a robot with a driver on it, at home and in an episode."""

    def run(robot: Robot) -> FaultResult:
        with Rig(arm=robot.arm, profile=robot.profile) as rig:
            rig.take_over()
            return run_once(rig)

    return repeatable(name, run, strict_only=strict_only)


def _monitored(
    run_once: Callable[[Robot], FaultResult], robot: Robot
) -> tuple[FaultResult | None, RigError | None, float]:
    """Result or error of a run, and the longest scheduler stall meanwhile [ms]."""
    with StallMonitor(EXCUSING_STALL_S) as stalls:
        stalls.begin()
        result, error = None, None
        try:
            result = run_once(robot)
        except RigError as failure:
            error = failure
        return result, error, stalls.finish().worst_ms
