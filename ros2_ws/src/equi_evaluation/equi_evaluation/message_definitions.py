# SPDX-License-Identifier: MIT
"""Finds the text of message definitions in the installed packages, for the schemas of records."""

from __future__ import annotations

import json
import os
from pathlib import Path

from equi_evaluation.recording import RecordingError, full_definition, referenced_types


def definition_of(type_name: str, prefixes: list[str] | None = None) -> str:
    """Whole definition of package/msg/Name with all it contains.

    Args:
        type_name: package/msg/Name.
        prefixes: install prefixes to search; those of AMENT_PREFIX_PATH by default.
    """
    folders = prefixes or os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    texts: dict[str, str] = {}
    waiting = [type_name]
    while waiting:
        name = waiting.pop()
        if name not in texts:
            texts[name] = _read(name, folders)
            waiting += referenced_types(texts[name], name.split("/")[0])
    return full_definition(type_name, texts)


def type_hash_of(type_name: str, prefixes: list[str] | None = None) -> str:
    """RIHS01 hash of package/msg/Name, which ROS's generators install; empty where they did not."""
    package, kind, name = type_name.split("/")
    for folder in prefixes or os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        path = Path(folder) / "share" / package / kind / f"{name}.json"
        if path.is_file():
            hashes = json.loads(path.read_text(encoding="utf-8")).get("type_hashes", [])
            found = [item["hash_string"] for item in hashes if item["type_name"] == type_name]
            return str(found[0]) if found else ""
    return ""


def _read(type_name: str, folders: list[str]) -> str:
    package, kind, name = type_name.split("/")
    for folder in folders:
        path = Path(folder) / "share" / package / kind / f"{name}.msg"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise RecordingError(
        f"the definition of {type_name} is in none of the sourced ROS prefixes; source env.sh"
    )
