# SPDX-License-Identifier: MIT
"""Which version of the code ran: the commit if there is one, else the package version."""

from __future__ import annotations

import subprocess
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path


@lru_cache(maxsize=1)
def code_version() -> str:
    """Package version, and the commit with a `+changes` mark when files differ from it."""
    package = version("equi_rl")
    folder = Path(__file__).resolve().parent
    commit = _git(folder, "rev-parse", "--short=12", "HEAD")
    if not commit:
        return package
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", str(folder))
    return f"{package}-{commit}{'+changes' if changed else ''}"


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
