"""Law: the solvers know neither ROS nor the simulated world nor the robot's library."""

from __future__ import annotations

import ast

import pytest
from calibration_cells import ROOT

PACKAGE = ROOT / "calibration" / "equi_calibration"


def imported(path):
    """Top-level names of everything that a file imports, wherever the statement stands."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.stem)
def test_each_file_imports_only_what_its_layer_may(path):
    names = imported(path)
    if not path.stem.endswith("_node"):
        assert not names & {"rclpy", "sensor_msgs"}
    if path.parent.name != "simulation":
        assert not names & {"equi_rl", "equi_cell_sim", "pybullet"}
    if path.stem != "rtde_arm":
        assert "equi_control" not in names
    assert not names & {"rtde_control", "rtde_receive", "torch"}
