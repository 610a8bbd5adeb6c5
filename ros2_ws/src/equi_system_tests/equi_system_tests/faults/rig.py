# SPDX-License-Identifier: MIT
"""A driver on an emulated robot, with what fault cases and tests share."""

from __future__ import annotations

import socket
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equi_control.driver.config import DriverConfig
from equi_control.driver.driver import Driver
from equi_control.driver.state import DriverState
from equi_control.driver.steps import StepReport
from equi_control.rtde.config import LinkConfig
from equi_control.servo.config import ServoConfig
from equi_control.servo.shared_state import Phase, ServoState
from equi_core.motion.safety import StepCommand
from equi_core.motion.safety_limits import SafetyLimits
from ur_emulator.constants import Ports
from ur_emulator.launching import EmulatorProcess

EPISODE = "fault injection"
FASTEST_STEP_M_S = 0.25
SIM_LINK: Mapping[str, Any] = {"lookahead_s": 0.05, "gain": 400.0}
"""The simulated cell's servoL (launch/cells/sim.yaml); a real arm's is softer."""
_FAST_M_S = 0.15
_PATIENCE_S = 90.0
_QUIET_S = 0.4
_STILL_RAD_S = 2e-3
_POLL_PERIOD_S = 0.02


class RigError(RuntimeError):
    """Something that must happen on the rig did not."""


class StoppedTooSoonError(RigError):
    """A fault stopped the arm before the intended one was injected.

    A process that is not scheduled for longer than the watchdog allows causes this; it says nothing
    about the intended fault.
    """


