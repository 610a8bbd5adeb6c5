"""A row of the fault table: how it is run, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from equi_cell_sim.rehearsal.recording import Travel
from equi_cell_sim.rehearsal.rig import Rig


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


@dataclass(frozen=True)
class FaultCase:
    """One row of the table before it is run."""

    name: str
    run: Callable[[str], FaultResult]
    """Runs the row on a fresh robot with the arm of that kind: `kinematic` or `physics`."""


def on_a_rig(name: str, rehearse: Callable[[Rig], FaultResult]) -> FaultCase:
    """A row that needs a robot with a driver on it, at home and in an episode."""

    def run(arm: str) -> FaultResult:
        with Rig(arm=arm) as rig:
            rig.take_over()
            return rehearse(rig)

    return FaultCase(name, run)
