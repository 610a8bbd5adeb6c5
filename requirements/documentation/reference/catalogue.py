# SPDX-License-Identifier: MIT
"""Everything that the reference lists, as plain data, collected once per state of the sources.

Collecting imports every package and constructs every node, so it happens in a process of its own;
the result is kept in `build/docs` under a digest of the sources.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import subprocess
import sys
from functools import lru_cache
from typing import Any

from ..pages import BUILD, ROOT

_SOURCES = ("training", "calibration", "models", "ros2_ws/src", "requirements/documentation")
_SUFFIXES = (".py", ".msg", ".srv", ".action")
_KEPT = 5


class CatalogueError(RuntimeError):
    """The packages could not be asked; holds what the process said."""


@lru_cache
def catalogue() -> dict[str, Any]:
    """What the packages offer: commands, nodes, launch files, settings, codes.

    Raises:
        CatalogueError: a package cannot be imported, or a node cannot be constructed.
    """
    kept = BUILD / f"catalogue-{_digest()}.json"
    if not kept.is_file():
        path = [str(ROOT / "requirements"), os.environ.get("PYTHONPATH", "")]
        answer = subprocess.run(
            [sys.executable, "-m", __package__],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            capture_output=True,
            text=True,
        )
        begin = answer.stdout.find(BEGIN)
        if answer.returncode != 0 or begin < 0:
            raise CatalogueError(f"{answer.stdout}{answer.stderr}")
        kept.parent.mkdir(parents=True, exist_ok=True)
        fresh = kept.with_suffix(f".{os.getpid()}")
        fresh.write_text(answer.stdout[begin + len(BEGIN) :], encoding="utf-8")
        fresh.rename(kept)
        _forget_old()
    loaded: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
    return loaded


BEGIN = "catalogue: "
"""In front of the JSON; libraries may print before it."""


def collect() -> dict[str, Any]:
    """Ask the packages. Nodes last: they change the process."""
    from . import codes, command_lines, launch_files, nodes, settings

    groups = {
        "Reason": "equi_core.step_limits",
        "Cause": "equi_perception.freshness",
        "Refusal": "equi_policy.session",
    }
    return {
        "commands": [dataclasses.asdict(command) for command in command_lines.commands()],
        "launch_files": launch_files.launch_files(),
        "settings": settings.setting_tables(),
        "codes": [
            dataclasses.asdict(code)
            for code in [
                *codes.fault_codes(),
                *(code for item in groups.items() for code in codes.listed_codes(*item)),
            ]
        ],
        "nodes": nodes.described_nodes(),
    }


def _digest() -> str:
    digest = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in _SUFFIXES and "build" not in path.parts:
                digest.update(str(path.relative_to(ROOT)).encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _forget_old() -> None:
    kept = sorted(BUILD.glob("catalogue-*.json"), key=lambda path: path.stat().st_mtime)
    for path in kept[:-_KEPT]:
        path.unlink(missing_ok=True)
