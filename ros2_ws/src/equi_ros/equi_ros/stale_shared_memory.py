# SPDX-License-Identifier: MIT
"""Shared memory that killed processes left behind: found, and removed.

    python -m equi_ros.stale_shared_memory            # list
    python -m equi_ros.stale_shared_memory --remove

Fast DDS gives every process a segment in /dev/shm (`fastrtps_<id>`, 70 MB with our profile) and
holds a lock on `fastrtps_<id>_el` for as long as the process lives; a process that is killed cannot
remove its own. A segment is stale if that lock is free, no process that can be seen maps it, and it
is not brand new. Ports of Fast DDS (`fastrtps_port<number>`) are small and shared, so they are left
to it, but for half-made ones: a process that was killed while it made a port leaves one that
everybody who comes later waits for, for ever and deaf to signals. The scene of a simulated cell
(`equi_cell_<address>_<pid>.scene`) is stale when its process is gone.

Standard library only.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
_SEGMENT = re.compile(r"fastrtps_[0-9a-f]{16}")
_PORT = re.compile(r"fastrtps_port[0-9]+")
_SCENE = re.compile(r"equi_cell_[0-9_]+_(\d+)\.scene")
_LOCK_SUFFIX = "_el"
_NEWEST_S = 10.0
"""A younger segment may be of a process that is just taking its lock [s]."""
_NEWEST_PORT_S = 3.0
"""To make a port takes microseconds; a younger one may be of a process that has to wait [s]."""
_MADE = 2
"""State of a managed segment of Boost.Interprocess, its first word: 0 and 1 until it is made."""


@dataclass(frozen=True)
class StaleSegment:
    """One leftover: its files, and the memory that they take."""

    paths: tuple[Path, ...]
    n_bytes: int

    @property
    def name(self) -> str:
        """Name of the segment."""
        return self.paths[0].name


def stale_segments(folder: Path = SHARED_MEMORY) -> list[StaleSegment]:
    """What nobody uses any more; only files of this user are looked at."""
    found = []
    for path in sorted(folder.glob("*")):
        with contextlib.suppress(OSError):
            status = path.stat()
            newest_s = _NEWEST_PORT_S if _PORT.fullmatch(path.name) else _NEWEST_S
            if status.st_uid != os.getuid() or time.time() - status.st_mtime < newest_s:
                continue
            paths = _stale_files(path)
            if paths:
                # Sparse files: what counts is the memory that they really take.
                found.append(StaleSegment(paths, sum(p.stat().st_blocks * 512 for p in paths)))
    if not found:
        return []
    mapped = _mapped_names(folder)
    return [item for item in found if item.name not in mapped or _PORT.fullmatch(item.name)]


def remove_stale(folder: Path = SHARED_MEMORY) -> tuple[int, int]:
    """Remove what nobody uses; returns how many segments, and how many bytes they took."""
    segments = stale_segments(folder)
    for segment in segments:
        for path in segment.paths:
            path.unlink(missing_ok=True)
    return len(segments), sum(segment.n_bytes for segment in segments)


def _stale_files(path: Path) -> tuple[Path, ...]:
    """The files of a leftover whose first one this is; empty if it is none."""
    if _SEGMENT.fullmatch(path.name):
        lock = path.with_name(path.name + _LOCK_SUFFIX)
        return (path, lock) if lock.exists() and _is_free(lock) else ()
    if _PORT.fullmatch(path.name):
        return (path,) if _is_half_made(path) else ()
    scene = _SCENE.fullmatch(path.name)
    if scene is not None and not Path("/proc", scene[1]).exists():
        return (path,)
    return ()


def _is_half_made(port: Path) -> bool:
    with port.open("rb") as file:
        word = file.read(4)
    return word == b"" or (len(word) == 4 and int.from_bytes(word, sys.byteorder) < _MADE)


def _is_free(lock: Path) -> bool:
    """Whether nobody holds a lock; it is given back at once."""
    handle = os.open(lock, os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _mapped_names(folder: Path) -> set[str]:
    """Names of the files in a folder that some process maps."""
    names = set()
    prefix = f"{folder}/"
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            for line in maps.read_text(errors="replace").splitlines():
                if prefix in line:
                    names.add(line.split(prefix, 1)[1].split()[0])
    return names


def main(arguments: list[str] | None = None) -> int:
    """Entry point; 1 if something stale was found and not removed."""
    parser = argparse.ArgumentParser(description="Shared memory that killed processes left behind.")
    parser.add_argument("--remove", action="store_true", help="remove it")
    parsed = parser.parse_args(arguments)
    segments = stale_segments()
    total_mb = sum(segment.n_bytes for segment in segments) / 1e6
    names = ", ".join(segment.name for segment in segments)
    sys.stdout.write(f"{len(segments)} stale segments, {total_mb:.0f} MB {names}".rstrip() + "\n")
    if parsed.remove:
        remove_stale()
        return 0
    return 1 if segments else 0


if __name__ == "__main__":
    sys.exit(main())
