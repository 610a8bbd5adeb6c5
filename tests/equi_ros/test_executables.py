# SPDX-License-Identifier: MIT
"""Executables of the nodes: each names a module that exists, and imports nothing heavy itself."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "ros2_ws" / "src"
FILES = sorted(SOURCES.glob("*/equi_*/**/executables.py"))
HEAVY = ("rclpy", "numpy", "numba", "torch", "scipy")


def named_modules(path: Path) -> dict[str, str]:
    """Executable to module, by the source: `name = executable("module")`."""
    return {
        node.targets[0].id: str(ast.literal_eval(node.value.args[0]))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.args[0], ast.Constant)
    }


def module_of(path: Path) -> str:
    relative = path.relative_to(SOURCES).with_suffix("")
    return ".".join(relative.parts[1:])


def test_every_node_package_has_executables() -> None:
    packages = {path.relative_to(SOURCES).parts[0] for path in FILES}
    assert {"equi_control", "equi_perception", "equi_policy", "equi_ros"} <= packages


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCES).parts[0])
def test_an_executable_starts_a_module_that_exists_and_is_installed_under_its_name(
    path: Path,
) -> None:
    setup = (SOURCES / path.relative_to(SOURCES).parts[0] / "setup.py").read_text(encoding="utf-8")
    for name, module in named_modules(path).items():
        assert importlib.util.find_spec(module) is not None, module
        assert f"= {module_of(path)}:{name}" in setup


def test_importing_the_executables_loads_nothing_heavy() -> None:
    """Otherwise a signal that comes while it loads would find the process deaf."""
    modules = ", ".join(module_of(path) for path in FILES)
    code = f"import sys, {modules}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
