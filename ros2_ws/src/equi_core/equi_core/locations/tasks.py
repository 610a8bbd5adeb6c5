# SPDX-License-Identifier: MIT
"""Names of the tasks, those of plug-ins included, for training and for the robot.

A plug-in is a module that calls `register_task("name", ...)`. Training imports it. Launch files
and command lines need only the name, and run where neither the physics engine nor the training
package may be installed: they read the name from the plug-in's source and import nothing.
"""

from __future__ import annotations

import ast
import os
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

SHIPPED_TASKS = ("block_picking", "block_pulling", "block_pushing", "drawer_opening")
"""The tasks of this repository."""
PLUGINS_VARIABLE = "EQUI_PLUGINS"
"""Names of modules, separated by commas."""
PLUGINS_GROUP = "equi.plugins"
"""Entry points of installed packages; the value of each is a module."""
_REGISTERS = "register_task"


class PluginError(ImportError):
    """A plug-in that is named and cannot be found, read or imported; says why."""

    def __init__(self, module: str, why: object) -> None:
        super().__init__(
            f"plug-in '{module}' of {PLUGINS_VARIABLE} cannot be imported ({why}); its folder"
            " must be on PYTHONPATH, or its package installed"
        )


def plugin_modules() -> list[str]:
    """Modules that EQUI_PLUGINS and installed packages name, in this order."""
    named = [name.strip() for name in os.environ.get(PLUGINS_VARIABLE, "").split(",")]
    installed = [entry.value for entry in metadata.entry_points(group=PLUGINS_GROUP)]
    return [name for name in [*named, *installed] if name]


def known_tasks() -> tuple[str, ...]:
    """The shipped tasks, then those that plug-ins register.

    Raises:
        PluginError: a plug-in is named and its source cannot be found or read.
    """
    names = dict.fromkeys(SHIPPED_TASKS)
    for module in plugin_modules():
        names.update(dict.fromkeys(_registered_by(module)))
    return tuple(names)


def _registered_by(module: str) -> list[str]:
    """Names that a module's source hands to `register_task`, as text in quotes."""
    try:
        spec = find_spec(module)
    except (ImportError, ValueError) as error:  # of a package around it
        raise PluginError(module, error) from error
    if spec is None or spec.origin is None:
        raise PluginError(module, f"No module named '{module}'")
    try:
        tree = ast.parse(Path(spec.origin).read_bytes(), spec.origin)
    except (OSError, SyntaxError, ValueError) as error:
        raise PluginError(module, error) from error
    return [
        call.args[0].value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and _called(call) == _REGISTERS
        and call.args
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
    ]


def _called(call: ast.Call) -> str:
    """Last part of the name of what is called."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
