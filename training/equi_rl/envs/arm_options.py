# SPDX-License-Identifier: MIT
"""Which arm an environment has: one that gives way, or a stiff one (`equi_rl.sim.stiff_arm`)."""

from __future__ import annotations

from typing import Any

from equi_rl.sim.physics_config import PhysicsConfig
from equi_rl.sim.stiff_arm import FINE_SOLVER_ITERATIONS, StiffArm


def arm_options(*, stiff: bool) -> tuple[tuple[str, Any], ...]:
    """Keyword arguments of `make_env` for that arm."""
    if not stiff:
        return ()
    physics = PhysicsConfig(contact_solver_iterations=FINE_SOLVER_ITERATIONS, stiff_arm=StiffArm())
    return (("physics", physics),)
