# SPDX-License-Identifier: MIT
"""The emulator's own recording: one row per controller cycle, taken at the controller.

What a driver believes it sent proves nothing; what arrived here, and how the arm moved, does.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FIELDS = np.dtype(
    [
        ("monotonic_s", "f8"),
        ("timestamp_s", "f8"),
        ("runtime_state", "i4"),
        ("safety_mode", "i4"),
        ("command", "i4"),
        ("since_write_s", "f8"),
        ("commanded", "f8", 6),
        ("target_q", "f8", 6),
        ("actual_q", "f8", 6),
        ("target_tcp", "f8", 6),
        ("actual_tcp", "f8", 6),
        ("actual_speed", "f8", 6),
    ]
)
"""`commanded` holds the first six argument registers: for servoL the commanded pose. Poses are
in the controller's base; `since_write_s` is the age of the last write to the command register."""


class Recorder:
    """Fixed memory: the newest `capacity` cycles since `start`."""

    def __init__(self, capacity: int = 200_000) -> None:
        self._rows = np.zeros(capacity, dtype=FIELDS)
        self._count = 0
        self.active = False

    def start(self) -> None:
        """Forget the old rows and record from the next cycle on."""
        self._count = 0
        self.active = True

    def add(self, row: tuple[object, ...]) -> None:
        """Append one cycle."""
        if self.active:
            self._rows[self._count % len(self._rows)] = row
            self._count += 1

    def rows(self) -> NDArray[np.void]:
        """Recorded cycles in order."""
        size = len(self._rows)
        if self._count <= size:
            return self._rows[: self._count].copy()
        return np.roll(self._rows, -(self._count % size))

    def save(self, path: Path) -> int:
        """Write the rows as .npy; returns how many."""
        rows = self.rows()
        np.save(path, rows)
        return len(rows)
