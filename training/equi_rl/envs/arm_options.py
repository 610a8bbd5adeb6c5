# SPDX-License-Identifier: MIT
"""Which arm an environment has: one that gives way, or a stiff one (`equi_rl.sim.stiff_arm`)."""

from __future__ import annotations

from typing import Any

from equi_rl.sim.physics_config import PhysicsConfig
from equi_rl.sim.stiff_arm import StiffArm


def arm_options(*, stiff: bool) -> tuple[tuple[str, Any], ...]:
    """Keyword arguments of `make_env` for that arm."""
    return (("physics", PhysicsConfig(stiff_arm=StiffArm())),) if stiff else ()
