# SPDX-License-Identifier: MIT
"""Task names, their gymnasium ids, how to make an environment of a task, and how to add a task.

Tasks are named here by module and class and imported when one is made: whoever needs only the small
CarFlag worlds of this package does not load the physics engine.

A task of your own registers itself with `register_task`. Commands find it by the environment
variable EQUI_PLUGINS (names of modules, separated by commas), or by the entry point group
`equi.plugins` of an installed package. The tutorial "add your own task" shows one.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, overload

import gymnasium

from equi_core.locations.tasks import PLUGINS_VARIABLE, PluginError, plugin_modules

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


class _Tasks(Sequence[str]):
    """Names of all tasks, those registered later included."""

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...

    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        return tuple(_ENTRY_POINTS)[index]

    def __len__(self) -> int:
        return len(_ENTRY_POINTS)

    def __repr__(self) -> str:
        return repr(tuple(self))


TASKS: Sequence[str] = _Tasks()
"""Task names as contracts and file names use them, yours included."""
ENV_IDS: dict[str, str] = {
    task: f"equi/{entry_point.partition(':')[2]}-v0" for task, entry_point in _ENTRY_POINTS.items()
}
"""Gymnasium id of each task."""


def register_task(task: str, entry_point: str) -> None:
    """Add a task of your own; the same one twice changes nothing.

    Args:
        task: its name, such as `loose_lid`.
        entry_point: `module:Class` of a HiddenPropertyEnv; the class gives the gymnasium id.
    """
    module, _, name = entry_point.partition(":")
    if not task.isidentifier() or not module or not name.isidentifier():
        raise ValueError(
            f"task '{task}' with entry point '{entry_point}' cannot be registered; a task is named"
            " like 'loose_lid', its entry point like 'my_tasks.loose_lid:LooseLid'"
        )
    known = _ENTRY_POINTS.get(task, entry_point)
    if known != entry_point:
        raise ValueError(f"task '{task}' is already {known}; choose another name")
    _ENTRY_POINTS[task] = entry_point
    ENV_IDS[task] = f"equi/{name}-v0"
    register_envs()


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
        raise ValueError(
            f"task '{task}' is unknown; known: {', '.join(TASKS)}. A task of your own is known when"
            f" {PLUGINS_VARIABLE} names the module that registers it"
        )
    module, _, name = _ENTRY_POINTS[task].partition(":")
    made: HiddenPropertyEnv = getattr(import_module(module), name)(**options)
    return made


def load_plugins() -> None:
    """Import the modules that EQUI_PLUGINS and installed packages name."""
    for name in plugin_modules():
        try:
            import_module(name)
        except ImportError as error:
            raise PluginError(name, error) from error
