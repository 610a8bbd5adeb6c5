# SPDX-License-Identifier: MIT
"""Processes are started as `python -m some.module`: every such name is a module that exists."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("ros2_ws/src", "launch", "training", "calibration")


def started_modules(source: str) -> Iterator[str]:
    """Names that follow "-m" in the lists and tuples of a Python source."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.List, ast.Tuple)):
            for flag, name in pairwise(node.elts):
                if isinstance(flag, ast.Constant) and flag.value == "-m":
                    if isinstance(name, ast.Name) and name.id == "__name__":
                        continue  # the module itself
                    assert isinstance(name, ast.Constant), "the module's name is not a literal"
                    yield str(name.value)


STARTED = sorted(
    {
        (str(path.relative_to(ROOT)), module)
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        for module in started_modules(path.read_text(encoding="utf-8"))
    }
)


@pytest.mark.parametrize(("file", "module"), STARTED)
def test_a_module_that_is_started_by_name_exists(file: str, module: str) -> None:
    assert importlib.util.find_spec(module) is not None, f"{file} starts {module}"


def test_the_emulator_and_the_driver_under_test_are_started_by_name() -> None:
    modules = {module for _, module in STARTED}

    assert {"ur_emulator.main", "equi_system_tests.faults.driver_under_test"} <= modules
