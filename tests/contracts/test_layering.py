"""Law: layers. The core knows nobody, the robot side needs no training code, nodes are thin.

Checked on the source by its import statements, wherever they stand in a file.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
WORKSPACE = REPOSITORY / "ros2_ws" / "src"
OURS = {
    "equi_core",
    "equi_rl",
    "equi_perception",
    "equi_policy",
    "equi_control",
    "equi_cell_sim",
    "equi_evaluation",
}
ROBOT_SIDE = ("equi_core", "equi_perception", "equi_policy", "equi_control", "equi_evaluation")
TRAINING_ONLY = {"escnn", "pybullet", "equi_rl", "gymnasium"}


def imported_packages(path: Path) -> set[str]:
    """Top-level names of everything that a file imports absolutely."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module.split(".")[0])
    return names


def sources(package: str) -> list[Path]:
    return sorted((WORKSPACE / package / package).rglob("*.py"))


def test_the_core_imports_nothing_of_ours_and_no_ros():
    assert sources("equi_core")
    for path in sources("equi_core"):
        forbidden = (OURS - {"equi_core"}) | {"rclpy", "torch", "escnn", "pybullet", "open3d"}
        assert not imported_packages(path) & forbidden, path


@pytest.mark.parametrize("package", ROBOT_SIDE)
def test_the_robot_side_needs_neither_escnn_nor_pybullet(package):
    for path in sources(package):
        assert not imported_packages(path) & TRAINING_ONLY, path


def test_rclpy_is_imported_only_by_node_files():
    for path in sorted(WORKSPACE.glob("equi_*/equi_*/**/*.py")):
        if "rclpy" in imported_packages(path):
            assert path.stem.endswith("_node") or path.stem == "qos", path


def test_ur_rtde_is_imported_by_one_file():
    libraries = {"rtde_control", "rtde_receive", "rtde_io", "dashboard_client", "ur_rtde"}
    importers = [
        path.name
        for path in sorted(WORKSPACE.glob("equi_*/equi_*/**/*.py"))
        if imported_packages(path) & libraries
    ]
    assert importers in ([], ["rtde_link.py"])


def test_training_imports_nothing_of_the_robot_side_but_the_core():
    robot_side = set(ROBOT_SIDE) - {"equi_core"}
    for path in sorted((REPOSITORY / "training" / "equi_rl").rglob("*.py")):
        # The exporter proves parity with the deployed policy, so it may import that one package.
        allowed = {"equi_policy"} if path.stem == "export" else set()
        assert not imported_packages(path) & (robot_side - allowed), path
