"""ur_rtde's control script, emulated natively: commands in registers, motions in threads.

The client writes a command number and its arguments into input registers and reads the answer from
output registers (1 ready, 2 done). Ordinary commands run once and are acknowledged; real-time
commands are read anew in every cycle and never acknowledged. Two motions at once end the program,
as they do on the controller.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ur_emulator.controller import frames
from ur_emulator.controller.motions import (
    JointMove,
    JointSpeed,
    LinearMove,
    Motion,
    MotionRefusedError,
    Path,
    Servo,
    Stop,
    TargetState,
    ToolSpeed,
)
from ur_emulator.controller.registers import Registers
from ur_emulator.controller.script_text import PathMove

FloatArray = NDArray[np.float64]

_LOG = logging.getLogger(__name__)

READY, DONE = 1, 2
STOP_SCRIPT = 255
SERVO_J, SERVO_L, SPEED_J, SPEED_L = 11, 24, 9, 10
_STEADY_RAD_S = 1e-3
_JOINT_RANGE_RAD = 2 * np.pi + 1e-9


class ProgramError(Exception):
    """The program cannot go on: the controller stops it and shows the message."""


class Host(Protocol):
    """What the program uses of the controller."""

    registers: Registers
    target: TargetState
    payload_kg: float
    payload_cog_m: FloatArray

    def measured_joints(self) -> FloatArray:
        """Measured joints (6,)."""

    def measured_speeds(self) -> FloatArray:
        """Measured joint speeds (6,)."""

    def trigger_protective_stop(self, cause: str) -> None:
        """Raise a protective stop."""

    def is_pose_safe(self, base_from_tcp: FloatArray) -> bool:
        """Whether the safety planes allow a TCP pose."""


class Thread(enum.Enum):
    """What kind of motion runs; at most one."""

    NONE = "none"
    BLOCKING = "a blocking motion"
    ASYNC = "an asynchronous move"
    SERVO = "servoing"
    SPEED = "a speed motion"


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


class ControlProgram:
    """One running upload of the control script."""

    name = "rtde_control"

    def __init__(self, host: Host, offset: int, path: tuple[PathMove, ...]) -> None:
        self._host = host
        self._offset = offset
        self._path_moves = path
        self._progress = AsyncProgress()
        self._motion: Motion | None = None
        self._thread = Thread.NONE
        self._wait_for_clear = False
        self._busy = False
        self.watchdog_period_s: float | None = None
        self.unsupported: list[int] = []
        self._ordinary = self._ordinary_commands()
        # One package carries all three: finished, ready, and (by the controller) playing.
        self._signal_async(-1)
        self._publish(READY)

    @property
    def watchdog_register(self) -> int:
        """Index of the integer register whose writes feed the watchdog."""
        return self._offset

    @property
    def thread(self) -> Thread:
        """The kind of motion that runs."""
        return self._thread

    def cycle(self, period_s: float, speed_scale: float) -> bool:
        """Run one controller cycle; True when the program ends by itself.

        Raises:
            ProgramError: conflicting motions, or a target that cannot be reached.
            JointSpeedError: a servo target that calls for a protective stop.
        """
        command = self._host.registers.input_ints[self._offset]
        if command == STOP_SCRIPT:
            return True
        try:
            if self._wait_for_clear:
                if command == 0:
                    self._wait_for_clear = False
                    self._publish(READY)
            elif not self._busy and command != 0:
                self._dispatch(command)
            self._advance_motion(period_s, speed_scale)
        except (MotionRefusedError, frames.NoSolutionError) as error:
            raise ProgramError(str(error)) from error
        return False

    def _dispatch(self, command: int) -> None:
        if command in _REAL_TIME:
            self._real_time(command)
        elif command in self._ordinary:
            self._ordinary[command]()
            if not self._busy:
                self._finish()
        elif command in _ENDS_PROGRAM:
            raise ProgramError(f"{_ENDS_PROGRAM[command]} is not modelled by this emulator")
        else:
            # The script of version 3 answers "done" to commands that it does not contain.
            if command not in self.unsupported:
                self.unsupported.append(command)
                _LOG.warning("command %d is not modelled; answered as done", command)
            self._finish()

    # Arguments and answers ---------------------------------------------------------------------

    def _int(self, index: int) -> int:
        return self._host.registers.input_ints[self._offset + index]

    def _doubles(self, first: int, count: int) -> FloatArray:
        start = self._offset + first
        return np.array(self._host.registers.input_doubles[start : start + count])

    def _double(self, index: int) -> float:
        return self._host.registers.input_doubles[self._offset + index]

    def _publish(self, state: int) -> None:
        self._host.registers.output_ints[self._offset] = state

    def _answer_int(self, value: int) -> None:
        self._host.registers.output_ints[self._offset + 1] = value

    def _answer_vector(self, values: FloatArray) -> None:
        start = self._offset
        self._host.registers.output_doubles[start : start + 6] = [float(v) for v in values]

    def _signal_async(self, value: int) -> None:
        self._host.registers.output_ints[self._offset + 2] = self._progress.write(value)

    def _finish(self) -> None:
        self._publish(DONE)
        self._wait_for_clear = True
        self._busy = False

    # Motions -----------------------------------------------------------------------------------

    def _advance_motion(self, period_s: float, speed_scale: float) -> None:
        target = self._host.target
        if self._motion is None:
            target.rest()
            return
        before = self._motion.done_moves if isinstance(self._motion, Path) else 0
        ended = self._motion.advance(target, period_s, speed_scale)
        if isinstance(self._motion, Path) and self._motion.done_moves != before:
            self._signal_async(self._motion.done_moves)
        if not ended:
            return
        target.rest()
        self._motion = None
        if self._thread is Thread.ASYNC:
            self._signal_async(-1)
        self._thread = Thread.NONE
        if self._busy:
            self._finish()

    def _start(self, motion: Motion, thread: Thread) -> None:
        if self._thread is not Thread.NONE:
            raise MotionRefusedError(f"{thread.value} was started during {self._thread.value}")
        self._motion, self._thread = motion, thread
        self._busy = thread is Thread.BLOCKING

    def _start_move(self, motion: Motion) -> None:
        if self._int(1):
            self._start(motion, Thread.ASYNC)
            self._signal_async(0)
        else:
            self._start(motion, Thread.BLOCKING)

    def _move_joints(self, goal_rad: FloatArray) -> None:
        self._start_move(JointMove(self._host.target, goal_rad, self._double(6), self._double(7)))

    def _move_line(self, goal: FloatArray) -> None:
        frames.solve(goal, self._host.target.flange_from_tcp, self._host.target.joints_rad)
        self._start_move(LinearMove(self._host.target, goal, self._double(6), self._double(7)))

    def _solve(self, pose: FloatArray) -> FloatArray:
        target = self._host.target
        return frames.solve(frames.matrix_of(pose), target.flange_from_tcp, target.joints_rad)

    def _forward(self, joints_rad: FloatArray) -> FloatArray:
        return frames.base_from_tcp(joints_rad, self._host.target.flange_from_tcp)

    def _stop(self, stop: Stop) -> None:
        """Replace whatever runs by braking."""
        if self._thread is Thread.ASYNC:
            self._signal_async(-1)
        if self._thread is Thread.NONE:
            return
        self._motion, self._thread, self._busy = stop, Thread.BLOCKING, True

    def _stop_line(self) -> None:
        self._refuse_stop_of_a_stream("stopl")
        # The script's synchronous stop is a joint stop.
        self._stop(Stop(self._host.target, joint_deceleration=max(self._double(0), 0.01)))

    def _stop_joints(self) -> None:
        self._refuse_stop_of_a_stream("stopj")
        self._stop(Stop(self._host.target, joint_deceleration=max(self._double(0), 0.01)))

    def _refuse_stop_of_a_stream(self, name: str) -> None:
        if self._thread in (Thread.SERVO, Thread.SPEED):
            raise MotionRefusedError(f"{name} was called during {self._thread.value}")

    def _stop_stream(self, thread: Thread) -> None:
        if self._thread is thread:
            tool_deceleration = max(self._double(0), 0.01)
            self._stop(Stop(self._host.target, tool_deceleration=tool_deceleration))

    def _run_path(self) -> None:
        if not self._path_moves:
            raise MotionRefusedError("a path was started, but the uploaded script holds none")
        self._start_move(Path([_path_maker(move) for move in self._path_moves]))

    # Real-time commands ------------------------------------------------------------------------

    def _real_time(self, command: int) -> None:
        if command in (SERVO_J, SERVO_L):
            wish = self._doubles(0, 6)
            joints = wish if command == SERVO_J else self._solve(wish)
            if self._thread is not Thread.SERVO:
                self._start(Servo(), Thread.SERVO)
            if isinstance(self._motion, Servo):
                self._motion.wish(joints, self._double(9))
        elif command in (SPEED_J, SPEED_L):
            kind: type[JointSpeed] | type[ToolSpeed] = (
                JointSpeed if command == SPEED_J else ToolSpeed
            )
            if not (self._thread is Thread.SPEED and isinstance(self._motion, kind)):
                motion = JointSpeed() if command == SPEED_J else ToolSpeed(self._host.target)
                self._start(motion, Thread.SPEED)
            if isinstance(self._motion, (JointSpeed, ToolSpeed)):
                self._motion.wish(self._doubles(0, 6), self._double(6))
        elif command == 58:
            joints = self._host.measured_joints()
            self._answer_vector(frames.pose_of(frames.base_from_tcp(joints, np.eye(4))))
        elif command == 38:
            self._answer_vector(np.zeros(6))
        elif command == 6:
            raise ProgramError("force mode is not modelled by this emulator")

    # Ordinary commands -------------------------------------------------------------------------

    def _ordinary_commands(self) -> dict[int, Callable[[], None]]:
        host = self._host
        d6 = lambda: self._doubles(0, 6)  # noqa: E731 - a table of one-liners reads best
        return {
            1: lambda: self._move_joints(d6()),
            2: lambda: self._move_joints(self._solve(d6())),
            3: lambda: self._move_line(frames.matrix_of(d6())),
            4: lambda: self._move_line(self._forward(d6())),
            7: lambda: None,
            15: lambda: self._stop_stream(Thread.SPEED),
            16: lambda: self._stop_stream(Thread.SERVO),
            17: self._set_payload,
            29: lambda: setattr(host.target, "flange_from_tcp", frames.matrix_of(d6())),
            30: lambda: self._answer_inverse(self._doubles(6, 6)),
            31: lambda: host.trigger_protective_stop("asked for by the program"),
            33: self._stop_line,
            34: self._stop_joints,
            35: self._set_watchdog,
            36: lambda: self._answer_int(int(host.is_pose_safe(frames.matrix_of(d6())))),
            37: lambda: self._answer_int(int(bool(np.all(np.abs(d6()) <= _JOINT_RANGE_RAD)))),
            39: lambda: self._answer_vector(
                frames.pose_of(frames.matrix_of(d6()) @ frames.matrix_of(self._doubles(6, 6)))
            ),
            40: lambda: self._answer_vector(frames.pose_of(host.target.flange_from_tcp)),
            43: lambda: self._answer_vector(frames.pose_of(self._forward(host.measured_joints()))),
            44: lambda: self._answer_vector(
                frames.pose_of(frames.base_from_tcp(d6(), frames.matrix_of(self._doubles(6, 6))))
            ),
            45: self._run_path,
            46: lambda: self._answer_inverse(host.target.joints_rad),
            47: lambda: self._answer_int(
                int(
                    bool(np.abs(host.measured_speeds()).max() < _STEADY_RAD_S)
                    and self._thread is Thread.NONE
                )
            ),
            59: lambda: None,
            60: lambda: self._answer_has_solution(host.target.joints_rad),
            61: lambda: self._answer_has_solution(self._doubles(6, 6)),
        }

    def _answer_inverse(self, near_rad: FloatArray) -> None:
        pose = frames.matrix_of(self._doubles(0, 6))
        self._answer_vector(frames.solve(pose, self._host.target.flange_from_tcp, near_rad))

    def _answer_has_solution(self, near_rad: FloatArray) -> None:
        try:
            self._answer_inverse(near_rad)
        except frames.NoSolutionError:
            self._answer_int(0)
        else:
            self._answer_int(1)

    def _set_payload(self) -> None:
        self._host.payload_kg = self._double(0)
        self._host.payload_cog_m = self._doubles(1, 3)

    def _set_watchdog(self) -> None:
        frequency_hz = self._double(0)
        # Zero does not disarm: the longest period of the register protocol is meant.
        self.watchdog_period_s = 1.0 / frequency_hz if frequency_hz > 0 else 0.05


# Read anew in every cycle and never acknowledged.
_REAL_TIME = frozenset([6, 9, 10, 11, 24, 25, 26, 27, 38, 58, *range(66, 72)])
_ENDS_PROGRAM = {12: "servoC", 41: "jogging", 52: "freedrive", 13: "teach mode"}


def _path_maker(move: PathMove) -> Callable[[TargetState], Motion]:
    def make(target: TargetState) -> Motion:
        goal = np.array(move.values)
        if move.kind == "movej" and not move.is_pose:
            return JointMove(target, goal, move.speed, move.acceleration)
        pose = (
            frames.matrix_of(goal)
            if move.is_pose
            else frames.base_from_tcp(goal, target.flange_from_tcp)
        )
        if move.kind == "movej":
            joints = frames.solve(pose, target.flange_from_tcp, target.joints_rad)
            return JointMove(target, joints, move.speed, move.acceleration)
        return LinearMove(target, pose, move.speed, move.acceleration)

    return make
