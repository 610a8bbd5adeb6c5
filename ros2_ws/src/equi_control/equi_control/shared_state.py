"""The servo process's state in shared memory: written by one process, read by another.

A counter is odd while the writer is at work; a reader that saw it odd or changing reads again.
Nobody waits for anybody.
"""

from __future__ import annotations

import enum
import multiprocessing
from typing import Any

import numpy as np

_FIELDS = np.dtype(
    [
        ("counter", "i8"),
        ("heartbeat_s", "f8"),
        ("cycles", "i8"),
        ("phase", "i4"),
        ("problem", "U24"),
        ("message", "U400"),
        ("period_s", "f8"),
        ("base_link_from_tcp", "f8", (4, 4)),
        ("twist", "f8", 6),
        ("wrench", "f8", 6),
        ("joints_rad", "f8", 6),
        ("joint_speeds_rad_s", "f8", 6),
        ("state_age_s", "f8"),
        ("robot_mode", "i4"),
        ("safety_mode", "i4"),
        ("commanded", "f8", 4),
        ("commanded_speed_m_s", "f8"),
        ("target_number", "i8"),
        ("finished", "?"),
        ("blocked", "?"),
        ("worst_gap_s", "f8"),
        ("late_cycles", "i8"),
        ("repeated_cycles", "i8"),
        ("guard_trips", "i8"),
    ],
    align=True,
)


class Phase(enum.IntEnum):
    """Where the servo process is in its life."""

    CONNECTING = 0
    IDLE = 1
    STREAMING = 2
    FAULTED = 3
    ENDED = 4


class SharedState:
    """One record in shared memory; picklable into a spawned process."""

    def __init__(self, context: Any = None) -> None:
        maker = context or multiprocessing.get_context("spawn")
        self._memory = maker.RawArray("b", _FIELDS.itemsize)

    @property
    def _record(self) -> Any:
        return np.frombuffer(self._memory, dtype=_FIELDS, count=1)

    def write(self, **values: Any) -> None:
        """Change some fields at once; one writer only."""
        record = self._record
        record["counter"] += 1
        for name, value in values.items():
            record[name] = value
        record["counter"] += 1

    def read(self) -> Any:
        """A consistent copy of the record (numpy void with named fields)."""
        record = self._record
        while True:
            before = int(record["counter"][0])
            copy = record.copy()
            if before % 2 == 0 and int(record["counter"][0]) == before:
                return copy[0]
