# SPDX-License-Identifier: MIT
"""Killing setup at any moment and running it again succeeds.

The installer is the real one; what it installs are small wheels made here, so that no network is
needed and a kill hits every step. The real packages are installed by whoever runs these tests.
"""

from __future__ import annotations

import base64
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from families import wait_until

ROOT = Path(__file__).resolve().parents[2]
FILES_PER_WHEEL = 400
STEPS = ("environment", "torch", "core", "training", "dev", "colcon", "ros", "workspace")
PATIENCE_S = 600.0  # a hang, not a slow machine, should fail

pytestmark = pytest.mark.slow

COLCON_MAIN = """
import pathlib, time
def main():
    time.sleep(0.5)
    install = pathlib.Path("install")
    for name in ("equi_interfaces",):
        (install / name).mkdir(parents=True, exist_ok=True)
    (install / "local_setup.bash").write_text("")
    (install / "local_setup.zsh").write_text("")
"""


def make_wheel(folder: Path, name: str, extra: dict[str, str] | None = None) -> None:
    """A valid wheel, version 1.0, with many small files."""
    files = {f"{name}/part_{index}.py": f"X = {index}\n" for index in range(FILES_PER_WHEEL)}
    files |= {f"{name}/__init__.py": "", **(extra or {})}
    info = f"{name}-1.0.dist-info"
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    files[f"{info}/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    record = []
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
            record.append(f"{path},sha256={digest.decode().rstrip('=')},{len(text.encode())}")
        archive.writestr(f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,"]) + "\n")


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Path]:
    """A checkout whose pins name the small wheels."""
    requirements = tmp_path / "requirements"
    shutil.copytree(
        ROOT / "requirements", requirements, ignore=shutil.ignore_patterns("__pycache__")
    )
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    layers = {
        "core": "smallcore",
        "robot": "torch",
        "training": "smalltraining",
        "dev": "smalldev",
        "ros": "smallros",
        "colcon": "smallcolcon",
    }
    scripts = "smallcolcon-1.0.dist-info/entry_points.txt"
    for layer, name in layers.items():
        extra = {"numpy.py": "def get_include(): return '/numpy'\n"} if layer == "core" else None
        if layer == "colcon":
            extra = {
                "smallcolcon/main.py": COLCON_MAIN,
                scripts: "[console_scripts]\ncolcon = smallcolcon.main:main\n",
            }
        make_wheel(wheels, name, extra)
        (requirements / f"{layer}.txt").write_text(f"{name}==1.0\n")
    (requirements / "constraints.txt").write_text("")
    (requirements / "build.txt").write_text("")
    (requirements / "apt.txt").write_text("")
    package = tmp_path / "ros2_ws" / "src" / "equi_interfaces"
    package.mkdir(parents=True)
    (package / "package.xml").write_text("<package><name>equi_interfaces</name></package>")
    yield tmp_path
    for pid in _processes_in(tmp_path):
        os.kill(pid, signal.SIGKILL)


def start_setup(checkout: Path) -> subprocess.Popen[str]:
    kept = ("PATH", "HOME", "LANG")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    return subprocess.Popen(
        ["/bin/sh", str(checkout / "requirements" / "installer" / "setup.sh")],
        env={
            **environment,
            "PYTHON": getattr(sys, "_base_executable", sys.executable),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(checkout / "wheels"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(setup: subprocess.Popen[str]) -> str:
    output, _ = setup.communicate(timeout=PATIENCE_S)
    assert setup.returncode == 0, output
    return output


def assert_complete(checkout: Path) -> None:
    """Every file of every wheel is in place, whole, and the workspace is built."""
    (site,) = (checkout / ".venv" / "lib").glob("python3*/site-packages")
    for wheel in (checkout / "wheels").glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if not name.endswith("RECORD"):
                    assert (site / name).read_bytes() == archive.read(name), name
    assert (checkout / "ros2_ws" / "install" / "local_setup.bash").exists()


@pytest.mark.parametrize("whom", ["installer", "everything"])
def test_a_setup_killed_in_every_step_is_completed_by_the_next_run(
    checkout: Path, whom: str
) -> None:
    generator = random.Random(f"seed {whom}")
    marker = checkout / ".cache" / "setup" / "running.json"
    hit = set()
    for number, step in enumerate(STEPS):
        setup = start_setup(checkout)

        def running_step() -> str:
            text = marker.read_text() if marker.exists() else ""
            return next((name for name in STEPS if f'"step": "{name}"' in text), "")

        def step_has_begun(number: int = number, setup: subprocess.Popen[str] = setup) -> bool:
            # A busy machine may let a short step slip by; then the next one is hit.
            return running_step() in STEPS[number:] or setup.poll() is not None

        wait_until(step_has_begun, PATIENCE_S, f"step {step} to begin")
        time.sleep(generator.uniform(0.0, 0.8))  # the moment within the step is left to chance
        if setup.poll() is None:
            hit.add(running_step())
        if whom == "everything":
            for pid in _processes_in(checkout):
                os.kill(pid, signal.SIGKILL)
        setup.kill()
        setup.communicate()
    assert len(hit) >= len(STEPS) // 2, hit  # else the kills came too late to mean anything
    finish(start_setup(checkout))
    assert_complete(checkout)
    assert "nothing to do" in finish(start_setup(checkout))


def test_two_setups_at_once_wait_for_each_other(checkout: Path) -> None:
    first, second = start_setup(checkout), start_setup(checkout)
    outputs = [finish(first), finish(second)]
    assert_complete(checkout)
    assert sum("waiting for it to finish" in output for output in outputs) == 1
    assert sum("nothing to do" in output for output in outputs) == 1


def test_ctrl_c_keeps_what_is_finished_and_leaves_no_process(checkout: Path) -> None:
    setup = start_setup(checkout)
    stamp = checkout / ".venv" / ".setup" / "environment.json"
    wait_until(stamp.exists, PATIENCE_S, "the environment to be finished")
    os.killpg(setup.pid, signal.SIGINT)
    output, _ = setup.communicate(timeout=30)
    assert setup.returncode == 130
    assert "`make setup` continues from there" in output
    assert _processes_in(checkout) == []
    again = finish(start_setup(checkout))
    assert "virtual environment" not in again
    assert_complete(checkout)


def test_a_stamp_of_a_changed_pin_is_not_believed(checkout: Path) -> None:
    finish(start_setup(checkout))
    make_wheel(checkout / "wheels", "latecomer")
    with (checkout / "requirements" / "dev.txt").open("a") as stream:
        stream.write("latecomer==1.0\n")
    output = finish(start_setup(checkout))
    assert output.count(" ...") == 1  # one step only
    assert_complete(checkout)


def _processes_in(checkout: Path) -> list[int]:
    """Processes whose command line names the checkout."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(checkout).encode() in command:
                found.append(int(entry.name))
    return found
