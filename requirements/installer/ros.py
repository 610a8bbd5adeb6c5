# SPDX-License-Identifier: MIT
"""Where ROS 2 comes from: a sourced installation, otherwise wheels that need one repair."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from .layout import Layout, SetupError

DISTRO = "jazzy"

# The wheels' CMake files name the Python of the machine that built them.
_BUILD_INCLUDE = re.compile(r"/opt/python/cp3\d+-cp3\d+/include/python3\.\d+")
_BUILD_NUMPY = re.compile(
    r"/opt/python/cp3\d+-cp3\d+/lib/python3\.\d+/site-packages/numpy/_?core/include"
)


def sourced_ros_prefix(layout: Layout, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Prefix of the real ROS 2 Jazzy that is sourced in this shell; None if there is none.

    Raises:
        SetupError: Another ROS distribution is sourced, or the rclpy of Jazzy does not load.
    """
    distro = environment.get("ROS_DISTRO", "")
    prefixes = [Path(part) for part in environment.get("AMENT_PREFIX_PATH", "").split(":") if part]
    foreign = [
        prefix
        for prefix in prefixes
        if layout.root not in [prefix, *prefix.parents]
        and (prefix / "share" / "ament_index").is_dir()
    ]
    if not distro or not foreign:
        return None
    way_out = f"open a shell without it, or source ROS 2 {DISTRO}, then run again."
    if distro != DISTRO:
        raise SetupError(
            f"ROS 2 {distro!r} is sourced ({foreign[-1]}); this workspace is made for {DISTRO!r}.",
            way_out,
        )
    code = "import rclpy, sys; sys.stdout.write(rclpy.__file__)"
    answer = _answer_of(Path(sys.executable), code, environment)
    if answer.returncode != 0:
        reason = (answer.stderr.strip().splitlines() or ["no output"])[-1]
        raise SetupError(
            f"ROS 2 {DISTRO} is sourced ({foreign[-1]}), but {sys.executable} cannot import its "
            f"rclpy: {reason}",
            "use the Python that ROS was built for (make setup PYTHON=/usr/bin/python3), or "
            f"{way_out}",
        )
    return next((prefix for prefix in foreign if prefix in Path(answer.stdout).parents), None)


def repair_cmake_paths(layout: Layout, log: Path, environment: Mapping[str, str]) -> None:
    """Make the wheels' CMake files name this Python's headers.

    Safe to repeat, and safe to interrupt: each file is replaced as a whole.

    Raises:
        SetupError: The headers of this Python are not installed.
    """
    code = (
        "import json, numpy, sys, sysconfig\n"
        "sys.stdout.write(json.dumps([sysconfig.get_paths()['include'], numpy.get_include()]))"
    )
    answer = _answer_of(layout.python, code, environment)
    if answer.returncode != 0:
        raise SetupError(
            f"numpy cannot be imported:\n{answer.stderr.strip()}",
            "run again; or `make clean` first.",
        )
    include, numpy_include = json.loads(answer.stdout)
    if not Path(include, "Python.h").is_file():
        name = f"python{sys.version_info.major}.{sys.version_info.minor}"
        raise SetupError(
            f"the headers of Python are missing: {include}/Python.h",
            f"install them (`sudo apt-get install -y {name}-dev`), then run again.",
        )
    for path in sorted((layout.venv / "share").rglob("*.cmake")):
        text = path.read_text(encoding="utf-8")
        repaired = _BUILD_NUMPY.sub(numpy_include, _BUILD_INCLUDE.sub(include, text))
        if repaired != text:
            temporary = path.with_name(f"{path.name}.tmp")
            temporary.write_text(repaired, encoding="utf-8")
            temporary.replace(path)
            with log.open("a", encoding="utf-8") as stream:
                stream.write(f"repaired {path}\n")


def _answer_of(
    python: Path, code: str, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python), "-c", code],
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
    )
