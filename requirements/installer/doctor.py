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
from .system_packages import missing_packages, wanted_packages

MIN_SHARED_MEMORY_MB = 64
MIN_DISK_GB = 1
IMPORT_PATIENCE_S = 120

# What each layer must be able to import.
MODULES = {
    "core": ["numpy", "scipy", "numba", "ruckig", "yaml", "rich", "tyro", "equi_core"],
    "robot": [
        *("torch", "safetensors", "rtde_control", "rtde_receive", "cv2", "open3d"),
        *("mcap", "mcap_ros2", "matplotlib", "PIL", "psutil"),
    ],
    "training": [
        *("escnn", "pybullet", "gymnasium", "tensorboard", "imageio", "tqdm", "equi_rl"),
    ],
    "dev": ["pytest", "hypothesis", "mypy"],
    "ros": ["rclpy", "launch", "launch_ros", "sensor_msgs.msg", "equi_interfaces.msg"],
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

VERSIONS_CODE = """
import importlib.metadata as m, json, re, sys
name = lambda d: re.sub(r"[-_.]+", "-", d.metadata["Name"] or "").lower()
json.dump({name(d): d.version for d in reversed(list(m.distributions()))}, sys.stdout)
"""


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    subject: str
    passed: bool
    detail: str
    repair: str = ""


def main(arguments: list[str] | None = None) -> int:
    """Print a line per check; returns 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--profile", choices=[profile.value for profile in Profile])
    options = parser.parse_args(arguments)
    layout = Layout(options.root.resolve())
    failures = 0
    for finding in examine(layout, profile_of(layout, options.profile)):
        failures += not finding.passed
        mark = "OK  " if finding.passed else "FAIL"
        sys.stdout.write(f"{mark}  {finding.subject:<34} {finding.detail}\n")
        if not finding.passed:
            sys.stdout.write(f"      repair: {finding.repair}\n")
        sys.stdout.flush()
    sys.stdout.write(f"\n{failures} of the checks failed\n" if failures else "\nall is well\n")
    return 1 if failures else 0


def profile_of(layout: Layout, asked: str | None) -> Profile:
    """The profile to check: the one that is asked for, otherwise the one that was installed."""
    if asked:
        return Profile(asked)
    robot_only = (layout.stamps / "robot.json").exists() and not (
        layout.stamps / "training.json"
    ).exists()
    return Profile.ROBOT if robot_only else Profile.FULL


def examine(layout: Layout, profile: Profile) -> Iterator[Finding]:
    """Every check, from the machine up to the running system."""
    yield from machine(layout)
    yield from system_packages(layout, profile)
    environment = list(virtual_environment(layout))
    yield from environment
    if not all(finding.passed for finding in environment):
        return  # the rest could only repeat that
    layers = ["core", "robot"] + (["training", "dev"] if profile is Profile.FULL else [])
    versions = installed_versions(layout)
    yield from pins(layout, [*layers, "colcon", *_ros_layer(layout)], versions)
    yield from forbidden(versions)
    for layer in [*layers, "ros"]:
        for module in MODULES[layer]:
            yield importable(layout, module)
    if profile is Profile.FULL:
        yield probe(
            layout,
            "escnn builds a D4 layer",
            D4_CODE,
            "python -m pip uninstall scikit-learn; make setup",
        )
    yield from running_system(layout)


def machine(layout: Layout) -> Iterator[Finding]:
    """What no installation can change."""
    version = platform.python_version()
    yield Finding(
        "Python",
        (3, 10) <= sys.version_info[:2] <= (3, 12),
        f"{version} at {sys.executable}",
        "make setup PYTHON=/path/to/python3.11 (3.10 to 3.12)",
    )
    yield Finding(
        "machine",
        platform.machine() == "x86_64" and platform.system() == "Linux",
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "the ROS and Open3D wheels exist for Linux on x86_64 only",
    )
    flags = set(_first_match("/proc/cpuinfo", r"^flags\s*:\s*(.*)$").split())
    known = [
        flag for flag in ("avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16") if flag in flags
    ]
    yield Finding(
        "CPU features",
        "avx2" in flags,
        " ".join(known) or "none of the vector units we know",
        "a CPU with AVX2 is needed by the compiled packages",
    )
    for folder in (layout.root, layout.workspace, Path(tempfile.gettempdir())):
        yield _writable(folder)
    free_gb = shutil.disk_usage(layout.root).free / 1e9
    yield Finding(
        "free disk space",
        free_gb >= MIN_DISK_GB,
        f"{free_gb:.1f} GB",
        f"free at least {MIN_DISK_GB} GB on the disk of {layout.root}",
    )
    yield _shared_memory()


def system_packages(layout: Layout, profile: Profile) -> Iterator[Finding]:
    """Debian packages and compilers."""
    for tool in ("cc", "c++", "make", "cmake") + (("gfortran",) if profile is Profile.FULL else ()):
        place = shutil.which(tool)
        yield Finding(f"tool {tool}", place is not None, place or "not on the PATH", "make setup")
    if shutil.which("dpkg-query"):
        names = wanted_packages(layout.requirements / "apt.txt", profile, Path(sys.executable))
        missing = missing_packages(names)
        yield Finding(
            "Debian packages",
            not missing,
            f"missing: {' '.join(missing)}" if missing else f"all {len(names)} installed",
            f"sudo apt-get install -y {' '.join(missing)}",
        )


def virtual_environment(layout: Layout) -> Iterator[Finding]:
    """The venv and the built workspace."""
    finished = (layout.stamps / "identity.json").is_file() and layout.python.exists()
    yield Finding(
        "virtual environment", finished, str(layout.venv) if finished else "missing", "make setup"
    )
    built = (layout.workspace / "install" / "local_setup.bash").is_file()
    yield Finding("colcon workspace", built, "built" if built else "not built", "make setup")


def installed_versions(layout: Layout) -> dict[str, str]:
    """Version of every distribution that the environment sees."""
    answer = in_environment(layout, VERSIONS_CODE)
    return dict(json.loads(answer.stdout)) if answer.returncode == 0 else {}


def pins(layout: Layout, layers: list[str], versions: dict[str, str]) -> Iterator[Finding]:
    """Installed versions against the pinned ones, a line per layer and a line per difference."""
    for layer in layers:
        text = (layout.requirements / f"{layer}.txt").read_text(encoding="utf-8")
        wanted = applicable_pins(text)
        wrong = {
            name: versions.get(name, "missing")
            for name, version in wanted.items()
            if versions.get(name, "missing").split("+")[0] != version
        }
        detail = ", ".join(f"{name} is {got}, not {wanted[name]}" for name, got in wrong.items())
        yield Finding(
            f"versions in {layer}.txt",
            not wrong,
            detail or f"all {len(wanted)} as pinned",
            f"{layout.python} -m pip install -r requirements/{layer}.txt",
        )


def applicable_pins(text: str) -> dict[str, str]:
    """Pins of a requirements file that apply to this Python."""
    found = {}
    running = sys.version_info[:2]
    for line in text.splitlines():
        match = re.match(
            r"([A-Za-z0-9_.-]+)==([^\s;#]+)\s*(?:;\s*python_version\s*([<>=]+)\s*\"(\d+)\.(\d+)\")?",
            line,
        )
        if not match:
            continue
        name, version, operator, major, minor = match.groups()
        bound = (int(major), int(minor)) if operator else running
        applies = {"<": running < bound, ">=": running >= bound, "==": running == bound}
        if operator is None or applies[operator]:
            found[re.sub(r"[-_.]+", "-", name).lower()] = version
    return found


def forbidden(versions: dict[str, str]) -> Iterator[Finding]:
    """What must not be there."""
    numpy = versions.get("numpy", "missing")
    yield Finding(
        "numpy below 2",
        numpy.startswith("1."),
        numpy,
        "python -m pip install -r requirements/core.txt",
    )
    spoiler = versions.get("scikit-learn")
    yield Finding(
        "no scikit-learn",
        spoiler is None,
        "absent" if spoiler is None else f"{spoiler}: breaks escnn's dihedral groups",
        "python -m pip uninstall -y scikit-learn",
    )


def importable(layout: Layout, module: str) -> Finding:
    """One module, in a process of its own: a crash stays there."""
    code = (
        f"import importlib, sys\nmodule = importlib.import_module({module!r})\n"
        "sys.stdout.write(getattr(module, '__version__', '') or '')\n"
    )
    return probe(layout, f"import {module}", code, "make setup; if it stays: make clean setup")


def running_system(layout: Layout) -> Iterator[Finding]:
    """The ros2 command, and a message that really travels."""
    ros2 = run_in_environment(layout, ["ros2", "pkg", "prefix", "equi_interfaces"])
    yield _finding_of("ros2 pkg prefix equi_interfaces", ros2, "make setup")
    path = str(layout.requirements / "installer" / "dds_probe.py")
    trip = run_in_environment(layout, ["python", path])
    yield _finding_of(
        "DDS between two processes",
        trip,
        "check ROS_DOMAIN_ID, ROS_AUTOMATIC_DISCOVERY_RANGE, FASTRTPS_DEFAULT_PROFILES_FILE, the "
        "firewall on `lo`, and stale files /dev/shm/fastrtps_*",
    )


def probe(layout: Layout, subject: str, code: str, repair: str) -> Finding:
    """Run Python code in the environment; what it prints becomes the detail."""
    return _finding_of(subject, in_environment(layout, code), repair)


def in_environment(layout: Layout, code: str) -> subprocess.CompletedProcess[str]:
    """Run Python code in the environment."""
    return run_in_environment(layout, ["python", "-c", code])


def run_in_environment(layout: Layout, words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command as it would run after `source env.sh`."""
    script = '. "$1/env.sh" && shift && exec "$@"'
    command = ["bash", "-c", script, "doctor", str(layout.root), *words]
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=IMPORT_PATIENCE_S
        )
    except subprocess.TimeoutExpired:
        text = f"no end after {IMPORT_PATIENCE_S} s"
        return subprocess.CompletedProcess(command, 1, stdout="", stderr=text)


