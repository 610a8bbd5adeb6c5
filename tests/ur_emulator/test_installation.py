# SPDX-License-Identifier: MIT
"""The package by itself: what it imports, its first start, the example of its README."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import rtde_control
from ros_origin import PYTEST_BESIDE_ROS

from ur_emulator import EmulatorProcess

README = Path(__file__).parents[2] / "ros2_ws" / "src" / "ur_emulator" / "README.md"


def modules_after(statement: str) -> set[str]:
    """Names of all modules that a fresh interpreter has loaded after a statement."""
    code = f"{statement}; import sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    return set(done.stdout.split())


def test_the_emulator_uses_geometry_of_equi_core_and_nothing_else_of_ours() -> None:
    loaded = modules_after("import ur_emulator.main, ur_emulator.pytest_plugin")

    assert {name for name in loaded if name.startswith("equi")} == {
        "equi_core",
        "equi_core.geometry",
    }
    assert not {"rclpy", "torch", "pybullet", "ruckig", "rich"} & loaded


def test_starting_and_faulting_an_emulator_needs_the_standard_library_alone() -> None:
    assert not {"numpy", "numba", "scipy"} & modules_after("import ur_emulator")


@pytest.mark.slow
def test_the_first_start_compiles_before_it_takes_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiling in the first move held up the loop for longer than ur_rtde waits (2.5 s)."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    with EmulatorProcess() as robot:
        control = rtde_control.RTDEControlInterface(robot.address)
        assert control.moveJ_IK([-0.45, -0.11, 0.40, 2.2214, 2.2214, 0.0], 1.0, 2.0)
        assert control.isConnected()
        control.disconnect()


def test_the_example_of_the_readme_works_as_written(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "test_example.py").write_text(example)

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, **PYTEST_BESIDE_ROS},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )

    assert "1 passed" in done.stdout, done.stdout + done.stderr
