# SPDX-License-Identifier: MIT
"""The import graph of our packages, computed from the import statements of their sources.

Every statement counts, wherever it is in a file: inside functions and `TYPE_CHECKING` blocks too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
INTERFACES = "equi_interfaces"  # generated from messages: imported, but without Python sources


@dataclass(frozen=True)
class Module:
    """A Python file of ours and its dotted name, such as `equi_core.motion.safety`."""

    name: str
    path: Path

    @property
    def is_package(self) -> bool:
        """True for an `__init__.py`: relative imports start at the module itself."""
        return self.path.name == "__init__.py"


@dataclass(frozen=True, order=True)
class Edge:
    """`importer` imports `imported`; both are dotted names."""

    importer: str
    imported: str
    line: int

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


def package_folders(root: Path = REPOSITORY) -> dict[str, Path]:
    """Folder of every Python package of ours, by name; pip_ros2 stands for ROS itself."""
    parents = [root / "training", root / "calibration", *sorted((root / "ros2_ws/src").iterdir())]
    initials = [path for parent in parents for path in sorted(parent.glob("*/__init__.py"))]
    return {path.parent.name: path.parent for path in initials}


def modules_of(folder: Path) -> list[Module]:
    """Every module below the folder of a package, `__init__.py` files included."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append(Module(name, path))
    return found


def all_modules(root: Path = REPOSITORY) -> list[Module]:
    """Every module of every package of ours."""
    return [module for folder in package_folders(root).values() for module in modules_of(folder)]


def imports_in(module: Module, known: frozenset[str]) -> Iterator[Edge]:
    """Each import of a module. `from a import b` names `a.b` if that is a module, otherwise `a`."""
    source = module.path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source, filename=str(module.path))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Edge(module.name, alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(module, node)
            for alias in node.names:
                name = f"{base}.{alias.name}"
                yield Edge(module.name, name if name in known else base, node.lineno)


def import_edges(modules: list[Module]) -> list[Edge]:
    """Every import of the modules, of libraries as well as of each other, sorted."""
    known = frozenset(module.name for module in modules)
    return sorted({edge for module in modules for edge in imports_in(module, known)})


def between(edges: list[Edge], group_of: dict[str, str]) -> dict[tuple[str, str], list[Edge]]:
    """Edges that cross from one group of modules to another, by the pair of groups.

    Args:
        edges: Imports between modules.
        group_of: Group by prefix of the dotted name; the longest matching prefix decides.
    """
    crossing: dict[tuple[str, str], list[Edge]] = {}
    for edge in edges:
        pair = (group(edge.importer, group_of), group(edge.imported, group_of))
        if "" not in pair and pair[0] != pair[1]:
            crossing.setdefault(pair, []).append(edge)
    return crossing


def group(name: str, group_of: dict[str, str]) -> str:
    """Group of a module by the longest prefix that is listed; empty if none is."""
    while name and name not in group_of:
        name = name.rpartition(".")[0]
    return group_of.get(name, "")


def cycles(pairs: set[tuple[str, str]]) -> list[str]:
    """Groups that can be reached from themselves; none in an acyclic graph."""
    reached: dict[str, set[str]] = {first: set() for pair in pairs for first in pair}
    for start, seen in reached.items():
        frontier = {start}
        while frontier:
            frontier = {b for a, b in pairs if a in frontier} - seen
            seen |= frontier
    return sorted(name for name, seen in reached.items() if name in seen)


def starts_with(name: str, prefix: str) -> bool:
    """True if the dotted name is the prefix or lies below it."""
    return name == prefix or name.startswith(f"{prefix}.")


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if node.level == 0:
        return node.module or ""
    parts = module.name.split(".")
    up = node.level - (1 if module.is_package else 0)
    return ".".join([*parts[: len(parts) - up], *(node.module or "").split(".")]).rstrip(".")
