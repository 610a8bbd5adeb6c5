# SPDX-License-Identifier: MIT
"""The servo process's state in shared memory: written by one process, read by another.

`ServoState` is the only view of it: a typed, immutable snapshot. A counter is odd while the writer
is at work; a reader that saw it odd or changing reads again. It does so for a short time only: a
writer that died or was stopped in mid-write must not take its reader with it. What it knew before
is then returned, and its age shows in the heartbeat.
"""

from __future__ import annotations

import enum
import multiprocessing
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_READ_LIMIT_S = 0.02
"""A write takes some ten microseconds; a writer that is not done by then has stopped."""
_RETRY_S = 0.0001


class Phase(enum.IntEnum):
    """Where the servo process is in its life."""

    CONNECTING = 0
    IDLE = 1
    STREAMING = 2
    FAULTED = 3
    ENDED = 4


class ServoState(NamedTuple):
    """What the servo process knows and does, as of one cycle."""

    heartbeat_s: float = 0.0
    """Monotonic time of the cycle [s]."""
    cycles: int = 0
    """Cycles so far; 0 before the first contact with the robot."""
    phase: Phase = Phase.CONNECTING
    problem: str = "none"
    """Code of what went wrong: a value of `Problem`, "watchdog" or "internal"."""
    message: str = ""
    period_s: float = 0.0
    """Time between two cycles of the controller [s]."""
    task_from_tcp: FloatArray = np.zeros((4, 4))
    """Measured pose (4, 4) in the task frame (`CellGeometry`)."""
    twist: FloatArray = np.zeros(6)
    """Measured linear [m/s] and angular [rad/s] velocity (6,) of the TCP, in the task frame."""
    wrench: FloatArray = np.zeros(6)
    """Force [N] and torque [N m] (6,) on the TCP, in the task frame."""
    joints_rad: FloatArray = np.zeros(6)
    joint_speeds_rad_s: FloatArray = np.zeros(6)
    state_age_s: float = 0.0
    """Age of the measurement at the heartbeat [s]."""
    robot_mode: int = 0
    safety_mode: int = 0
    commanded: FloatArray = np.zeros(4)
    """Commanded pose (4,): x, y, z [m], yaw [rad] in the task frame; zero while
    nothing is driven."""
    target_number: int = 0
    """Number of the newest target that was taken up."""
    finished: bool = False
    """Whether the arm is commanded to rest."""
    blocked: bool = False
    """Whether contact kept the arm from its newest target."""
    contacts: int = 0
    """Contacts noticed since the process started."""
    speed_slider: float = 1.0
    """The pendant's speed slider, 0 to 1."""
    speed_scaling: float = 1.0
    """What the controller's own limits leave of the speed, 0 to 1."""
    take_over_refusals: int = 0
    """Take-overs refused since the process started; `message` says why."""
    worst_gap_s: float = 0.0
    late_cycles: int = 0
    repeated_cycles: int = 0
    guard_trips: int = 0

    @property
    def position_m(self) -> FloatArray:
        """Measured TCP position (3,) in the task frame [m]."""
        return self.task_from_tcp[:3, 3]

    @property
    def speed_share(self) -> float:
        """Share of the commanded speed at which the controller moves the arm, 0 to 1."""
        return min(max(self.speed_slider * self.speed_scaling, 0.0), 1.0)

    @property
    def has_measured(self) -> bool:
        """Whether the robot has been heard at all."""
        return self.cycles > 0


_COUNTER = np.dtype("i8")
_TYPES = {int: "i8", float: "f8", bool: "?", Phase: "i8"}
_TEXT_LENGTHS = {"problem": 24, "message": 400}


def _record_type() -> np.dtype[np.void]:
    """Memory layout: the counter, then the fields of ServoState by their defaults."""
    fields: list[tuple[Any, ...]] = [("counter", _COUNTER)]
    for name, default in ServoState._field_defaults.items():
        if isinstance(default, np.ndarray):
            fields.append((name, default.dtype, default.shape))
        else:
            length = _TEXT_LENGTHS.get(name)
            fields.append((name, f"U{length}" if length else _TYPES[type(default)]))
    return np.dtype(fields, align=True)


_RECORD = _record_type()


class SharedState:
    """One record in shared memory; picklable into a spawned process."""

    def __init__(self, context: Any = None) -> None:
        maker = context or multiprocessing.get_context("spawn")
        self.__setstate__(maker.RawArray("b", _RECORD.itemsize))

    def __getstate__(self) -> Any:
        # The views of it would be sent as copies.
        return self._memory

    def __setstate__(self, memory: Any) -> None:
        self._memory = memory
        self._record: NDArray[np.void] = np.frombuffer(memory, dtype=_RECORD, count=1)
        self._counter: NDArray[np.int64] = self._record["counter"]
        self._known = ServoState()

    def write(self, state: ServoState) -> None:
        """Publish a whole state; one writer only.

        An exception (a signal, a value that does not fit) may have ended the last write half way:
        its odd counter is kept, and this write completes it.
        """
        self._counter |= 1
        self._record[0] = (self._counter[0], *state)
        self._counter += 1

    def write_end(self, phase: Phase, message: str, problem: str | None = None) -> None:
        """Change the phase and say why, leaving everything else as it was last published."""
        self._counter |= 1
        self._record["phase"], self._record["message"] = phase, message
        if problem is not None:
            self._record["problem"] = problem
        self._counter += 1

    def read(self) -> ServoState:
        """The newest state; if the writer has stopped in mid-write, the newest that was read."""
        deadline_s = time.monotonic() + _READ_LIMIT_S
        while True:
            before = int(self._counter[0])
            copy = self._record.copy()
            if before % 2 == 0 and int(self._counter[0]) == before:
                _, heartbeat_s, cycles, phase, *others = copy[0].item()
                self._known = ServoState(heartbeat_s, cycles, Phase(phase), *others)
                return self._known
            if time.monotonic() > deadline_s:
                return self._known
            time.sleep(_RETRY_S)
