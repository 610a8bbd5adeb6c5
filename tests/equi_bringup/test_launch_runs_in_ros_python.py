# SPDX-License-Identifier: MIT
"""The launch files run in the Python of `ros2`, which has none of the libraries of the nodes.

Debian's `ros2` runs on the system's Python; the nodes run in the environment that setup made. So
processes are started by their installed executables, and launch files import next to nothing.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BRINGUP = ROOT / "ros2_ws/src/equi_bringup"
FILES = sorted((BRINGUP / "launch").glob("*.launch.py"))

# Visits a launch file up to the processes, in a Python without what ROS does not bring along.
VISIT = """
import sys
from importlib.abc import MetaPathFinder

ABSENT = "scipy numba torch rich ruckig cv2 mcap jinja2 tyro safetensors matplotlib".split()

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, Absent())
from launch import LaunchContext
from launch.launch_description_sources import PythonLaunchDescriptionSource

context = LaunchContext()
context.launch_configurations["model"] = "block_picking"
source = PythonLaunchDescriptionSource(sys.argv[1])
for entity in source.get_launch_description(context).entities:
    for inner in entity.visit(context) or []:
        print(type(inner).__name__)
"""


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.name != "cameras.launch.py"], ids=lambda path: path.name
)
def test_a_launch_file_needs_no_library_of_the_nodes(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", VISIT, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Node" in done.stdout or "IncludeLaunchDescription" in done.stdout


@pytest.mark.parametrize(
    "path", [*FILES, *sorted((BRINGUP / "equi_bringup").glob("*.py"))], ids=lambda path: path.name
)
def test_no_process_is_started_by_the_interpreter_of_the_launch(path: Path) -> None:
    names = {
        f"{node.value.id}.{node.attr}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    assert "sys.executable" not in names


def test_no_code_looks_for_the_source_tree_at_run_time() -> None:
    packages = [ROOT / "training/equi_rl", ROOT / "calibration/equi_calibration"]
    packages += [path.parent for path in (ROOT / "ros2_ws/src").glob("*/*/__init__.py")]
    modules = [path for package in packages for path in package.rglob("*.py")]
    assert len(modules) > 300
    found = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in modules
        for word in ("project_root", "__file__).resolve().parents", '"ros2_ws"', '"launch" /')
        if word in path.read_text(encoding="utf-8")
    ]
    assert found == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_process_of_ours_that_a_launch_starts_ends_with_the_launch(path: Path) -> None:
    literals = [
        node.value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    packages = {path.parent.name for path in (ROOT / "ros2_ws/src").glob("*/setup.py")}
    for package in packages & set(literals):
        manifest = (ROOT / "ros2_ws/src" / package / "setup.py").read_text()
        manifest = manifest[manifest.index("console_scripts") :].partition("]")[0]
        for name in literals:
            if f'"{name} = ' in manifest:
                # Its entry point is one that watches the launch: equi_ros.node_process.
                assert f'"{name} = {package}.executables:' in manifest
