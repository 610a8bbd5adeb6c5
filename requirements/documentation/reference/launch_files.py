# SPDX-License-Identifier: MIT
"""Arguments of the launch files, taken from what they declare."""

from __future__ import annotations

import runpy
from typing import Any

from ..pages import ROOT

FOLDER = ROOT / "ros2_ws/src/equi_bringup/launch"


def launch_files() -> list[dict[str, Any]]:
    """Every launch file with its arguments, sorted by name."""
    found = []
    for path in sorted(FOLDER.glob("*.launch.py")):
        module = runpy.run_path(str(path))
        arguments = [
            {
                "name": item.name,
                "default": item.default,
                "text": item.description,
                "choices": list(item.choices or ()),
            }
            for item in module["ARGUMENTS"]
        ]
        text = " ".join((module["__doc__"] or "").strip().split("\n\n")[0].split())
        found.append({"file": path.name, "text": text, "arguments": arguments})
    return found
