# SPDX-License-Identifier: MIT
"""Robot-side runner of exported policies: plain PyTorch, no training code.

    import equi_policy

    policy = equi_policy.load_policy("models/block_picking")
    state = policy.initial_state()                      # once per episode
    action, state = policy.act(observation, state)      # (2, 84, 84) float32 in, (5,) float32 out
    state = state.with_executed(executed_action)        # what the robot really did

Names are imported at first use, so that `import equi_policy` is quick and needs no torch.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from equi_policy.deployed_policy import (
        DeployedPolicy,
        PolicyState,
        PolicyStep,
        load_policy,
    )
    from equi_policy.errors import LayoutError, ObservationError, PolicyError, WeightsError

__all__ = [
    "DeployedPolicy",
    "LayoutError",
    "ObservationError",
    "PolicyError",
    "PolicyState",
    "PolicyStep",
    "WeightsError",
    "load_policy",
]


def __getattr__(name: str) -> _Any:
    """Import the module of a name when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = "errors" if name.endswith("Error") else "deployed_policy"
    return getattr(import_module(f"equi_policy.{module}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
