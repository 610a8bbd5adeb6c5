# SPDX-License-Identifier: MIT
"""The controller itself: one `cycle` per period joins program, safety, motion and arm."""

from __future__ import annotations

import logging
import time

import numpy as np
from numpy.typing import NDArray

from ur_emulator.arms import Arm, lagged
from ur_emulator.constants import RobotModel, RuntimeState, SafetyMode
from ur_emulator.controller.control_program import ControlProgram, ProgramError, Thread
from ur_emulator.controller.motions import JointSpeedError, Stop, TargetState
from ur_emulator.controller.output_variables import tcp_variables
from ur_emulator.controller.recorder import Recorder
from ur_emulator.controller.registers import Registers
from ur_emulator.controller.safety_system import Delays, SafetySystem
from ur_emulator.controller.script_text import Upload
from ur_emulator.mechanics.force_estimate import ForceEstimate
from ur_emulator.mechanics.kinematics import NoSolutionError
from ur_emulator.profile import LENIENT, Profile

FloatArray = NDArray[np.float64]

_LOG = logging.getLogger(__name__)

# Category-0 stopping times of the UR5 at full speed and reach, as decelerations [rad/s2].
STOP_DECELERATION = np.array([13.0, 6.0, 19.0, 19.0, 19.0, 19.0])


