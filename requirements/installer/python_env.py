# SPDX-License-Identifier: MIT
"""The virtual environment: made once, recognised when half-finished, repaired after a kill."""

from __future__ import annotations

import csv
import shutil
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from . import stamps
from .commands import run, say
from .layout import Layout, SetupError

IDENTITY = "identity.json"


def identity_of(layout: Layout) -> dict[str, str]:
    """What the environment was made from; empty if there is none or it was never finished."""
    return stamps.read(layout.stamps / IDENTITY)


def wanted_identity(layout: Layout, ros_prefix: Path | None) -> dict[str, str]:
    """What it should be made from: this interpreter, at this place, with or without a real ROS."""
    return {
        "base_python": str(Path(sys.executable).resolve()),
        "python_version": ".".join(map(str, sys.version_info[:3])),
        "path": str(layout.venv),
        "ros_prefix": "" if ros_prefix is None else str(ros_prefix),
    }


def environment_is_usable(layout: Layout, wanted: Mapping[str, str]) -> bool:
    """True if the environment was finished and made from what is wanted."""
    found = identity_of(layout)
    return layout.python.exists() and all(found.get(key) == value for key, value in wanted.items())


def make_environment(
    layout: Layout, wanted: Mapping[str, str], log: Path, environment: Mapping[str, str]
) -> None:
    """Create the virtual environment, replacing a half-finished or unsuitable one.

    Raises:
        SetupError: This Python cannot make virtual environments.
    """
    if layout.venv.exists():
        _clear_away(layout, wanted)
    # Marked as ours from the first moment; the identity is written when it is complete.
    layout.stamps.mkdir(parents=True)
    command = [sys.executable, "-m", "venv"]
    if wanted["ros_prefix"]:
        command.append("--system-site-packages")
    try:
        run([*command, layout.venv], log, environment)
    except SetupError as error:
        name = f"python{sys.version_info.major}.{sys.version_info.minor}"
        raise SetupError(
            f"{sys.executable} cannot make a virtual environment.\n{error}",
            f"install its venv module (`sudo apt-get install -y {name}-venv`), then run again.",
        ) from error
    (layout.venv / "COLCON_IGNORE").touch()
    stamps.write_atomically(layout.stamps / IDENTITY, {**wanted, "id": uuid.uuid4().hex})


def _clear_away(layout: Layout, wanted: Mapping[str, str]) -> None:
    """Remove an environment of ours; move one that somebody else made aside."""
    ours = layout.stamps.is_dir() or not any(layout.venv.iterdir())
    if not ours:
        aside = layout.venv.with_name(f".venv.{time.strftime('%Y%m%d-%H%M%S')}.bak")
        layout.venv.rename(aside)
        say(f"      .venv was not made by this setup: moved to {aside.name}")
        return
    found = identity_of(layout)
    if not found:
        say("      .venv was left half-finished: making it again")
    else:
        changed = [key for key, value in wanted.items() if found.get(key) != value]
        say(f"      .venv was made for another {', '.join(changed)}: making it again")
    # Renamed first: a kill in the middle of the removal cannot leave something that looks complete.
    doomed = layout.venv.with_name(f".venv.{uuid.uuid4().hex[:8]}.old")
    layout.venv.rename(doomed)
    shutil.rmtree(doomed)


def remove_doomed(layout: Layout) -> None:
    """Finish a removal that was interrupted."""
    for doomed in layout.root.glob(".venv.*.old"):
        say(f"removing {doomed.name}, the rest of an earlier environment")
        shutil.rmtree(doomed, ignore_errors=True)


def drop_broken_packages(layout: Layout, thorough: bool) -> list[str]:
    """Make pip forget the packages that it was killed while installing, and return their names.

    pip takes a package for installed as soon as its metadata folder exists, but writes RECORD, the
    list of files, last. Without it the package is incomplete.

    Args:
        layout: Paths of this checkout.
        thorough: Also compare every listed file with its recorded size.
    """
    broken = []
    for site in (layout.venv / "lib").glob("python3*/site-packages"):
        for half in site.glob("~*"):  # what pip was about to replace
            shutil.rmtree(half, ignore_errors=True) if half.is_dir() else half.unlink()
        for metadata in site.glob("*.dist-info"):
            if not _is_complete(site, metadata, thorough):
                broken.append(metadata.name.removesuffix(".dist-info"))
                shutil.rmtree(metadata)
    return broken


def _is_complete(site: Path, metadata: Path, thorough: bool) -> bool:
    record = metadata / "RECORD"
    if not record.is_file() or not (metadata / "METADATA").is_file():
        return False
    if not thorough:
        return True
    try:
        rows = list(csv.reader(record.read_text(encoding="utf-8").splitlines()))
    except (OSError, csv.Error, UnicodeDecodeError):
        return False
    for row in rows:
        if len(row) != 3 or not row[2] or row[0].endswith((".cmake", ".pyc")):
            continue  # no size recorded, repaired by setup, or rewritten by Python
        path = site / row[0]
        if not path.is_file() or path.stat().st_size != int(row[2]):
            return False
    return True
