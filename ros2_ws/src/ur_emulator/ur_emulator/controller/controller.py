# SPDX-License-Identifier: MIT
"""The controller itself: one `cycle` per period joins program, safety, motion and arm."""

from __future__ import annotations

import logging
import time

import numpy as np
from numpy.typing import NDArray

from ur_emulator.arms import Arm
from ur_emulator.constants import RobotModel, RuntimeState, SafetyMode
from ur_emulator.controller.control_program import ControlProgram, ProgramError, Thread
from ur_emulator.controller.motions import (
    JointSpeedError,
    LinearMove,
    Motion,
    MotionRefusedError,
    Stop,
    TargetState,
)
from ur_emulator.controller.output_variables import row_of
from ur_emulator.controller.recorder import Recorder
from ur_emulator.controller.registers import Registers
from ur_emulator.controller.safety_system import Delays, SafetySystem
from ur_emulator.controller.script_text import ScriptError, Upload
from ur_emulator.controller.speed_scaling import SpeedScaling
from ur_emulator.controller.supervision import Reaction, Supervision
from ur_emulator.mechanics.force_estimate import ForceEstimate
from ur_emulator.mechanics.kinematics import NoSolutionError
from ur_emulator.profile import LENIENT, PROTECTIVE_STOP_RAD_S2, Profile

FloatArray = NDArray[np.float64]

_LOG = logging.getLogger(__name__)


