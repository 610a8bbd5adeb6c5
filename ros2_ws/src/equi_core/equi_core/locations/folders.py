# SPDX-License-Identifier: MIT
"""Folders to search, in their order: named by the user, the user's own, then the installed ones.

| what | search path | the user's own | installed with the package |
|---|---|---|---|
| cells | `EQUI_CELLS` | `~/.ros/equi/cells` | `equi_bringup` |
| models | `EQUI_MODELS` | `~/.ros/equi/models` | `equi_models` |
| calibrations | - | `~/.ros/equi/calibration` | `equi_calibration` (of the simulated cell) |

A search path has folders between colons. `ROS_HOME` replaces `~/.ros`, as everywhere in ROS.
Installed files are found through `AMENT_PREFIX_PATH`, which the setup script of a workspace sets.
"""

from __future__ import annotations

import os
from pathlib import Path

CELLS_VARIABLE = "EQUI_CELLS"
MODELS_VARIABLE = "EQUI_MODELS"


def cell_folders() -> list[Path]:
    """Folders of cell files."""
    shared = share_folders("equi_bringup", "cells")
    return [*listed_folders(CELLS_VARIABLE), own_folder("cells"), *shared]


def model_folders() -> list[Path]:
    """Folders that hold a folder per model."""
    shared = share_folders("equi_models", "models")
    return [*listed_folders(MODELS_VARIABLE), own_folder("models"), *shared]


def calibration_folders() -> list[Path]:
    """Folders that hold a folder per cell with its calibration; results go to the first."""
    return [own_folder("calibration"), *share_folders("equi_calibration", "results")]


def own_folder(part: str) -> Path:
    """Where the user's own files of a kind are; writable, and there after an installation anew."""
    home = os.environ.get("ROS_HOME") or "~/.ros"
    return Path(home).expanduser() / "equi" / part


def listed_folders(variable: str) -> list[Path]:
    """Folders of a search path in the environment; empty if it is not set."""
    entries = os.environ.get(variable, "").split(os.pathsep)
    return [Path(entry).expanduser() for entry in entries if entry]


def share_folders(package: str, part: str) -> list[Path]:
    """Folder of a package's installed data, under every prefix that has one."""
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    folders = [Path(prefix) / "share" / package / part for prefix in prefixes if prefix]
    return [folder for folder in folders if folder.is_dir()]
