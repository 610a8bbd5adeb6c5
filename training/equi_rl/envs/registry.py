# SPDX-License-Identifier: MIT
"""Task names, their gymnasium ids, and how to make an environment of a task.

Tasks are named here by module and class and imported when one is made: whoever needs only the small
CarFlag worlds of this package does not load the physics engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import gymnasium

if TYPE_CHECKING:
    from equi_rl.envs.base import HiddenPropertyEnv

_ENTRY_POINTS = {
    "block_picking": "equi_rl.envs.picking:BlockPicking",
    "block_pulling": "equi_rl.envs.pulling:BlockPulling",
    "block_pushing": "equi_rl.envs.pushing:BlockPushing",
    "drawer_opening": "equi_rl.envs.drawer_opening:DrawerOpening",
}
_GRID_WORLDS = {
    "equi/CarFlag1D-v0": "equi_rl.carflag.env:CarFlag1DEnv",
    "equi/CarFlag2D-v0": "equi_rl.carflag.env:CarFlag2DEnv",
    "equi/ContinuousCarFlag-v0": "equi_rl.recurrent_sac.worlds:ContinuousCarFlag",
    "equi/MaskedPendulum-v0": "equi_rl.recurrent_sac.worlds:masked_pendulum",
}
"""Named, not imported: nothing below the commands and results knows CarFlag."""
TASKS: tuple[str, ...] = tuple(_ENTRY_POINTS)
"""Task names as contracts and file names use them."""
ENV_IDS: dict[str, str] = {
    task: f"equi/{entry_point.partition(':')[2]}-v0" for task, entry_point in _ENTRY_POINTS.items()
}
"""Gymnasium id of each task."""


def register_envs() -> None:
    """Register every environment with gymnasium; doing it twice changes nothing."""
    ids = {ENV_IDS[task]: entry_point for task, entry_point in _ENTRY_POINTS.items()}
    for env_id, entry_point in {**ids, **_GRID_WORLDS}.items():
        if env_id not in gymnasium.registry:
            # The environment itself truncates at the contract's limit and tells success at the last
            # step from a time-out, so gymnasium's own limit stays off.
            gymnasium.register(id=env_id, entry_point=entry_point)


def make_env(task: str, **options: Any) -> HiddenPropertyEnv:
    """The bare environment of a task, without gymnasium's wrappers; options as its class takes."""
    if task not in _ENTRY_POINTS:
        raise ValueError(f"task '{task}' is unknown; known: {', '.join(TASKS)}")
    module, _, name = _ENTRY_POINTS[task].partition(":")
    made: HiddenPropertyEnv = getattr(import_module(module), name)(**options)
    return made
