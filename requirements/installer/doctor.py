# SPDX-License-Identifier: MIT
"""Checks the environment line by line and says how to repair what fails: `make doctor`.

Standard library only, so that it runs where nothing else does. Exit code 1 if anything failed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .layout import Layout, Profile
from .steps import installed_extras
from .system_packages import missing_packages, needed_tools, wanted_packages

MIN_SHARED_MEMORY_MB = 64
MIN_DISK_GB = 1
TIMEOUT_S = 120

# What each layer must be able to import.
MODULES = {
    "core": "numpy scipy numba ruckig yaml rich tyro jinja2 imageio_ffmpeg equi_core",
    "robot": "torch safetensors rtde_control rtde_receive cv2 open3d mcap mcap_ros2 matplotlib PIL"
    " psutil imageio",
    "training": "escnn pybullet gymnasium tensorboard tqdm equi_rl",
    "dev": "pytest hypothesis mypy",
    "ros": "rclpy launch launch_ros sensor_msgs.msg equi_interfaces.msg",
}

D4_CODE = """
import torch
from escnn import gspaces, nn
space = gspaces.flipRot2dOnR2(N=4)
trivial = nn.FieldType(space, [space.trivial_repr])
regular = nn.FieldType(space, 2 * [space.regular_repr])
layer = nn.R2Conv(trivial, regular, kernel_size=3)
layer(nn.GeometricTensor(torch.zeros(1, 1, 8, 8), trivial))
"""

IMPORT_CODE = """
import importlib, sys
module = importlib.import_module(sys.argv[1])
sys.stdout.write(getattr(module, "__version__", "") or "")
"""

VERSIONS_CODE = """
import importlib.metadata as m, json, re, sys
name = lambda d: re.sub(r"[-_.]+", "-", d.metadata["Name"] or "").lower()
json.dump({name(d): d.version for d in reversed(list(m.distributions()))}, sys.stdout)
"""


@dataclass(frozen=True)
class Check:
    """One line of the report."""

    subject: str
    passed: bool
    detail: str
    repair: str = "make setup"


def main(arguments: list[str] | None = None) -> int:
    """Print a line per check; returns 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--profile", choices=[profile.value for profile in Profile])
    options = parser.parse_args(arguments)
    layout = Layout(options.root.resolve())
    failures = 0
    for check in examine(layout, profile_of(layout, options.profile)):
        failures += not check.passed
        mark = "OK  " if check.passed else "FAIL"
        sys.stdout.write(f"{mark}  {check.subject:<34} {check.detail}\n")
        if not check.passed:
            sys.stdout.write(f"      repair: {check.repair}\n")
        sys.stdout.flush()
    sys.stdout.write(f"\n{failures} of the checks failed\n" if failures else "\nall is well\n")
    return 1 if failures else 0


def profile_of(layout: Layout, requested: str | None) -> Profile:
    """The profile to check: the one that is asked for, otherwise the one that was installed."""
    if requested:
        return Profile(requested)
    installed = {
        name for name in ("robot", "training") if (layout.stamps / f"{name}.json").exists()
    }
    return Profile.ROBOT if installed == {"robot"} else Profile.FULL


def examine(layout: Layout, profile: Profile) -> Iterator[Check]:
    """Every check, from the machine up to the running system."""
    yield from machine(layout)
    yield from left_behind(layout)
    yield from system_packages(layout, profile)
    environment = list(virtual_environment(layout))
    yield from environment
    if not all(check.passed for check in environment):
        return  # the rest could only repeat that
    layers = ["core", "robot"] + (["training", "dev"] if profile is Profile.FULL else [])
    wheels = ["ros"] if (layout.stamps / "ros.json").exists() else []
    answer = in_environment(layout, "python", "-c", VERSIONS_CODE)
    versions = json.loads(answer.stdout) if answer.returncode == 0 else {}
    yield from pins(layout, [*layers, "colcon", *wheels, *installed_extras(layout)], versions)
    yield from forbidden(versions)
    for module in " ".join(MODULES[layer] for layer in [*layers, "ros"]).split():
        answer = in_environment(layout, "python", "-c", IMPORT_CODE, module)
        yield _check_of(f"import {module}", answer, "make setup; if it stays: make clean setup")
    if profile is Profile.FULL:
        answer = in_environment(layout, "python", "-c", D4_CODE)
        repair = "python -m pip uninstall scikit-learn; make setup"
        yield _check_of("escnn builds a D4 layer", answer, repair)
    yield from running_system(layout)


def machine(layout: Layout) -> Iterator[Check]:
    """What no installation can change."""
    yield Check(
        "Python",
        (3, 10) <= sys.version_info[:2] <= (3, 12),
        f"{platform.python_version()} at {sys.executable}",
        "make setup PYTHON=/path/to/python3.11 (3.10 to 3.12)",
    )
    yield Check(
        "machine",
        platform.machine() == "x86_64" and platform.system() == "Linux",
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "the ROS and Open3D wheels exist for Linux on x86_64 only",
    )
    cpu = Path("/proc/cpuinfo")
    words = set(cpu.read_text(encoding="utf-8").split()) if cpu.exists() else set()
    features = [
        name for name in ("avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16") if name in words
    ]
    yield Check(
        "CPU features",
        "avx2" in features,
        " ".join(features) or "none of the vector units we know",
        "a CPU with AVX2 is needed by the compiled packages",
    )
    for folder in (layout.root, layout.workspace, Path(tempfile.gettempdir())):
        problem = _write_problem(folder)
        subject = f"write access to {folder.name}"
        yield Check(subject, not problem, problem or str(folder), f"chmod u+w {folder}")
    free_gb = shutil.disk_usage(layout.root).free / 1e9
    yield Check(
        "free disk space",
        free_gb >= MIN_DISK_GB,
        f"{free_gb:.1f} GB",
        f"free at least {MIN_DISK_GB} GB on the disk of {layout.root}",
    )
    shared = Path("/dev/shm")
    problem = _write_problem(shared)
    free_mb = 0.0 if problem else shutil.disk_usage(shared).free / 1e6
    yield Check(
        "shared memory for Fast DDS",
        free_mb >= MIN_SHARED_MEMORY_MB,
        problem or f"{free_mb:.0f} MB free in {shared}",
        "mount a tmpfs there; in a container, start it with --shm-size=512m",
    )


