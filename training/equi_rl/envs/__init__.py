"""Four manipulation tasks with a hidden property, as gymnasium environments.

Importing this package registers `equi/BlockPicking-v0`, `equi/BlockPulling-v0`,
`equi/BlockPushing-v0` and `equi/DrawerOpening-v0`, and beside them the small worlds
`equi/CarFlag1D-v0` and `equi/CarFlag2D-v0`.
"""

from __future__ import annotations

from equi_rl.envs import carflag
from equi_rl.envs.base import HiddenPropertyEnv
from equi_rl.envs.registry import ENV_IDS, TASKS, make_env, register_envs

register_envs()
carflag.register()

__all__ = ["ENV_IDS", "TASKS", "HiddenPropertyEnv", "make_env", "register_envs"]