def recording_of(emulator: EmulatorProcess) -> NDArray[np.void]:
    """What the emulated controller has recorded so far."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recording.npy"
        emulator.api.request("record_save", path=str(path))
        rows: NDArray[np.void] = np.load(path)
    return rows


def wait_for_standstill(
    emulator: EmulatorProcess, meanwhile: Callable[[], object] = lambda: None
) -> None:
    """Wait until the emulated arm has been at rest for some time."""
    quiet_since_s = time.monotonic()
    deadline_s = quiet_since_s + _PATIENCE_S
    while time.monotonic() - quiet_since_s < _QUIET_S:
        meanwhile()
        if emulator.api.status()["joint_speed_rad_s"] > _STILL_RAD_S:
            quiet_since_s = time.monotonic()
        if time.monotonic() > deadline_s:
            raise RigError("the arm never came to rest")
        time.sleep(_POLL_PERIOD_S)


class Rig:
    """Emulator and driver together; a context manager."""

    def __init__(
        self,
        *,
        arm: str = "kinematic",
        model: str = "ur5",
        profile: str = "lenient",
        behaviours: Mapping[str, Any] | None = None,
        link: Mapping[str, Any] | None = None,
        driver: Mapping[str, Any] | None = None,
        **servo: Any,
    ) -> None:
        """Prepare robot and driver; settings that are not given are the driver's own defaults.

        Args:
            arm: the emulator's arm: `kinematic` or `physics`.
            model: the arm that stands there, and that the driver expects.
            profile: how strictly the emulator behaves: `lenient` or `strict`.
            behaviours: single behaviours of the emulator that differ from the profile.
            link: fields of LinkConfig; servoL is the simulated cell's if nothing else is said.
            driver: fields of DriverConfig.
            **servo: fields of ServoConfig. Steps are as fast as its limits allow if nothing else
                is said: the worst case of every fault.
        """
        self.emulator = EmulatorProcess(
            arm=arm, model=model, profile=profile, behaviours=behaviours or {}
        )
        self._servo_settings = {"step_speed_m_s": FASTEST_STEP_M_S, **servo}
        self._link_settings = {"robot_model": model, **SIM_LINK, **(link or {})}
        self._driver_settings = {"connect_timeout_s": _PATIENCE_S, **(driver or {})}
        self.driver: Driver
        self._next_step = 0
        self._direction = 1.0

    @classmethod
    def patient(cls, **settings: Any) -> Rig:
        """A rig on which no scheduler stall counts as a fault of driver or robot."""
        ages = SafetyLimits(max_state_age_s=_PATIENCE_S, max_command_age_s=_PATIENCE_S)
        return cls(
            **{
                "max_state_age_s": _PATIENCE_S,
                "driver_silence_s": _PATIENCE_S,
                "limits": ages,
                **settings,
                "link": {"watchdog_hz": 1.0, **settings.get("link", {})},
                "driver": {"servo_silence_s": _PATIENCE_S, **settings.get("driver", {})},
            }
        )

    def __enter__(self) -> Rig:
        self.emulator.__enter__()
        link = LinkConfig(self.emulator.address, **self._link_settings)
        # A loaded machine may need long to start a process; that is not what is measured.
        self.config = DriverConfig(
            ServoConfig(link, **self._servo_settings), **self._driver_settings
        )
        self.driver = Driver(self.config)
        self.driver.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.driver.close()
        self.emulator.__exit__()

    def until(self, condition: Callable[[], bool], what: str) -> list[StepReport]:
        """Poll the driver until a condition holds; raises if it never does."""
        deadline_s = time.monotonic() + _PATIENCE_S
        reports: list[StepReport] = []
        while True:
            reports += self.driver.poll()
            if condition():
                return reports
            if time.monotonic() > deadline_s:
                driver = self.driver
                raise RigError(
                    f"never happened: {what} (driver {driver.state.name}, fault {driver.fault}, "
                    f"{driver.notice}, robot {self.emulator.api.status()['events'][-3:]})"
                )
            time.sleep(0.004)

    def take_over(self) -> None:
        """Connect, activate, go home and begin an episode."""
        self.until(lambda: self.servo_state.phase is Phase.IDLE, "connected")
        self.driver.activate()
        self.until(lambda: self.driver.state is DriverState.HOLD, "the driver holds the arm")
        self.driver.go_home()
        self.until(lambda: not self.driver.homing, "home")
        self.begin_episode(EPISODE)

    def begin_episode(self, name: str) -> None:
        """Start a new episode; steps count from 0."""
        self.driver.begin_episode(name)
        self._next_step = 0

    def submit(
        self,
        step_m: tuple[float, float, float],
        yaw_rad: float = 0.0,
        closedness: float = 0.0,
        age_s: float = 0.0,
    ) -> list[StepReport]:
        """Command one step; returns what was refused or interrupted by it."""
        command = StepCommand(
            self.driver.episode_id, self._next_step, closedness, step_m, yaw_rad, age_s
        )
        reports = self.driver.submit(command)
        if not any(report.command is command for report in reports):
            self._next_step += 1
        return reports

    def finish_step(self) -> list[StepReport]:
        """Wait until the running step has ended."""
        return self.until(lambda: self.driver.state is not DriverState.ACTIVE, "the step ends")

    def start_moving(self, closedness: float = 0.0) -> None:
        """Begin a long diagonal step and wait until the arm is fast."""
        sign, self._direction = self._direction, -self._direction
        self.submit((0.05 * sign, 0.05 * sign, -0.02 * sign), closedness=closedness)
        self.until_fast()

    def until_fast(self) -> None:
        """Wait until the arm is fast; raises StoppedTooSoonError if a fault stops it."""
        self.until(lambda: self._is_fast() or self.driver.fault is not None, "the arm is fast")
        if self.driver.fault is not None:
            raise StoppedTooSoonError(f"stopped before the fault: {self.driver.fault.reason}")

    def _is_fast(self) -> bool:
        return float(np.linalg.norm(self.servo_state.twist[:3])) > _FAST_M_S

    def record(self) -> None:
        """Start a new recording at the controller."""
        self.emulator.api.request("record_start")

    def recorded(self) -> NDArray[np.void]:
        """The recording so far."""
        return recording_of(self.emulator)

    def wait_for_standstill(self) -> None:
        """Wait until the emulated arm itself is at rest for some time."""
        wait_for_standstill(self.emulator, self.driver.poll)

    def wait_until_stopped(self) -> None:
        """Wait until no program plays: then a person can move the arm."""
        deadline_s = time.monotonic() + _PATIENCE_S
        while self.emulator.api.status()["runtime_state"] != "STOPPED":
            if time.monotonic() > deadline_s:
                raise RigError("the program never ended")
            time.sleep(_POLL_PERIOD_S)

    def measured_m(self) -> NDArray[np.float64]:
        """TCP position that the controller measures, in base_link [m]."""
        x, y, z = self.emulator.api.status()["actual_tcp"][:3]
        return np.array([-x, -y, z])

    def recover_robot(self) -> None:
        """What an operator does at the teach pendant: unlock or power on, as needed."""
        api = self.emulator.api
        api.request("clear_faults")
        api.request("release_emergency_stop")
        deadline_s = time.monotonic() + _PATIENCE_S
        while True:
            status = api.status()
            if status["safety_mode"] == "NORMAL" and status["robot_mode"] == "RUNNING":
                return
            if time.monotonic() > deadline_s:
                raise RigError(f"the robot does not recover: {status}")
            try:
                if status["safety_mode"] == "PROTECTIVE_STOP":
                    self.dashboard("unlock protective stop")
                elif status["robot_mode"] == "POWER_OFF":
                    self.dashboard("brake release")
            except OSError:
                pass  # a restarting controller has no dashboard yet
            time.sleep(0.05)

    def reset_fault(self) -> None:
        """What an operator does at the driver after the robot has recovered."""
        if self.driver.fault is None:
            raise RigError("no fault is latched")
        self.driver.begin_reset(self.driver.fault.code, self.driver.fault_count)
        self.until(lambda: not self.driver.resetting, "the reset ends")
        if self.driver.state is not DriverState.IDLE:
            raise RigError(f"the reset failed: {self.driver.fault}")

    def dashboard(self, command: str) -> str:
        """One dashboard command."""
        with socket.create_connection((self.emulator.address, Ports.dashboard), 5.0) as client:
            reader = client.makefile("r")
            reader.readline()
            client.sendall(command.encode() + b"\n")
            return reader.readline().strip()

    @property
    def servo_state(self) -> ServoState:
        """The servo process's state at the last poll."""
        return self.driver.servo_state or ServoState()