class Controller:
    """State of one emulated robot; knows nothing of sockets."""

    def __init__(
        self, model: RobotModel, arm: Arm, delays: Delays, profile: Profile = LENIENT
    ) -> None:
        self.model = model
        self.profile = profile
        self.force = ForceEstimate(profile)
        self._stop_deceleration = np.array(PROTECTIVE_STOP_RAD_S2) * profile.protective_stop_scale
        self.arm = arm
        self.period_s = 1.0 / model.rate_hz
        self.recorder = Recorder()
        self.events: list[str] = []
        self.remote_control = profile.remote_control or not model.is_e_series
        """Whether programs and commands from the network are taken; always on a CB3."""
        self._delays = delays
        self.boot(powered=True)

    def boot(self, *, powered: bool) -> None:
        """Start from scratch, as after switching on; the arm stays where it is."""
        self.registers = Registers()
        self.registers.speed_slider = self.profile.speed_slider
        self.safety = SafetySystem(self._delays, time.monotonic(), powered=powered)
        self.target = TargetState(
            self.arm.joints_rad.copy(),
            self.arm.speeds_rad_s.copy(),
            kinematics=self.arm.kinematics,
        )
        self._supervision = Supervision(self.arm, self.profile)
        self.payload_kg = 0.0
        self.payload_cog_m = np.zeros(3)
        self.runtime_state = RuntimeState.STOPPED
        self.timestamp_s = 0.0
        self.message: str | None = None
        self._program: ControlProgram | None = None
        # An arm that loses its power while it moves is stopped by its brakes.
        self._idle_motion: Motion | None = self._stop(self._stop_deceleration)
        self._upload: tuple[float, Upload] | None = None

    # What the program uses (`Host`) -------------------------------------------------------------

    def measured_joints(self) -> FloatArray:
        """Measured joints (6,)."""
        return self.arm.joints_rad

    def measured_speeds(self) -> FloatArray:
        """Measured joint speeds (6,)."""
        return self.arm.speeds_rad_s

    def trigger_protective_stop(self, cause: str) -> None:
        """Decelerate, pause the program, latch."""
        self._event(f"protective stop: {cause}")
        self.safety.protective_stop(time.monotonic())
        if self.runtime_state is RuntimeState.PLAYING:
            self.runtime_state = RuntimeState.PAUSED
        self._idle_motion = self._stop(self._stop_deceleration)

    def zero_force(self) -> None:
        """Tare the force estimate; a CB3 arm has no sensor to tare."""
        if self.model.is_e_series:
            self.force.zero()

    def is_pose_safe(self, base_from_tcp: FloatArray) -> bool:
        """Reachable, and above the plane of the table."""
        if base_from_tcp[2, 3] < 0.0:
            return False
        try:
            self.target.solve(base_from_tcp)
        except NoSolutionError:
            return False
        return True

    # What servers and operators use -------------------------------------------------------------

    def emergency_stop(self) -> None:
        """Emergency stop pressed: decelerate, stop the program, cut power."""
        self._event("emergency stop")
        self.safety.emergency_stop(time.monotonic())
        self._end_program("emergency stop", self._stop_deceleration)

    def release_emergency_stop(self) -> bool:
        """Emergency stop released; the arm stays without power."""
        return self.safety.release_emergency_stop(time.monotonic())

    def upload(self, upload: Upload) -> None:
        """Take a program text; it replaces a running program after the start delay."""
        if not self.remote_control:
            self._event(f"program '{upload.name}' refused: the robot is in local control")
            return
        self._upload = (time.monotonic() + self.profile.program_start_s, upload)

    def stop_program(self) -> None:
        """Stop whatever runs, as the dashboard's "stop" does."""
        self._upload = None
        if self.runtime_state is not RuntimeState.STOPPED:
            self._end_program("stopped by the dashboard", self.profile.program_end_rad_s2)

    def pause_program(self) -> bool:
        """Pause a running program; False if none runs."""
        if self.runtime_state is not RuntimeState.PLAYING:
            return False
        self.runtime_state = RuntimeState.PAUSED
        self._idle_motion = self._stop(self.profile.program_end_rad_s2)
        return True

    def resume_program(self) -> bool:
        """Resume a paused program where it was; False if there is none."""
        if self.runtime_state is RuntimeState.PAUSED and self.safety.normal and self._program:
            if self.profile.resume_keeps_target:
                register = self._program.watchdog_register
                self.registers.input_int_written_s[register] = time.monotonic()
            self.runtime_state = RuntimeState.PLAYING
            self._idle_motion = None
            return True
        return False

    def scaling(self) -> SpeedScaling:
        """How the slider and reduced mode slow motions now."""
        reduced = self.safety.safety_mode is SafetyMode.REDUCED
        return SpeedScaling.of(self.profile, self.registers.speed_slider, reduced)

    @property
    def program_name(self) -> str:
        """Name of the program that runs or is paused; empty if none."""
        return self._program.name if self._program is not None else ""

    @property
    def servoing(self) -> bool:
        """Whether the program streams servo targets."""
        return self._program is not None and self._program.thread is Thread.SERVO

    def move_in_freedrive(self, joints_rad: FloatArray) -> bool:
        """Put the arm elsewhere, as a person does in freedrive; refused while a program plays."""
        if self.runtime_state is RuntimeState.PLAYING:
            return False
        self.arm.place(joints_rad)
        self._supervision.reset()
        self.target.joints_rad = joints_rad.copy()
        self.target.rest()
        self._idle_motion = None
        self._event("moved in freedrive")
        return True

    def jog(self, dxyz_m: FloatArray, speed_m_s: float) -> bool:
        """Move the TCP as a person does on the pendant's Move screen; ends the program.

        Args:
            dxyz_m: displacement (3,) in base.
            speed_m_s: speed of the TCP.

        Returns:
            Whether it moves: not after a stop, and not on an e-Series in remote control.
        """
        if not self.safety.normal or (self.model.is_e_series and self.remote_control):
            return False
        self._upload = None
        if self.runtime_state is not RuntimeState.STOPPED:
            self._end_program("jogged on the pendant", self.profile.program_end_rad_s2)
        self.target.rest()
        goal = self.target.tcp()
        goal[:3, 3] += dxyz_m
        self.target.solve(goal)
        self._idle_motion = LinearMove(self.target, goal, speed_m_s, 0.5)
        self._event("jogged on the pendant")
        return True

    def set_remote_control(self, on: bool) -> bool:
        """Switch between local and remote control; ends the program. False on a CB3."""
        if not self.model.is_e_series:
            return False
        if on != self.remote_control:
            self.stop_program()
        self.remote_control = on
        return True

    # One period ---------------------------------------------------------------------------------

    def cycle(self) -> None:
        """Let one controller period pass."""
        now_s = time.monotonic()
        self.timestamp_s += self.period_s
        self.safety.advance(now_s)
        self._start_uploaded(now_s)
        if self.runtime_state is RuntimeState.PLAYING:
            self._run_program(now_s)
        elif self._idle_motion is not None:
            self._advance_idle(self._idle_motion)
        self.arm.flange_from_tcp = self.target.flange_from_tcp
        self.arm.follow(self.target.joints_rad, self.target.speeds_rad_s, self.period_s)
        self.force.advance(self.arm.contact_wrench, self.arm.joints_rad, self.period_s)
        self._supervise()
        self._record(now_s)

    def _advance_idle(self, motion: Motion) -> None:
        """A deceleration, or a person's jogging."""
        try:
            ended = motion.advance(self.target, self.period_s, 1.0)
        except MotionRefusedError as error:
            self._event(str(error))
            ended = True
        if ended:
            self.target.rest()
            self._idle_motion = None

    def _start_uploaded(self, now_s: float) -> None:
        if self._upload is None or now_s < self._upload[0]:
            return
        upload = self._upload[1]
        self._upload = None
        if not self.safety.normal:
            self._event(f"program '{upload.name}' not started: robot is not ready")
            return
        try:
            is_control_script = upload.is_control_script
            offset, path = upload.register_offset, upload.path
        except ScriptError as error:
            self._event(f"program '{upload.name[:40]}' refused: {error}")
            self.message = str(error)
            return
        if is_control_script:
            # A new program starts from where the arm is, at rest.
            self.target.joints_rad = self._settled_target()
            self.target.rest()
            self._idle_motion = None
            self._program = ControlProgram(self, offset, path)
            self.runtime_state = RuntimeState.PLAYING
            self.registers.input_int_written_s[self._program.watchdog_register] = now_s
        else:
            self._event(f"unknown program '{upload.name or upload.text[:40]}' run as empty")
            self._end_program("replaced by an unknown program", self.profile.program_end_rad_s2)
            self.registers.output_ints[0] = 2

    def _settled_target(self) -> FloatArray:
        """Where a new program starts: the target if the arm is there, else the measured joints."""
        near = np.abs(self.target.joints_rad - self.arm.joints_rad).max() < 0.02
        return self.target.joints_rad if near else self.arm.joints_rad.copy()

    def _run_program(self, now_s: float) -> None:
        program = self._program
        if program is None:
            return
        age_s = now_s - self.registers.input_int_written_s[program.watchdog_register]
        if program.watchdog_period_s is not None and age_s > program.watchdog_period_s:
            self._event(f"watchdog: no write for {age_s * 1e3:.0f} ms, program stopped")
            self._end_program("RTDE watchdog", self.profile.program_end_rad_s2)
            return
        scaling = self.scaling()
        try:
            ended = program.cycle(self.period_s, scaling.moves, scaling.streams)
        except ProgramError as error:
            self._event(f"program error: {error}")
            self.message = str(error)
            self._end_program(str(error), self.profile.program_end_rad_s2)
        except JointSpeedError as error:
            self.trigger_protective_stop(str(error))
        except (ArithmeticError, ValueError, LookupError) as error:
            # Numbers that no check foresaw: a controller ends the program, it does not fail itself.
            _LOG.exception("program")
            self.message = f"runtime error: {type(error).__name__}: {error}"
            self._event(self.message)
            self._end_program(self.message, self.profile.program_end_rad_s2)
        else:
            if ended:
                self._end_program("requested by the client", self.profile.program_end_rad_s2)

    def _end_program(self, cause: str, deceleration: float | FloatArray) -> None:
        self._program = None
        self.runtime_state = RuntimeState.STOPPED
        self._idle_motion = self._stop(deceleration)
        _LOG.info("program ended: %s", cause)

    def _supervise(self) -> None:
        finding = self._supervision.advance(self.target, self.force, self.period_s)
        if finding is None or not self.safety.moving_mode:
            return
        if finding.reaction is Reaction.VIOLATION:
            self._event(f"safety violation: {finding.cause}")
            self.safety.violate(time.monotonic())
            self._end_program("safety violation", self._stop_deceleration)
            return
        self.trigger_protective_stop(finding.cause)
        if finding.reaction is Reaction.HALT:
            # What holds the arm back stops it at once: the motors do not push on.
            self.target.joints_rad = self.arm.joints_rad.copy()
            self.target.rest()
            self._idle_motion = None
            self._supervision.reset()

    def _stop(self, deceleration: float | FloatArray) -> Stop:
        return Stop(self.target, joint_deceleration=deceleration)

    def _record(self, now_s: float) -> None:
        if not self.recorder.active:
            return
        offset = self._program.watchdog_register if self._program is not None else 0
        self.recorder.add(row_of(self, now_s, offset))

    def _event(self, text: str) -> None:
        _LOG.info("%s", text)
        self.events.append(f"{self.timestamp_s:.3f} {text}")
        del self.events[:-200]
