# SPDX-License-Identifier: MIT
"""The register protocol of ur_rtde's control script: commands, arguments, answers.

The client writes a command number and its arguments into input registers; the script answers in
output registers: 1 ready, 2 done. All indices are relative to the script's register offset.
"""

from __future__ import annotations

import enum

import numpy as np
from numpy.typing import NDArray

from ur_emulator.controller.registers import Registers

FloatArray = NDArray[np.float64]

READY, DONE = 1, 2
# No length, angle, speed or time of a command is anywhere near this.
_LARGEST_ARGUMENT = 1e6


class NotFiniteError(ValueError):
    """An argument that is no number, or beyond all reason."""


class Command(enum.IntEnum):
    """Command numbers that the emulator knows."""

    NONE = 0
    MOVE_J = 1
    MOVE_J_IK = 2
    MOVE_L = 3
    MOVE_L_FK = 4
    FORCE_MODE = 6
    FORCE_MODE_STOP = 7
    ZERO_FT_SENSOR = 8
    SPEED_J = 9
    SPEED_L = 10
    SERVO_J = 11
    SERVO_C = 12
    TEACH_MODE = 13
    SPEED_STOP = 15
    SERVO_STOP = 16
    SET_PAYLOAD = 17
    SERVO_L = 24
    SET_TCP = 29
    INVERSE_KINEMATICS_NEAR = 30
    PROTECTIVE_STOP = 31
    STOP_L = 33
    STOP_J = 34
    SET_WATCHDOG = 35
    IS_POSE_WITHIN_LIMITS = 36
    ARE_JOINTS_WITHIN_LIMITS = 37
    JOINT_TORQUES = 38
    POSE_TRANS = 39
    TCP_OFFSET = 40
    JOG = 41
    FORWARD_KINEMATICS_HERE = 43
    FORWARD_KINEMATICS = 44
    MOVE_PATH = 45
    INVERSE_KINEMATICS = 46
    IS_STEADY = 47
    FREEDRIVE = 52
    FLANGE_POSE = 58
    SET_GRAVITY = 59
    HAS_INVERSE_KINEMATICS = 60
    HAS_INVERSE_KINEMATICS_NEAR = 61
    STOP_SCRIPT = 255


# Read anew in every cycle and never acknowledged.
REAL_TIME_COMMANDS = frozenset([6, 9, 10, 11, 24, 25, 26, 27, 38, 58, *range(66, 72)])


class AsyncProgress:
    """The register in which asynchronous moves report: id, write counter, running, progress."""

    def __init__(self) -> None:
        self._id = 0
        self._writes = 0
        self._running = False
        self._progress = 0

    def write(self, value: int) -> int:
        """Start (0), report (positive) or end (negative); returns the register's content."""
        if value == 0:
            self._id = (self._id + 1) % 128
            self._running, self._progress = True, 0
        elif value < 0:
            self._running, self._progress = False, 0
        else:
            self._progress = value & 0x7FFF
        self._writes = (self._writes + 1) % 128
        return self._id << 24 | self._writes << 16 | int(self._running) << 15 | self._progress


class CommandRegisters:
    """One script's window on the controller's registers."""

    def __init__(self, registers: Registers, offset: int) -> None:
        self._registers = registers
        self.offset = offset
        self._progress = AsyncProgress()

    @property
    def command(self) -> int:
        """The command number that the client has written."""
        return self.int_argument(0)

    def int_argument(self, index: int) -> int:
        """One integer argument; index 1 is the first after the command."""
        return self._registers.input_ints[self.offset + index]

    def argument(self, index: int) -> float:
        """One number; raises NotFiniteError."""
        return float(self.vector(index, 1)[0])

    def vector(self, first: int = 0, count: int = 6) -> FloatArray:
        """Some numbers in a row, (count,); raises NotFiniteError."""
        start = self.offset + first
        values = self._registers.input_doubles[start : start + count]
        # Written this way round, because every comparison with NaN is false.
        if not all(abs(value) <= _LARGEST_ARGUMENT for value in values):
            raise NotFiniteError(
                f"command {self.command} has the arguments {values}; they must be finite numbers"
            )
        return np.array(values)

    def publish(self, state: int) -> None:
        """Show READY or DONE."""
        self._registers.output_ints[self.offset] = state

    def answer_int(self, value: int) -> None:
        """Integer or boolean result."""
        self._registers.output_ints[self.offset + 1] = int(value)

    def answer_vector(self, values: FloatArray) -> None:
        """Result of six numbers."""
        start = self.offset
        self._registers.output_doubles[start : start + 6] = [float(value) for value in values]

    def signal_async(self, value: int) -> None:
        """Report on an asynchronous move: 0 starts, positive is progress, negative ends."""
        self._registers.output_ints[self.offset + 2] = self._progress.write(value)