def left_behind(layout: Layout) -> Iterator[Check]:
    """Segments of killed nodes in /dev/shm; those of living ones are not counted."""
    module = layout.root / "ros2_ws/src/equi_ros/equi_ros/stale_shared_memory.py"
    if not module.is_file():
        return
    answer = subprocess.run(
        [sys.executable, str(module)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    # Named, not failed: the next node that starts removes them.
    repair = f"python3 {module.relative_to(layout.root)} --remove"
    yield Check(
        "shared memory left by killed nodes",
        answer.returncode in (0, 1),
        answer.stdout.strip()[:200] or answer.stderr.strip()[-200:],
        repair,
    )


def system_packages(layout: Layout, profile: Profile) -> Iterator[Check]:
    """Debian packages and compilers."""
    for tool in needed_tools(profile):
        place = shutil.which(tool)
        yield Check(f"tool {tool}", place is not None, place or "not on the PATH")
    if shutil.which("dpkg-query"):
        names = wanted_packages(layout.requirements / "apt.txt", profile, Path(sys.executable))
        missing = " ".join(missing_packages(names))
        yield Check(
            "Debian packages",
            not missing,
            f"missing: {missing}" if missing else f"all {len(names)} installed",
            f"sudo apt-get install -y {missing}",
        )


def virtual_environment(layout: Layout) -> Iterator[Check]:
    """The venv and the built workspace."""
    made = (layout.stamps / "identity.json").is_file() and layout.python.exists()
    yield Check("virtual environment", made, str(layout.venv) if made else "missing")
    built = (layout.workspace / "install" / "local_setup.bash").is_file()
    yield Check("colcon workspace", built, "built" if built else "not built")


def pins(layout: Layout, layers: list[str], versions: dict[str, str]) -> Iterator[Check]:
    """Installed versions against the pinned ones, a line per layer."""
    for layer in layers:
        text = (layout.requirements / f"{layer}.txt").read_text(encoding="utf-8")
        wanted = applicable_pins(text)
        found = {name: versions.get(name, "missing").split("+")[0] for name in wanted}
        wrong = [
            f"{name} is {found[name]}, not {version}"
            for name, version in wanted.items()
            if found[name] != version
        ]
        yield Check(
            f"versions in {layer}.txt",
            not wrong,
            ", ".join(wrong) or f"all {len(wanted)} as pinned",
            f"{layout.python} -m pip install -r requirements/{layer}.txt",
        )


def applicable_pins(text: str) -> dict[str, str]:
    """Pins of a requirements file that apply to this Python."""
    pin = r"([\w.-]+)==([^\s;#]+)(?:\s*;\s*python_version\s*(<|>=)\s*\"(\d+)\.(\d+)\")?"
    found = {}
    for name, version, operator, *bound in re.findall(f"^{pin}", text, flags=re.MULTILINE):
        older = bool(operator) and sys.version_info[:2] < (int(bound[0]), int(bound[1]))
        if not operator or older == (operator == "<"):
            found[re.sub(r"[-_.]+", "-", name).lower()] = version
    return found


def forbidden(versions: dict[str, str]) -> Iterator[Check]:
    """What must not be there."""
    numpy = versions.get("numpy", "missing")
    repair = "python -m pip install -r requirements/core.txt"
    yield Check("numpy below 2", numpy.startswith("1."), numpy, repair)
    spoiler = versions.get("scikit-learn")
    yield Check(
        "no scikit-learn",
        spoiler is None,
        "absent" if spoiler is None else f"{spoiler}: breaks escnn's dihedral groups",
        "python -m pip uninstall -y scikit-learn",
    )


def running_system(layout: Layout) -> Iterator[Check]:
    """The ros2 command, and a message that really travels."""
    command = ("ros2", "pkg", "prefix", "equi_interfaces")
    yield _check_of(" ".join(command), in_environment(layout, *command), "make setup")
    probe = layout.requirements / "installer" / "dds_probe.py"
    yield _check_of(
        "DDS between two processes",
        in_environment(layout, "python", str(probe)),
        "check ROS_DOMAIN_ID, ROS_AUTOMATIC_DISCOVERY_RANGE, FASTRTPS_DEFAULT_PROFILES_FILE, the "
        "firewall on `lo`, and stale files /dev/shm/fastrtps_*",
    )


def in_environment(layout: Layout, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command as it would run after `source env.sh`, in a process of its own."""
    script = '. "$1/env.sh" && shift && exec "$@"'
    command = ["bash", "-c", script, "doctor", str(layout.root), *words]
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        text = f"no end after {TIMEOUT_S} s"
        return subprocess.CompletedProcess(command, 1, stdout="", stderr=text)


def _check_of(subject: str, answer: subprocess.CompletedProcess[str], repair: str) -> Check:
    """The last line that a command printed becomes the detail."""
    passed = answer.returncode == 0
    lines = (answer.stdout if passed else answer.stderr).strip().splitlines()
    fallback = "" if passed else f"exit code {answer.returncode}"
    return Check(subject, passed, lines[-1] if lines else fallback, repair)


def _write_problem(folder: Path) -> str:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return str(error)


if __name__ == "__main__":
    raise SystemExit(main())
