# SPDX-License-Identifier: MIT
"""Simulated world, equivariant recurrent networks and agents for partially observable manipulation.

Each folder imports only folders to its left; `tests/contracts/test_layering.py` holds this:

    sim, cluster < envs, experts < data < nets < agents < training, recurrent_sac
        < audit, bench, export, sweep < carflag < results < cli, api

The Python API is `equi_rl.api`; its names are offered here and imported at first use, so that
`import equi_rl` is quick:

    policy = equi_rl.load_policy("models/block_picking")
    print(equi_rl.rollout(policy, video="episode.gif").success)

CarFlag, a family of small worlds with its own agent, is known to `results` and `cli` alone; its
gymnasium ids are registered by `equi_rl.envs` as entry points, not by import.
"""

import os as _os
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from equi_rl.api import (
        TASKS,
        Memory,
        Policy,
        PolicyState,
        RecurrentSac,
        RecurrentSacConfig,
        RobotRun,
        Rollout,
        Symmetry,
        TrainingResult,
        audit_policy,
        audit_world,
        export_policy,
        load_policy,
        make_env,
        register_memory,
        robot_run,
        rollout,
        train,
    )

# Threads that wait sleep instead of spinning: beside other processes a spinning one takes the core
# that the other thread needs. Read when torch is loaded, so it is said before that.
_os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__all__ = [
    "TASKS",
    "Memory",
    "Policy",
    "PolicyState",
    "RecurrentSac",
    "RecurrentSacConfig",
    "RobotRun",
    "Rollout",
    "Symmetry",
    "TrainingResult",
    "audit_policy",
    "audit_world",
    "export_policy",
    "load_policy",
    "make_env",
    "register_memory",
    "robot_run",
    "rollout",
    "train",
]


def __getattr__(name: str) -> _Any:
    """Import the API when one of its names is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("equi_rl.api"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
