# SPDX-License-Identifier: MIT
"""Law 8 inside equi_calibration: imports have one direction, and solvers know no devices.

What the package as a whole may import is in tests/contracts/test_layering.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from architecture.imports import import_edges, modules_of
from calibration_cells import ROOT

# From the bottom to the top, as the docstring of the package says.
LEVELS = (
    ("errors",),
    ("board",),
    ("cell_file",),
    ("scene", "collect"),
    ("solve",),
    ("check",),
    ("synthetic",),
    ("paths", "terminal"),
    ("offline_commands",),
    ("live_commands",),
    ("cli",),
)
LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
PACKAGE: Path = ROOT / "calibration" / "equi_calibration"
EDGES = import_edges(modules_of(PACKAGE))


def room_of(module: str) -> str:
    """Folder or module directly below the package; empty for the package itself."""
    return module.split(".")[1] if "." in module else ""


def test_every_folder_and_module_has_its_level():
    found = {path.stem for path in PACKAGE.glob("*.py") if path.stem != "__init__"}
    found |= {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert found == set(LEVEL)


def test_no_folder_imports_one_above_it():
    backwards = [
        str(edge)
        for edge in EDGES
        if edge.imported.startswith("equi_calibration.")
        and room_of(edge.importer) not in ("", room_of(edge.imported))
        and LEVEL[room_of(edge.imported)] >= LEVEL[room_of(edge.importer)]
    ]
    assert backwards == []


@pytest.mark.parametrize("room", ["board", "scene", "solve", "check"])
def test_what_computes_knows_neither_ros_nor_simulator_nor_robot(room):
    devices = {"rclpy", "sensor_msgs", "equi_ros", "equi_control", "equi_rl", "equi_cell_sim"}
    imported = {edge.imported.partition(".")[0] for edge in EDGES if room_of(edge.importer) == room}
    assert "numpy" in imported
    assert not imported & {*devices, "pybullet", "rtde_control", "rtde_receive", "torch"}
