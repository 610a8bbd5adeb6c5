# SPDX-License-Identifier: MIT
"""Refusals: what ROS's own launch has and this subset lacks is named, never half done."""

from __future__ import annotations

import difflib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType

ADVICE = "Source a ROS 2 installation to use ROS's own launch, which has it."


class OutsideSubsetError(NotImplementedError):
    """A launch file asks for something that only ROS's own launch offers."""

    def __init__(self, thing: str) -> None:
        super().__init__(f"{thing} is outside the subset of launch installed here. {ADVICE}")


def refuse_missing_names(
    module: str, offered: Iterable[str], only_in_ros: Iterable[str]
) -> Callable[[str], object]:
    """Return a module `__getattr__` that explains why a name cannot be imported."""
    known_here = sorted(offered)
    known_in_ros = frozenset(only_in_ros)

    def __getattr__(name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if name in known_in_ros:
            raise ImportError(
                f"'{module}.{name}' is outside the subset of launch installed here, "
                f"which offers: {', '.join(known_here)}. {ADVICE}",
                name=module,
            )
        near = difflib.get_close_matches(name, [*known_here, *known_in_ros], n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise ImportError(
            f"'{module}' has no '{name}', neither here nor in the ROS release that this subset "
            f"follows.{hint} It offers: {', '.join(known_here)}.",
            name=module,
        )

    return __getattr__


class _MissingSubmoduleFinder(importlib.abc.MetaPathFinder):
    """Last finder in line: explains a missing submodule of `launch` or `launch_ros`."""

    _roots = ("launch.", "launch_ros.")

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Raise for submodules of launch and launch_ros; leave all other names alone."""
        leaf = fullname.rpartition(".")[2]
        if fullname.startswith(self._roots) and not leaf.startswith("_"):
            raise ModuleNotFoundError(
                f"No module named '{fullname}': it is outside the subset of launch installed "
                f"here. {ADVICE}",
                name=fullname,
            )
        return None


def install_submodule_refusal() -> None:
    """Append the explaining finder to `sys.meta_path` once."""
    if not any(isinstance(finder, _MissingSubmoduleFinder) for finder in sys.meta_path):
        sys.meta_path.append(_MissingSubmoduleFinder())
