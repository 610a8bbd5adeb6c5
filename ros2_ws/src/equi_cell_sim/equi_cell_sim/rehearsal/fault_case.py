"""A row of the fault table: how it is run, and what came of it."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass

from equi_cell_sim.rehearsal.recording import Travel
from equi_cell_sim.rehearsal.rig import Rig, StoppedTooSoonError

LOGGER = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
"""Rehearsals of one row at most, if the computer stalls before its fault can be injected."""


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
    attempts: int = 1
    """Rehearsals begun until the arm was under way when the fault was injected."""


@dataclass(frozen=True)
class FaultCase:
    """One row of the table before it is run."""

    name: str
    run: Callable[[str], FaultResult]
    """Runs the row on a fresh robot with the arm of that kind: `kinematic` or `physics`."""


def on_a_rig(name: str, rehearse: Callable[[Rig], FaultResult]) -> FaultCase:
    """A row that needs a robot with a driver on it, at home and in an episode."""

    def run(arm: str) -> FaultResult:
        for attempt in range(1, MAX_ATTEMPTS):
            try:
                return _rehearse_once(arm, rehearse, attempt)
            except StoppedTooSoonError as reason:
                LOGGER.warning("%s: once more on a fresh robot; %s", name, reason)
        return _rehearse_once(arm, rehearse, MAX_ATTEMPTS)

    return FaultCase(name, run)


def _rehearse_once(arm: str, rehearse: Callable[[Rig], FaultResult], attempt: int) -> FaultResult:
    with Rig(arm=arm) as rig:
        rig.take_over()
        return dataclasses.replace(rehearse(rig), attempts=attempt)
