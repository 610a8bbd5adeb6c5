# SPDX-License-Identifier: MIT
"""What the cameras see of the physics: the current shapes, in a small memory-mapped file.

The physics process must never wait for a camera, and a camera must never see half a step. So the
writer copies the shape table (a few kilobytes) into a file that both map into memory, with a
counter that is odd while it writes; a reader that saw the counter change reads again. No socket,
no lock: a dead or slow camera costs the 125 Hz loop nothing.
"""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equi_rl.sim.raycast import ShapeTable

MAX_SHAPES = 256
_MAGIC = 0x45515543454C4C31  # 'EQUCELL1'

_HEADER = np.dtype(
    [("magic", "<u8"), ("sequence", "<u8"), ("stamp_ns", "<i8"), ("count", "<u8")], align=True
)
_SHAPE = np.dtype(
    [
        ("kind", "<i8"),
        ("body", "<i8"),
        ("size_m", "<f8", (3,)),
        ("rotation", "<f8", (3, 3)),
        ("position_m", "<f8", (3,)),
        ("colour", "<f8", (3,)),
    ],
    align=True,
)
FILE_BYTES = _HEADER.itemsize + MAX_SHAPES * _SHAPE.itemsize


class SnapshotError(RuntimeError):
    """There is no scene to read, or it does not fit; says what to do."""


class SceneWriter:
    """Publishes shape tables; one writer per file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        # A new file instead of an overwritten one: readers of a previous run keep their old map.
        partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
        partial.write_bytes(bytes(FILE_BYTES))
        os.replace(partial, path)
        self._map = _open(path, writable=True)
        self._header, self._shapes = _views(self._map)
        self._header["magic"] = _MAGIC

    def publish(self, table: ShapeTable, stamp_ns: int | None = None) -> None:
        """Make `table` visible to the cameras; `stamp_ns` is the wall clock time it is true for."""
        count = len(table)
        if count > MAX_SHAPES:
            raise SnapshotError(f"{count} shapes; a snapshot holds {MAX_SHAPES}")
        sequence = int(self._header["sequence"])
        self._header["sequence"] = sequence + 1
        rows = self._shapes[:count]
        for name in _SHAPE.names or ():
            rows[name] = getattr(table, name)
        self._header["count"] = count
        self._header["stamp_ns"] = time.time_ns() if stamp_ns is None else stamp_ns
        self._header["sequence"] = sequence + 2

    def close(self) -> None:
        """Remove the file; readers then report that the cell is gone."""
        self.path.unlink(missing_ok=True)


class SceneReader:
    """Reads the newest table, reopening the file if the cell was restarted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._map: mmap.mmap | None = None
        self._inode = -1

    def read(self, attempts: int = 1000) -> tuple[ShapeTable, int]:
        """The newest shape table and its time [ns, wall clock]."""
        self._reopen_if_replaced()
        if self._map is None:
            raise SnapshotError(f"no scene at {self.path}; start the simulated cell first")
        header, shapes = _views(self._map)
        for _ in range(attempts):
            before = int(header["sequence"])
            if before % 2 == 0 and before > 0:
                count, stamp_ns = int(header["count"]), int(header["stamp_ns"])
                rows = shapes[:count].copy()
                if int(header["sequence"]) == before:
                    return _table(rows), stamp_ns
            time.sleep(0)
        raise SnapshotError(f"the scene at {self.path} was never complete; restart the cell")

    def _reopen_if_replaced(self) -> None:
        try:
            inode = self.path.stat().st_ino
        except FileNotFoundError:
            self._map = None
            return
        if self._map is None or inode != self._inode:
            self._map = _open(self.path, writable=False)
            self._inode = inode
            header, _ = _views(self._map)
            if int(header["magic"]) != _MAGIC:
                self._map = None
                raise SnapshotError(f"{self.path} is not a scene of the simulated cell")


def _open(path: Path, writable: bool) -> mmap.mmap:
    with path.open("r+b" if writable else "rb") as file:
        if os.fstat(file.fileno()).st_size != FILE_BYTES:
            raise SnapshotError(f"{path} is not a scene of the simulated cell")
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        return mmap.mmap(file.fileno(), FILE_BYTES, access=access)


def _views(mapped: mmap.mmap) -> tuple[Any, NDArray[Any]]:
    header = np.frombuffer(mapped, dtype=_HEADER, count=1)[0:1].reshape(())
    return header, np.frombuffer(mapped, dtype=_SHAPE, count=MAX_SHAPES, offset=_HEADER.itemsize)


def _table(rows: NDArray[Any]) -> ShapeTable:
    return ShapeTable(
        kind=np.ascontiguousarray(rows["kind"]),
        size_m=np.ascontiguousarray(rows["size_m"]),
        rotation=np.ascontiguousarray(rows["rotation"]),
        position_m=np.ascontiguousarray(rows["position_m"]),
        colour=np.ascontiguousarray(rows["colour"]),
        body=np.ascontiguousarray(rows["body"]),
    )
