"""Task names, their gymnasium ids, and how to make an environment of a task."""

from __future__ import annotations

from typing import Any

import gymnasium

from equi_rl.envs.base import HiddenPropertyEnv
from equi_rl.envs.drawer_opening import DrawerOpening
from equi_rl.envs.picking import BlockPicking
from equi_rl.envs.pulling import BlockPulling
from equi_rl.envs.pushing import BlockPushing

_CLASSES: dict[str, type[HiddenPropertyEnv]] = {
    cls.task: cls for cls in (BlockPicking, BlockPulling, BlockPushing, DrawerOpening)
}
TASKS: tuple[str, ...] = tuple(_CLASSES)
"""Task names as contracts and file names use them."""
ENV_IDS: dict[str, str] = {task: f"equi/{cls.__name__}-v0" for task, cls in _CLASSES.items()}
"""Gymnasium id of each task."""


def register_envs() -> None:
    """Register every task with gymnasium; doing it twice changes nothing."""
    for task, cls in _CLASSES.items():
        if ENV_IDS[task] not in gymnasium.registry:
            # The environment itself truncates at the contract's limit and tells success at the last
            # step from a time-out, so gymnasium's own limit stays off.
            gymnasium.register(id=ENV_IDS[task], entry_point=f"{cls.__module__}:{cls.__name__}")


def make_env(task: str, **options: Any) -> HiddenPropertyEnv:
    """The bare environment of a task, without gymnasium's wrappers; options as its class takes."""
    if task not in _CLASSES:
        raise ValueError(f"task '{task}' is unknown; known: {', '.join(TASKS)}")
    return _CLASSES[task](**options)
