# SPDX-License-Identifier: MIT
"""A stiff arm that notices contact as the robot's servo process does, by the same law.

Without it the simulated arm gives way by millimetres before a step counts as blocked. A real arm
does not: its step ends at some 25 N, a millimetre or two after the first touch. What a policy sees
after that is a little different, so policies that are deployed are trained with this.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from equi_core.motion.contact_law import ContactLaw, ContactLimits

FloatArray = NDArray[np.float64]

FINE_SOLVER_ITERATIONS = 100
"""Of contacts with a stiff arm, always, and of every grasp in the simulated cell: with 20, what is
held slips out of the fingers (7 of 12 lifts)."""
_REST_CYCLES = 16
"""More cycles than the law looks back on: a force at rest stays the same."""


@dataclass(frozen=True)
class StiffArm:
    """How stiff the arm is at its TCP, and what it takes for contact."""

    stiffness_n_m: float = 25_000.0
    """Force per displacement of the TCP by contact [N/m]: that of the strict emulated robot."""
    limits: ContactLimits = field(default_factory=ContactLimits)
    """Those of the robot's servo process, speeds included."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.stiffness_n_m) and self.stiffness_n_m > 0):
            raise ValueError(f"stiffness_n_m = {self.stiffness_n_m} must be a positive number")


class ContactSense:
    """Feels what displaces the TCP; positions are (3,) in base_link [m]."""

    def __init__(self, arm: StiffArm, tick_s: float) -> None:
        self._arm, self._law = arm, ContactLaw(arm.limits, tick_s)

    def begin_step(self, displacement_m: FloatArray) -> None:
        """A new target, for an arm that rests displaced by (3,) from where it should be."""
        self._rest(displacement_m)
        self._law.begin_step()

    def touches(self, displacement_m: FloatArray) -> bool:
        """Whether the moving arm, displaced by (3,) from its target of now, meets something."""
        self._law.see_force(self._arm.stiffness_n_m * displacement_m)
        return self._law.contact_at(float(np.linalg.norm(displacement_m))) != ""

    def blocks(self, displacement_m: FloatArray) -> bool:
        """Whether an arm at rest is kept from its target by what counts as contact."""
        self._rest(displacement_m)
        return self._law.contact_at(float(np.linalg.norm(displacement_m))) != ""

    def presses(self, displacement_m: FloatArray) -> bool:
        """Whether a stopped arm still presses so much that it has to be taken back further."""
        self.blocks(displacement_m)
        return self._law.force_n > self._arm.limits.force_n / 2

    @property
    def force_n(self) -> float:
        """What was felt last, since the start of the step [N]."""
        return self._law.force_n

    def _rest(self, displacement_m: FloatArray) -> None:
        for _ in range(_REST_CYCLES):
            self._law.see_force(self._arm.stiffness_n_m * displacement_m)