def _finding_of(subject: str, answer: subprocess.CompletedProcess[str], repair: str) -> Finding:
    if answer.returncode == 0:
        lines = answer.stdout.strip().splitlines()
        return Finding(subject, True, lines[-1] if lines else "")
    lines = [line for line in answer.stderr.strip().splitlines() if line.strip()]
    reason = lines[-1] if lines else f"exit code {answer.returncode}"
    return Finding(subject, False, reason, repair)


def _ros_layer(layout: Layout) -> list[str]:
    return ["ros"] if (layout.stamps / "ros.json").exists() else []


def _first_match(path: str, pattern: str) -> str:
    try:
        match = re.search(pattern, Path(path).read_text(encoding="utf-8"), flags=re.MULTILINE)
    except OSError:
        return ""
    return match[1] if match else ""


def _writable(folder: Path) -> Finding:
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return Finding(f"write access to {folder.name}", False, str(error), f"chmod u+w {folder}")
    return Finding(f"write access to {folder.name}", True, str(folder))


def _shared_memory() -> Finding:
    folder = Path("/dev/shm")
    repair = "mount a tmpfs there; in a container, start it with --shm-size=512m"
    try:
        with tempfile.TemporaryFile(dir=folder):
            free_mb = shutil.disk_usage(folder).free / 1e6
    except OSError as error:
        return Finding("shared memory for Fast DDS", False, str(error), repair)
    return Finding(
        "shared memory for Fast DDS",
        free_mb >= MIN_SHARED_MEMORY_MB,
        f"{free_mb:.0f} MB free in {folder}",
        repair,
    )


if __name__ == "__main__":
    raise SystemExit(main())