class Controller:
    """State of one emulated robot; knows nothing of sockets."""

    def __init__(
        self, model: RobotModel, arm: Arm, delays: Delays, profile: Profile = LENIENT
    ) -> None:
        self.model = model
        self.profile = profile
        self.force = ForceEstimate(profile)
        self._stop_deceleration = STOP_DECELERATION * profile.protective_stop_scale
        self.arm = arm
        self.period_s = 1.0 / model.rate_hz
        self.recorder = Recorder()
        self.events: list[str] = []
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
        self._unhindered_rad = self.arm.joints_rad.copy()
        self.payload_kg = 0.0
        self.payload_cog_m = np.zeros(3)
        self.runtime_state = RuntimeState.STOPPED
        self.timestamp_s = 0.0
        self.message: str | None = None
        self._program: ControlProgram | None = None
        # An arm that loses its power while it moves is stopped by its brakes.
        self._stop_motion: Stop | None = self._stop(self._stop_deceleration)
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
        self._stop_motion = self._stop(self._stop_deceleration)

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
        self._stop_motion = self._stop(self.profile.program_end_rad_s2)
        return True

    def resume_program(self) -> bool:
        """Resume a paused program where it was; False if there is none."""
        if self.runtime_state is RuntimeState.PAUSED and self.safety.normal and self._program:
            if self.profile.resume_keeps_target:
                register = self._program.watchdog_register
                self.registers.input_int_written_s[register] = time.monotonic()
            self.runtime_state = RuntimeState.PLAYING
            self._stop_motion = None
            return True
        return False

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
        self._unhindered_rad = joints_rad.copy()
        self.target.joints_rad = joints_rad.copy()
        self.target.rest()
        self._stop_motion = None
        self._event("moved in freedrive")
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
        elif self._stop_motion is not None and self._stop_motion.advance(
            self.target, self.period_s, 1.0
        ):
            self._stop_motion = None
        self.arm.flange_from_tcp = self.target.flange_from_tcp
        self.arm.follow(self.target.joints_rad, self.target.speeds_rad_s, self.period_s)
        self._unhindered_rad = lagged(
            self._unhindered_rad, self.target.joints_rad, self.profile.joint_lag_s, self.period_s
        )
        self.force.advance(self.arm.contact_wrench, self.arm.joints_rad, self.period_s)
        self._stop_on_collision()
        self._record(now_s)

    def _start_uploaded(self, now_s: float) -> None:
        if self._upload is None or now_s < self._upload[0]:
            return
        upload = self._upload[1]
        self._upload = None
        if not self.safety.normal:
            self._event(f"program '{upload.name}' not started: robot is not ready")
            return
        if upload.is_control_script:
            # A new program starts from where the arm is, at rest.
            self.target.joints_rad = self._settled_target()
            self.target.rest()
            self._stop_motion = None
            self._program = ControlProgram(self, upload.register_offset, upload.path)
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
        try:
            ended = program.cycle(self.period_s, self.move_scale, self.stream_scale)
        except ProgramError as error:
            self._event(f"program error: {error}")
            self.message = str(error)
            self._end_program(str(error), self.profile.program_end_rad_s2)
        except JointSpeedError as error:
            self.trigger_protective_stop(str(error))
        else:
            if ended:
                self._end_program("requested by the client", self.profile.program_end_rad_s2)

    def _end_program(self, cause: str, deceleration: float | FloatArray) -> None:
        self._program = None
        self.runtime_state = RuntimeState.STOPPED
        self._stop_motion = self._stop(deceleration)
        _LOG.info("program ended: %s", cause)

    def _stop_on_collision(self) -> None:
        if not self.safety.moving_mode:
            return
        tcp, kinematics = self.target.flange_from_tcp, self.arm.kinematics
        goal = kinematics.base_from_tcp(self._unhindered_rad, tcp)[:3, 3]
        reached = kinematics.base_from_tcp(self.arm.joints_rad, tcp)[:3, 3]
        lag_m = goal - reached
        force_n = float(np.linalg.norm(self.force.filtered[:3]))
        if float(np.linalg.norm(lag_m)) > self.profile.collision_lag_m:
            behind = ", ".join(f"{value * 1e3:.1f}" for value in lag_m)
            self._collide(f"collision: the arm is ({behind}) mm from its target")
        elif force_n > self.profile.force_limit_n:
            self._collide(f"collision: {force_n:.0f} N at the TCP")

    def _collide(self, cause: str) -> None:
        """Stop where the arm is: the brakes do not push on."""
        self.trigger_protective_stop(cause)
        self.target.joints_rad = self.arm.joints_rad.copy()
        self._unhindered_rad = self.arm.joints_rad.copy()
        self.target.rest()
        self._stop_motion = None

    def _stop(self, deceleration: float | FloatArray) -> Stop:
        return Stop(self.target, joint_deceleration=deceleration)

    @property
    def limiter_scale(self) -> float:
        """RTDE speed_scaling while a program plays: what the safety limits leave of the speed."""
        reduced = self.safety.safety_mode is SafetyMode.REDUCED
        return self.profile.reduced_speed_fraction if reduced else 1.0

    @property
    def move_scale(self) -> float:
        """Share of their speed at which moves run now."""
        slowed = 1.0 - self.registers.speed_slider * self.limiter_scale
        return 1.0 - self.profile.move_slider_effect * slowed

    @property
    def stream_scale(self) -> float:
        """The same for servo and speed streams."""
        slowed = 1.0 - self.registers.speed_slider * self.limiter_scale
        return 1.0 - self.profile.servo_slider_effect * slowed

    def _record(self, now_s: float) -> None:
        if not self.recorder.active:
            return
        variables = tcp_variables(self.target, self.arm)
        offset = self._program.watchdog_register if self._program is not None else 0
        self.recorder.add(
            (
                now_s,
                self.timestamp_s,
                int(self.runtime_state),
                int(self.safety.safety_mode),
                self.registers.input_ints[offset],
                now_s - self.registers.input_int_written_s[offset],
                self.registers.input_doubles[offset : offset + 6],
                self.target.joints_rad,
                self.arm.joints_rad,
                variables["target_TCP_pose"],
                variables["actual_TCP_pose"],
                variables["actual_TCP_speed"],
            )
        )

    def _event(self, text: str) -> None:
        _LOG.info("%s", text)
        self.events.append(f"{self.timestamp_s:.3f} {text}")
        del self.events[:-200]
