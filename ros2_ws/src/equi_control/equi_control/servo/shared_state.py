"""The servo process's state in shared memory: written by one process, read by another.

A counter is odd while the writer is at work; a reader that saw it odd or changing reads again. It
does so for a short time only: a writer that died or was stopped in mid-write must not take its
reader with it. What it knew before is then returned, and its age shows in the heartbeat.
"""

from __future__ import annotations

import enum
import multiprocessing
import time
from typing import Any

import numpy as np

_READ_LIMIT_S = 0.02
"""A write takes some ten microseconds; a writer that is not done by then has stopped."""
_RETRY_S = 0.0001

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
        self._known: Any = np.zeros(1, dtype=_FIELDS)[0]

    @property
    def _record(self) -> Any:
        return np.frombuffer(self._memory, dtype=_FIELDS, count=1)

    def write(self, **values: Any) -> None:
        """Change some fields at once; one writer only.

        An exception (a signal, a value that does not fit) may have ended the last write half way:
        its odd counter is kept, and this write completes it.
        """
        record = self._record
        record["counter"] |= 1
        for name, value in values.items():
            record[name] = value
        record["counter"] += 1

    def read(self) -> Any:
        """A consistent copy of the record (numpy void with named fields).

        The newest one; or, if the writer has stopped in mid-write, the newest that was read.
        """
        record = self._record
        deadline_s = time.monotonic() + _READ_LIMIT_S
        while True:
            before = int(record["counter"][0])
            copy = record.copy()
            if before % 2 == 0 and int(record["counter"][0]) == before:
                self._known = copy[0]
                return self._known
            if time.monotonic() > deadline_s:
                return self._known
            time.sleep(_RETRY_S)
