# SPDX-License-Identifier: MIT
"""ur_rtde's control script, emulated natively: commands in registers, motions in threads.

Ordinary commands run once and are acknowledged; real-time commands are read anew in every cycle
and never acknowledged. Two motions at once end the program, as they do on the controller.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ur_emulator.controller import frames
from ur_emulator.controller.command_registers import (
    DONE,
    READY,
    REAL_TIME_COMMANDS,
    Command,
    CommandRegisters,
    NotFiniteError,
)
from ur_emulator.controller.host import Host
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
from ur_emulator.controller.queries import Queries
from ur_emulator.controller.script_text import PathMove
from ur_emulator.mechanics.kinematics import NoSolutionError

FloatArray = NDArray[np.float64]

_LOG = logging.getLogger(__name__)

_STEADY_RAD_S = 1e-3
_LEAST_DECELERATION = 0.01
_NOT_EMULATED = {
    Command.FORCE_MODE: "force mode",
    Command.SERVO_C: "servoC",
    Command.JOG: "jogging",
    Command.FREEDRIVE: "freedrive",
    Command.TEACH_MODE: "teach mode",
}


class ProgramError(Exception):
    """The program cannot go on: the controller stops it and shows the message."""


class Thread(enum.Enum):
    """What kind of motion runs; at most one."""

    NONE = "none"
    BLOCKING = "a blocking motion"
    ASYNC = "an asynchronous move"
    SERVO = "servoing"
    SPEED = "a speed motion"


class ControlProgram:
    """One running upload of the control script."""

    name = "rtde_control"

    def __init__(self, host: Host, offset: int, path: tuple[PathMove, ...]) -> None:
        self._host = host
        self._registers = CommandRegisters(host.registers, offset)
        self._path_moves = path
        self._motion: Motion | None = None
        self._thread = Thread.NONE
        self._wait_for_clear = False
        self._busy = False
        self.watchdog_period_s: float | None = None
        self._unknown: set[int] = set()
        self._commands = {**Queries(host, self._registers).table(), **self._motion_commands()}
        self._thread_begins_in_s = 0.0
        self._begins_in_s = host.profile.script_late_s
        # One package carries all three: finished, ready, and (by the controller) playing.
        self._registers.signal_async(-1)
        self._registers.publish(0 if self._begins_in_s > 0 else READY)

    @property
    def watchdog_register(self) -> int:
        """Index of the integer register whose writes feed the watchdog."""
        return self._registers.offset

    @property
    def thread(self) -> Thread:
        """The kind of motion that runs."""
        return self._thread

    def cycle(self, period_s: float, move_scale: float, stream_scale: float) -> bool:
        """Run one controller cycle; True when the program ends by itself.

        Args:
            period_s: of the controller.
            move_scale: share of their speed at which moves run.
            stream_scale: the same for servo and speed streams.

        Raises:
            ProgramError: conflicting motions, or a target that cannot be reached.
            JointSpeedError: a servo target that calls for a protective stop.
        """
        command = self._registers.command
        if command == Command.STOP_SCRIPT:
            return True
        if self._begins_in_s > 0:
            self._begins_in_s -= period_s
            if self._begins_in_s <= 0:
                self._registers.publish(READY)
            return False
        stream = isinstance(self._motion, (Servo, JointSpeed, ToolSpeed))
        try:
            if self._wait_for_clear:
                if command == Command.NONE:
                    self._wait_for_clear = False
                    self._registers.publish(READY)
            elif not self._busy and command != Command.NONE:
                self._dispatch(command)
            self._advance_motion(period_s, stream_scale if stream else move_scale)
        except (MotionRefusedError, NoSolutionError, NotFiniteError) as error:
            raise ProgramError(str(error)) from error
        return False

    def _dispatch(self, command: int) -> None:
        if command in _NOT_EMULATED:
            raise ProgramError(f"{_NOT_EMULATED[Command(command)]} is not emulated")
        if command in self._commands:
            self._commands[command]()
        elif command not in REAL_TIME_COMMANDS and command not in self._unknown:
            # The script of version 3 answers "done" to commands that it does not contain.
            self._unknown.add(command)
            _LOG.warning("command %d is not emulated; answered as done", command)
        if command not in REAL_TIME_COMMANDS and not self._busy:
            self._finish()

    def _finish(self) -> None:
        self._registers.publish(DONE)
        self._wait_for_clear = True
        self._busy = False

    def _motion_commands(self) -> dict[int, Callable[[], None]]:
        host, vector = self._host, self._registers.vector
        return {
            Command.MOVE_J: lambda: self._move_joints(vector()),
            Command.MOVE_J_IK: lambda: self._move_joints(self._solve(vector())),
            Command.MOVE_L: lambda: self._move_line(frames.matrix_of(vector())),
            Command.MOVE_L_FK: lambda: self._move_line(
                host.target.kinematics.base_from_tcp(vector(), host.target.flange_from_tcp)
            ),
            Command.MOVE_PATH: self._run_path,
            Command.SERVO_J: lambda: self._servo(vector()),
            Command.SERVO_L: lambda: self._servo(self._solve(vector())),
            Command.SPEED_J: self._joint_speed,
            Command.SPEED_L: self._tool_speed,
            Command.SERVO_STOP: lambda: self._stop_stream(Thread.SERVO),
            Command.SPEED_STOP: lambda: self._stop_stream(Thread.SPEED),
            # The script's synchronous stopL is a joint stop, too.
            Command.STOP_L: lambda: self._stop_move("stopl"),
            Command.STOP_J: lambda: self._stop_move("stopj"),
            Command.FORCE_MODE_STOP: lambda: None,
            Command.PROTECTIVE_STOP: lambda: host.trigger_protective_stop(
                "requested by the program"
            ),
            Command.SET_WATCHDOG: self._set_watchdog,
            Command.IS_STEADY: lambda: self._registers.answer_int(
                bool(np.abs(host.measured_speeds()).max() < _STEADY_RAD_S)
                and self._thread is Thread.NONE
            ),
        }

    # Moves ---------------------------------------------------------------------------------------

    def _advance_motion(self, period_s: float, speed_scale: float) -> None:
        target = self._host.target
        if self._motion is None or self._thread_begins_in_s > 0:
            self._thread_begins_in_s -= period_s
            target.rest()
            return
        before = self._motion.done_moves if isinstance(self._motion, Path) else 0
        ended = self._motion.advance(target, period_s, speed_scale)
        if isinstance(self._motion, Path) and self._motion.done_moves != before:
            self._registers.signal_async(self._motion.done_moves)
        if not ended:
            return
        target.rest()
        self._motion = None
        if self._thread is Thread.ASYNC:
            self._registers.signal_async(-1)
        self._thread = Thread.NONE
        if self._busy:
            self._finish()

    def _start(self, motion: Motion, thread: Thread) -> None:
        if self._thread is not Thread.NONE:
            raise MotionRefusedError(f"{thread.value} was started during {self._thread.value}")
        self._motion, self._thread = motion, thread
        self._busy = thread is Thread.BLOCKING

    def _start_move(self, motion: Motion) -> None:
        if self._registers.int_argument(1):
            self._start(motion, Thread.ASYNC)
            self._registers.signal_async(0)
        else:
            self._start(motion, Thread.BLOCKING)

    def _move_joints(self, goal_rad: FloatArray) -> None:
        speed, acceleration = self._registers.vector(6, 2)
        self._start_move(JointMove(self._host.target, goal_rad, speed, acceleration))

    def _move_line(self, goal: FloatArray) -> None:
        target = self._host.target
        target.solve(goal)
        speed, acceleration = self._registers.vector(6, 2)
        self._start_move(LinearMove(target, goal, speed, acceleration))

    def _run_path(self) -> None:
        if not self._path_moves:
            raise MotionRefusedError("a path was started, but the uploaded script holds none")
        self._start_move(Path([_path_maker(move) for move in self._path_moves]))

    def _solve(self, pose: FloatArray) -> FloatArray:
        return self._host.target.solve(frames.matrix_of(pose))

    # Streams -------------------------------------------------------------------------------------

    def _servo(self, joints_rad: FloatArray) -> None:
        if self._thread is not Thread.SERVO:
            profile = self._host.profile
            self._start(Servo(profile.servo_lag_factor, profile.servo_dead_time_s), Thread.SERVO)
            # A thread of the script begins to move later than it is started.
            self._thread_begins_in_s = profile.script_late_s
        if isinstance(self._motion, Servo):
            self._motion.set_target(joints_rad, self._registers.argument(9))

    def _joint_speed(self) -> None:
        if not isinstance(self._motion, JointSpeed):
            self._start(JointSpeed(), Thread.SPEED)
        if isinstance(self._motion, JointSpeed):
            self._motion.set_target(self._registers.vector(), self._registers.argument(6))

    def _tool_speed(self) -> None:
        if not isinstance(self._motion, ToolSpeed):
            self._start(ToolSpeed(self._host.target), Thread.SPEED)
        if isinstance(self._motion, ToolSpeed):
            self._motion.set_target(self._registers.vector(), self._registers.argument(6))

    # Stops ---------------------------------------------------------------------------------------

    def _stop(self, stop: Stop) -> None:
        """Replace whatever runs by a deceleration."""
        if self._thread is Thread.ASYNC:
            self._registers.signal_async(-1)
        if self._thread is Thread.NONE:
            return
        self._motion, self._thread, self._busy = stop, Thread.BLOCKING, True

    def _stop_move(self, name: str) -> None:
        if self._thread in (Thread.SERVO, Thread.SPEED):
            raise MotionRefusedError(f"{name} was called during {self._thread.value}")
        self._stop(Stop(self._host.target, joint_deceleration=self._deceleration()))

    def _stop_stream(self, thread: Thread) -> None:
        if self._thread is thread:
            self._stop(Stop(self._host.target, tool_deceleration=self._deceleration()))

    def _deceleration(self) -> float:
        return max(self._registers.argument(0), _LEAST_DECELERATION)

    def _set_watchdog(self) -> None:
        frequency_hz = self._registers.argument(0)
        # Zero does not disarm: the longest period of the register protocol is meant.
        self.watchdog_period_s = 1.0 / frequency_hz if frequency_hz > 0 else 0.05


def _path_maker(move: PathMove) -> Callable[[TargetState], Motion]:
    def make(target: TargetState) -> Motion:
        goal = np.array(move.values)
        if move.kind == "movej" and not move.is_pose:
            return JointMove(target, goal, move.speed, move.acceleration)
        pose = (
            frames.matrix_of(goal)
            if move.is_pose
            else target.kinematics.base_from_tcp(goal, target.flange_from_tcp)
        )
        if move.kind == "movej":
            joints = target.solve(pose)
            return JointMove(target, joints, move.speed, move.acceleration)
        return LinearMove(target, pose, move.speed, move.acceleration)

    return make
