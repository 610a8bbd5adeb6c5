# SPDX-License-Identifier: MIT
"""Messages, services and actions with the comments that stand beside their fields."""

from __future__ import annotations

from ..pages import ROOT

FOLDER = ROOT / "ros2_ws/src/equi_interfaces"


def interface_files() -> list[tuple[str, str]]:
    """(type, definition) of every interface: ("equi_interfaces/msg/Observation", text)."""
    found = []
    for kind in ("msg", "srv", "action"):
        for path in sorted((FOLDER / kind).glob(f"*.{kind}")):
            found.append(
                (f"equi_interfaces/{kind}/{path.stem}", path.read_text(encoding="utf-8").strip())
            )
    return found
