# SPDX-License-Identifier: MIT
"""The Debian packages and the compilers that everything else needs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from .commands import run, say
from .layout import Profile, SetupError

SYSTEM_PYTHON = Path("/usr/bin/python3")


def wanted_packages(apt_list: Path, profile: Profile, base_python: Path) -> list[str]:
    """Names in the sections of apt.txt that apply, in the file's order."""
    sections = {"base"}
    if SYSTEM_PYTHON.exists() and base_python.resolve() == SYSTEM_PYTHON.resolve():
        sections.add("system-python")
    if profile is Profile.FULL:
        sections.add("full")
    current, names = "", []
    for line in apt_list.read_text(encoding="utf-8").splitlines():
        text = line.split("#", 1)[0].strip()
        if text.startswith("["):
            current = text.strip("[]")
        elif text and current in sections:
            names.append(text)
    return names


def missing_packages(names: list[str]) -> list[str]:
    """Those of the Debian packages that are not installed."""
    answer = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *names],
        capture_output=True,
        text=True,
        check=False,
    )
    installed = {
        line.split()[0] for line in answer.stdout.splitlines() if line.endswith(" installed")
    }
    return [name for name in names if name not in installed]


def install_system_packages(names: list[str], log: Path) -> None:
    """Install what is missing, as root or through sudo; without either, say what to type.

    Raises:
        SetupError: Packages are missing and this user may not install them, or apt failed.
    """
    if shutil.which("dpkg-query") is None:
        say("      not a Debian or Ubuntu system: only the tools themselves are checked")
        return
    missing = missing_packages(names)
    if not missing:
        return
    prefix = _root_prefix()
    if prefix is None:
        raise SetupError(
            f"Debian packages are missing: {' '.join(missing)}; installing them needs root.",
            f"type this line, then run again:\n  sudo apt-get install -y {' '.join(missing)}",
        )
    say(f"      installing {' '.join(missing)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = [*prefix, "apt-get", "install", "-y", "--no-install-recommends", *missing]
    try:
        run(install, log, environment)
    except SetupError:
        # Lists that are old or were never fetched are the usual reason.
        run([*prefix, "apt-get", "update"], log, environment)
        run(install, log, environment)


def needed_tools(profile: Profile) -> dict[str, str]:
    """Programs that must be on the PATH, and the Debian package of each."""
    tools = {**dict.fromkeys(("cc", "c++", "make"), "build-essential"), "cmake": "cmake"}
    return tools | ({"gfortran": "gfortran"} if profile is Profile.FULL else {})


def require_tools(profile: Profile) -> None:
    """Check that compilers and CMake can really be started.

    Raises:
        SetupError: One of them is not on the PATH.
    """
    tools = needed_tools(profile).items()
    missing = {tool: package for tool, package in tools if shutil.which(tool) is None}
    if missing:
        packages = " ".join(sorted(set(missing.values())))
        raise SetupError(
            f"not found on the PATH: {', '.join(missing)}.",
            f"install them (`sudo apt-get install -y {packages}`); if they are there, check that "
            f"PATH holds their folder (it is {os.environ.get('PATH', '')!r}), then run again.",
        )


def _root_prefix() -> list[str] | None:
    if os.geteuid() == 0:
        return []
    sudo = ["sudo", "-n"]
    allowed = (
        shutil.which("sudo") and not subprocess.run([*sudo, "true"], capture_output=True).returncode
    )
    return sudo if allowed else None
