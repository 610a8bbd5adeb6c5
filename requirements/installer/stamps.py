# SPDX-License-Identifier: MIT
"""Remembering what is done: one stamp per finished step, keyed by a hash of the step's inputs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

RUNNING = "running.json"


def digest(parts: Iterable[str | bytes | Path]) -> str:
    """Hash of texts and of the contents of files; a file that does not exist counts as absent."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            part = part.read_bytes() if part.is_file() else b"(absent)"
        data = part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "big"))
        total.update(data)
    return total.hexdigest()


def write_atomically(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON so that a reader sees the old file or the new one, never a half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with temporary.open("w", encoding="utf-8") as stream:
        json.dump(dict(content), stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


def read(path: Path) -> dict[str, Any]:
    """Content of a stamp; empty if there is none or it cannot be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def end_leftovers(marker: Path) -> list[int]:
    """End the processes that an interrupted run left behind, and return their ids.

    A run that was killed cannot end its own pip or compiler; two of them in one environment would
    spoil it. Its processes carry a token in their environment, so nothing else can be hit.
    """
    token = read(marker).get("token")
    if not token:
        return []
    needle = f"EQUI_SETUP_RUN={token}".encode()
    ended = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if needle in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)
                ended.append(int(entry.name))
    return ended
