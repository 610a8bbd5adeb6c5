# SPDX-License-Identifier: MIT
"""Machines on which setup cannot go on: a clear message, a way out and a non-zero exit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from installer import commands, ros, steps, system_packages, workspace
from installer.layout import Layout, Profile, SetupError, child_environment

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """An empty checkout that has nothing but the installer."""
    shutil.copytree(
        ROOT / "requirements",
        tmp_path / "requirements",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    shutil.copy(ROOT / "env.sh", tmp_path)
    (tmp_path / "ros2_ws" / "src").mkdir(parents=True)
    return tmp_path


def run_setup(
    checkout: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    base = {name: value for name, value in os.environ.items() if not name.startswith("ROS_")}
    base.pop("AMENT_PREFIX_PATH", None)
    return subprocess.run(
        ["/bin/sh", str(checkout / "requirements" / "installer" / "setup.sh"), *arguments],
        env={**base, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def fake_program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_a_wrong_python_is_named_with_its_version(checkout: Path, tmp_path: Path) -> None:
    old = fake_program(
        tmp_path / "old" / "python", 'if [ "$1" = -V ]; then echo Python 3.8.18; else exit 1; fi'
    )
    answer = run_setup(checkout, PYTHON=str(old))
    assert answer.returncode != 0
    assert "Python 3.8.18" in answer.stderr
    assert "3.10, 3.11 or 3.12 is needed" in answer.stderr
    assert "What to do" in answer.stderr
    assert not (checkout / ".venv").exists()


def test_a_python_that_does_not_exist_is_named(checkout: Path) -> None:
    answer = run_setup(checkout, PYTHON="/nowhere/python3")
    assert answer.returncode != 0
    assert "PYTHON=/nowhere/python3 is not usable" in answer.stderr


def test_without_compilers_setup_stops_before_it_downloads_anything(
    checkout: Path, tmp_path: Path
) -> None:
    # A PATH that holds what the shell script needs, but no compiler and no dpkg.
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "dirname", "head", "id", "make", "cmake"):
        place = shutil.which(name)
        if place is None:
            pytest.skip(f"{name} is not installed")
        (tools / name).symlink_to(place)
    base = getattr(sys, "_base_executable", sys.executable)
    answer = run_setup(checkout, PATH=str(tools), PYTHON=base)
    assert answer.returncode == 1
    assert "'Debian packages and compilers' failed" in answer.stderr
    assert "not found on the PATH: cc, c++, gfortran" in answer.stderr
    assert "apt-get install -y build-essential gfortran" in answer.stderr
    assert not (checkout / ".venv").exists()


def test_the_robot_profile_needs_no_fortran(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        shutil, "which", lambda tool: None if tool == "gfortran" else f"/usr/bin/{tool}"
    )
    system_packages.require_tools(Profile.ROBOT)
    with pytest.raises(SetupError, match="gfortran"):
        system_packages.require_tools(Profile.FULL)


def test_missing_debian_packages_without_root_give_the_line_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(system_packages, "missing_packages", lambda _: ["cmake", "gfortran"])
    real_which = shutil.which
    monkeypatch.setattr(
        shutil, "which", lambda tool: None if tool == "sudo" else real_which(tool) or tool
    )
    with pytest.raises(SetupError) as caught:
        system_packages.install_system_packages(["cmake", "gfortran"], tmp_path / "log")
    assert "sudo apt-get install -y cmake gfortran" in caught.value.way_out


def test_a_folder_that_cannot_be_written_is_named(checkout: Path) -> None:
    # Works for root too: a plain file stands where the folder of the logs should be.
    (checkout / ".cache").write_text("in the way")
    base = getattr(sys, "_base_executable", sys.executable)
    answer = run_setup(checkout, PYTHON=base)
    assert answer.returncode == 1
    assert f"{checkout} cannot be written to" in answer.stderr
    (checkout / ".cache").unlink()


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        ("NewConnectionError: [Errno 111] Connection refused", "the network cannot be reached"),
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("ERROR: Unknown compiler(s): [['gfortran'], ['flang']]", "a compiler is missing"),
        ("E: Could not get lock /var/lib/dpkg/lock-frontend", "another program is installing"),
        (
            "Retrying: Temporary failure in name resolution\n"
            "ERROR: No matching distribution found for torch==2.13.0",
            "the network cannot be reached",
        ),
        ("ERROR: No matching distribution found for torch==2.13.0", "does not exist for this"),
    ],
)
def test_the_cause_of_a_failed_command_is_explained(
    tmp_path: Path, output: str, cause: str
) -> None:
    program = tmp_path / "failing.sh"
    fake_program(program, f"cat <<'END'\n{output}\nEND\nexit 3")
    with pytest.raises(SetupError) as caught:
        commands.run([program], tmp_path / "x.log", os.environ)
    assert cause in str(caught.value)
    assert "exit code 3" in str(caught.value)
    assert output.splitlines()[-1] in str(caught.value)
    assert caught.value.way_out


def test_another_ros_distribution_is_refused(checkout: Path) -> None:
    prefix = checkout / "opt" / "humble"
    layout = Layout(checkout / "inside")
    (prefix / "share" / "ament_index").mkdir(parents=True)
    environment = {"ROS_DISTRO": "humble", "AMENT_PREFIX_PATH": str(prefix)}
    with pytest.raises(SetupError, match="'humble' is sourced"):
        ros.sourced_ros_prefix(layout, environment)


def fake_ros(folder: Path) -> dict[str, str]:
    """A prefix that looks like a sourced ROS 2 Jazzy, with an rclpy and a launch_ros of its own."""
    site = folder / "lib" / "python" / "site-packages"
    (folder / "share" / "ament_index").mkdir(parents=True)
    for name in ("rclpy", "launch_ros"):
        (site / name).mkdir(parents=True)
        (site / name / "__init__.py").touch()
    return {
        **{name: value for name, value in os.environ.items() if name in ("PATH", "HOME")},
        "ROS_DISTRO": "jazzy",
        "AMENT_PREFIX_PATH": str(folder),
        "PYTHONPATH": str(site),
    }


def steps_of(layout: Layout, ros_prefix: Path | None) -> set[str]:
    """Names of the steps that setup would take."""
    layout.requirements.symlink_to(ROOT / "requirements")
    context = steps.Context(layout, Profile.FULL, ros_prefix, {}, Path(sys.executable), False)
    return {step.name for step in steps.plan(context)}


@pytest.mark.parametrize("name", ["cluster", "docs", "console"])
def test_an_extra_stays_once_it_was_asked_for(tmp_path: Path, name: str) -> None:
    layout = Layout(tmp_path)
    assert not {"cluster", "docs", "console"} & steps_of(layout, None)
    context = steps.Context(
        layout, Profile.FULL, None, {}, Path(sys.executable), False, frozenset({name})
    )
    assert {"cluster", "docs", "console"} & {step.name for step in steps.plan(context)} == {name}
    layout.stamps.mkdir(parents=True)
    (layout.stamps / f"{name}.json").touch()
    layout.requirements.unlink()
    assert {"cluster", "docs", "console"} & steps_of(layout, None) == {name}


def test_a_sourced_jazzy_is_used_and_nothing_is_installed_in_its_place(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "checkout")
    environment = fake_ros(tmp_path / "opt" / "jazzy")
    prefix = ros.sourced_ros_prefix(layout, environment)
    assert prefix == tmp_path / "opt" / "jazzy"
    tools = layout.workspace / "pip_ros2"
    tools.mkdir(parents=True)
    (tools / "pyproject.toml").touch()
    assert tools in workspace.editable_projects(layout, Profile.ROBOT, None)
    assert tools not in workspace.editable_projects(layout, Profile.ROBOT, prefix)
    assert "ros" not in steps_of(layout, prefix)


def test_our_own_wheels_do_not_pass_for_a_real_ros(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "checkout")
    environment = fake_ros(layout.venv)  # as after `source env.sh`
    assert ros.sourced_ros_prefix(layout, environment) is None


def test_a_jazzy_whose_rclpy_does_not_fit_this_python_is_explained(tmp_path: Path) -> None:
    environment = fake_ros(tmp_path / "jazzy")
    broken = Path(environment["PYTHONPATH"]) / "rclpy" / "__init__.py"
    broken.write_text("raise ImportError('built for another Python')")
    with pytest.raises(SetupError, match="built for another Python"):
        ros.sourced_ros_prefix(Layout(tmp_path / "checkout"), environment)


def test_commands_of_setup_see_nothing_of_another_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/elsewhere/install/lib")
    monkeypatch.setenv("AMENT_PREFIX_PATH", "/elsewhere/install")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/elsewhere/.venv/lib:/usr/local/cuda/lib")
    layout = Layout(tmp_path)
    environment = child_environment(layout, None, "token")
    assert "PYTHONPATH" not in environment
    assert environment["AMENT_PREFIX_PATH"] == str(layout.venv)
    assert environment["LD_LIBRARY_PATH"] == "/usr/local/cuda/lib"
    # given a real ROS, its variables stay
    kept = child_environment(layout, Path("/opt/ros/jazzy"), "token")
    assert kept["PYTHONPATH"] == "/elsewhere/install/lib"


def test_sourcing_before_setup_says_what_to_do(checkout: Path) -> None:
    answer = subprocess.run(
        ["bash", "-c", '. "$1/env.sh"', "x", str(checkout)], capture_output=True, text=True
    )
    assert answer.returncode != 0
    assert "nothing is installed" in answer.stderr
    assert f"make -C {checkout} setup" in answer.stderr
