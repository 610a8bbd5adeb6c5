"""Cell files: which robot and cameras a cell has, and how its nodes are set. Plain YAML.

The launch files read them and hand each section to the node that it is for; nodes check their own
parameters. Here only the frame is checked, so that a misspelt section is found at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

SECTIONS = (
    "robot",
    "cameras",
    "perception",
    "policy",
    "safety",
    "simulation",
    "calibration",
    "evaluation",
)
"""Sections that a cell file may have besides its name."""


class CellFileError(ValueError):
    """A cell file that is missing or malformed; says what and where."""


@dataclass(frozen=True)
class CellFile:
    """One cell's settings, section by section."""

    name: str
    simulated: bool
    path: Path
    sections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def section(self, name: str) -> dict[str, Any]:
        """Settings of one section; empty if the file has none."""
        if name not in SECTIONS:
            raise CellFileError(f"there is no section '{name}'; known: {', '.join(SECTIONS)}")
        return dict(self.sections.get(name, {}))

    @property
    def camera_names(self) -> tuple[str, ...]:
        """Names of the cameras, in the order of the file."""
        return tuple(self.section("cameras"))

    @classmethod
    def load(cls, path: Path) -> CellFile:
        """Read a cell file."""
        if not path.is_file():
            near = sorted(other.stem for other in path.parent.glob("*.yaml"))
            known = f" (there are: {', '.join(near)})" if near else ""
            raise CellFileError(f"no cell file {path}{known}")
        try:
            data = yaml.safe_load(path.read_text(encoding="utf-8"))
        except yaml.YAMLError as error:
            raise CellFileError(f"{path} is not YAML: {error}") from error
        if not isinstance(data, dict) or not isinstance(data.get("cell"), str):
            raise CellFileError(f"{path} must name its cell: 'cell: <name>'")
        if not isinstance(data.get("simulated"), bool):
            raise CellFileError(f"{path}: 'simulated' must be true or false")
        sections = {}
        for key, value in data.items():
            if key in ("cell", "simulated"):
                continue
            if key not in SECTIONS:
                raise CellFileError(
                    f"{path}: section '{key}' is unknown; known: {', '.join(SECTIONS)}"
                )
            if not isinstance(value, dict):
                raise CellFileError(f"{path}: section '{key}' must hold named values")
            sections[key] = value
        if not sections.get("cameras"):
            raise CellFileError(f"{path}: section 'cameras' must name at least one camera")
        return cls(data["cell"], data["simulated"], path, sections)


def find_project_root(start: Path) -> Path:
    """The folder that holds `calibration/`, going up from a file of this project.

    Raises:
        CellFileError: there is none above `start`.
    """
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / "calibration").is_dir() and (folder / "ros2_ws").is_dir():
            return folder
    raise CellFileError(
        f"no project folder (with calibration/ and ros2_ws/) above {start}; "
        "give absolute paths for model, cell and calibration"
    )
