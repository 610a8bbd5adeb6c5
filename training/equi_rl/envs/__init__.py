# SPDX-License-Identifier: MIT
"""Four manipulation tasks with a hidden property, as gymnasium environments.

Importing this package registers `equi/BlockPicking-v0`, `equi/BlockPulling-v0`,
`equi/BlockPushing-v0` and `equi/DrawerOpening-v0`, and beside them the small worlds
`equi/CarFlag1D-v0`, `equi/CarFlag2D-v0`, `equi/ContinuousCarFlag-v0` and `equi/MaskedPendulum-v0`;
then the tasks of plug-ins. The physics engine is loaded by the first of the four
tasks that is made, or by the first use of ``HiddenPropertyEnv``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equi_core.locations.tasks import SHIPPED_TASKS
from equi_rl.envs.registry import (
    ENV_IDS,
    TASKS,
    load_plugins,
    make_env,
    register_envs,
    register_task,
)

if TYPE_CHECKING:
    from equi_rl.envs.base import HiddenPropertyEnv

__all__ = [
    "ENV_IDS",
    "SHIPPED_TASKS",
    "TASKS",
    "HiddenPropertyEnv",
    "make_env",
    "register_envs",
    "register_task",
]


def __getattr__(name: str) -> Any:
    """Import the base class of the manipulation tasks when it is first asked for."""
    if name == "HiddenPropertyEnv":
        from equi_rl.envs.base import HiddenPropertyEnv

        return HiddenPropertyEnv
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


register_envs()
load_plugins()
