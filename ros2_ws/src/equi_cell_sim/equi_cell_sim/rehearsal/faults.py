"""The fault table, row by row: injected while the arm moves, measured at the robot.

Each row returns how far and how long the arm moved after the fault, what the driver said, and how
far the arm moved by itself when everything was reset, with the arm moved by hand in between.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from equi_cell_sim.rehearsal.recording import Travel, tcp_positions_m, travel_after
from equi_cell_sim.rehearsal.rig import RehearsalError, Rig
from equi_cell_sim.ur_controller.launching import EmulatorProcess
from equi_control.driver_state import DriverState, FaultCode
from equi_control.steps import Outcome

HAND_MOVE_M = (-0.03, 0.02, 0.02)
_WATCH_AFTER_RESUME_S = 1.0


@dataclass(frozen=True)
class FaultResult:
    """One row of the report."""

    fault: str
    expected: str
    seen: str
    travel: Travel
    resume_motion_mm: float | None
    """Motion after reset and activation although nothing was commanded; None if not applicable."""
    passed: bool


@dataclass(frozen=True)
class FaultCase:
    """One row of the table before it is run."""

    name: str
    run: Callable[[Rig], FaultResult]
    own_robot: bool = False
    """Needs an emulator without a driver on it."""


def resume_motion_mm(rig: Rig) -> float:
    """Move the arm by hand, recover, reset, activate, and see whether it moves by itself."""
    rig.recover_robot()
    rig.emulator.api.request("hand_move", dxyz_m=list(HAND_MOVE_M))
    rig.wait_for_standstill()
    rig.record()
    rig.reset_fault()
    rig.driver.activate()
    rig.until(lambda: rig.driver.state is DriverState.HOLD, "the driver holds the arm again")
    until_s = time.monotonic() + _WATCH_AFTER_RESUME_S
    rig.until(lambda: time.monotonic() > until_s, "watched for a while")
    here_m = tcp_positions_m(rig.recorded())
    return float(np.linalg.norm(here_m - here_m[0], axis=1).max()) * 1e3


def _latched(
    name: str, inject: Callable[[Rig], None], allowed: tuple[FaultCode, ...], most_mm: float
) -> FaultCase:
    """A fault that must latch: arm stops, state FAULT, nothing jumps on resume."""

    def run(rig: Rig) -> FaultResult:
        rig.record()
        rig.start_moving()
        instant_s = time.monotonic()
        inject(rig)
        rig.until(lambda: rig.driver.state is DriverState.FAULT, f"{name}: fault latched")
        fault = rig.driver.fault
        if fault is None:
            raise RehearsalError("state FAULT without a fault")
        rig.wait_for_standstill()
        travel = travel_after(rig.recorded(), instant_s)
        jump_mm = resume_motion_mm(rig)
        rig.begin_episode(f"after {name}")
        again = rig.submit((0.0, 0.0, 0.01)) + rig.finish_step()
        usable = [report.outcome for report in again] == [Outcome.COMPLETED]
        passed = fault.code in allowed and travel.distance_mm < most_mm and jump_mm < 1.0 and usable
        words = " or ".join(code.name for code in allowed)
        return FaultResult(
            name, f"FAULT {words}", f"FAULT {fault.code.name}", travel, jump_mm, passed
        )

    return FaultCase(name, run)


def _policy_killed(rig: Rig) -> FaultResult:
    rig.record()
    rig.start_moving()
    instant_s = time.monotonic()
    target_m = rig.driver.last["commanded"][:3].copy()
    reports = rig.finish_step()
    rig.wait_for_standstill()
    travel = travel_after(rig.recorded(), instant_s)
    target_m = reports[-1].target_pose[:3, 3]
    off_mm = float(np.linalg.norm(rig.measured_m() - target_m)) * 1e3
    passed = rig.driver.state is DriverState.HOLD and off_mm < 1.0
    seen = f"{rig.driver.state.name}, {off_mm:.2f} mm from the last target"
    return FaultResult("policy killed", "ends its step, HOLD", seen, travel, None, passed)


def _hostile_action(rig: Rig) -> FaultResult:
    rig.record()
    rig.start_moving()
    instant_s = time.monotonic()
    reports = rig.submit((float("nan"), 0.0, 0.0)) + rig.submit((0.0, float("inf"), 0.0))
    refused = [report.outcome for report in reports] == [Outcome.REJECTED] * 2
    rig.finish_step()
    huge = rig.submit((40.0, -40.0, -40.0)) + rig.finish_step()
    rig.wait_for_standstill()
    travel = travel_after(rig.recorded(), instant_s)
    clipped = huge[-1].outcome is Outcome.CLIPPED
    rows = rig.recorded()
    here = rows["actual_tcp"][:, :3] * np.array([-1.0, -1.0, 1.0])
    box = rig.config.servo.limits.workspace
    inside = bool(
        np.all(here >= np.array(box.lower_m) - 1e-3)
        and np.all(here <= np.array(box.upper_m) + 1e-3)
    )
    seen = f"{'rejected' if refused else 'NOT rejected'}, {'clipped' if clipped else 'NOT clipped'}"
    return FaultResult(
        "NaN, infinite and huge action",
        "rejected or clipped, stays in the box",
        f"{seen}, {'inside' if inside else 'OUTSIDE'} the box",
        travel,
        None,
        refused and clipped and inside,
    )


def _object_lost(rig: Rig) -> FaultResult:
    rig.emulator.api.request("place_object", width_m=0.05)
    rig.submit((0.0, 0.0, 0.0), closedness=1.0)
    rig.finish_step()
    held = rig.driver.gripper.holding
    rig.record()
    rig.submit((-0.03, 0.0, 0.0), closedness=1.0)
    instant_s = time.monotonic()
    rig.emulator.api.request("lose_object")
    rig.finish_step()
    rig.until(lambda: not rig.driver.gripper.holding, "holding turns false")
    rig.wait_for_standstill()
    travel = travel_after(rig.recorded(), instant_s)
    told = "object_lost" in rig.driver.notice
    rig.submit((0.0, 0.0, 0.0), closedness=0.0)
    rig.finish_step()
    seen = f"held {held}, then holding False, {'reported' if told else 'NOT reported'}"
    return FaultResult("object lost", "reported, holding False", seen, travel, None, held and told)


def _gripper_jammed(rig: Rig) -> FaultResult:
    rig.emulator.api.request("gripper_jam", on=True)
    rig.record()
    instant_s = time.monotonic()
    reports = rig.submit((0.03, 0.0, 0.0), closedness=1.0) + rig.finish_step()
    rig.wait_for_standstill()
    travel = travel_after(rig.recorded(), instant_s)
    opening = rig.driver.gripper.opening
    rig.emulator.api.request("gripper_jam", on=False)
    rig.submit((0.0, 0.0, 0.0), closedness=0.0)
    rig.finish_step()
    # Fingers that stand open at the stop cannot be told from a very wide object.
    seen = f"step {reports[-1].outcome.name}, opening {opening:.2f} reported"
    return FaultResult(
        "gripper jammed", "step ends, true opening reported", seen, travel, None, opening > 0.9
    )


def _driver_killed(name: str, victims: tuple[str, ...], most_mm: float) -> FaultCase:
    """SIGKILL of the driver's processes while it moves; the emulator alone tells what followed."""

    def run(rig: Rig) -> FaultResult:
        del rig  # a robot of its own: this driver will not be asked to recover
        with EmulatorProcess() as emulator:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "equi_cell_sim.rehearsal.driver_under_test",
                    emulator.address,
                ],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            try:
                pids = _announced_pids(process)
                emulator.api.request("record_start")
                deadline_s = time.monotonic() + 60.0
                while not _fast(emulator):
                    if time.monotonic() > deadline_s:
                        raise RehearsalError("the driver never moved")
                instant_s = time.monotonic()
                for victim in victims:
                    os.kill(pids[victim], signal.SIGKILL)
                _wait_at_rest(emulator)
            finally:
                process.kill()
                process.wait()
            own = Rig.__new__(Rig)
            own.emulator = emulator
            travel = travel_after(Rig.recorded(own), instant_s)
            status = emulator.api.status()
        stopped = status["runtime_state"] == "STOPPED"
        causes = [event for event in status["events"] if "watchdog" in event]
        seen = f"program {status['runtime_state']}" + (", watchdog" if causes else ", servoStop")
        passed = stopped and travel.distance_mm < most_mm
        return FaultResult(name, "arm stops, program ended", seen, travel, None, passed)

    return FaultCase(name, run, own_robot=True)


def _announced_pids(process: subprocess.Popen[bytes]) -> dict[str, int]:
    """The driver's JSON line; the library writes lines of its own to the same place."""
    if process.stdout is None or process.stderr is None:
        raise RehearsalError("no output of the driver")
    for line in process.stdout:
        if line.startswith(b"{"):
            pids: dict[str, int] = json.loads(line)
            return pids
    raise RehearsalError(f"the driver ended: {process.stderr.read().decode()[-400:]}")


def _fast(emulator: EmulatorProcess) -> bool:
    return bool(emulator.api.status()["joint_speed_rad_s"] > 0.25)


def _wait_at_rest(emulator: EmulatorProcess) -> None:
    quiet_since_s = time.monotonic()
    while time.monotonic() - quiet_since_s < 0.6:
        if emulator.api.status()["joint_speed_rad_s"] > 2e-3:
            quiet_since_s = time.monotonic()
        time.sleep(0.02)


def _request(op: str, **arguments: object) -> Callable[[Rig], None]:
    return lambda rig: (rig.emulator.api.request(op, **arguments), None)[1]


def _cut_rtde(rig: Rig) -> None:
    rig.emulator.api.request("refuse", service="rtde")
    rig.emulator.api.request("cut", service="rtde")


def _cut_gripper(rig: Rig) -> None:
    rig.emulator.api.request("refuse", service="gripper")
    rig.emulator.api.request("cut", service="gripper")


LOST = (FaultCode.CONNECTION_LOST,)
# After a cut or a freeze the library may also show the stop that the robot's watchdog made.
LOST_OR_STOPPED = (
    FaultCode.CONNECTION_LOST,
    FaultCode.ROBOT_NOT_RUNNING,
    FaultCode.SERVO_FAILED,
    FaultCode.WATCHDOG,
)

CASES: tuple[FaultCase, ...] = (
    FaultCase("policy killed", _policy_killed),
    FaultCase("NaN, infinite and huge action", _hostile_action),
    _latched("protective stop", _request("protective_stop"), (FaultCode.PROTECTIVE_STOP,), 60.0),
    _latched("emergency stop", _request("emergency_stop"), (FaultCode.EMERGENCY_STOP,), 60.0),
    _latched("RTDE connection cut", _cut_rtde, LOST_OR_STOPPED, 90.0),
    _latched("RTDE frozen", _request("freeze", service="rtde"), LOST_OR_STOPPED, 90.0),
    _latched(
        "RTDE 0.5 s late", _request("delay", service="rtde", seconds=0.5), LOST_OR_STOPPED, 90.0
    ),
    _latched("controller restarted", _request("restart", boot_s=1.0), LOST_OR_STOPPED, 90.0),
    _latched(
        "program stopped at the pendant",
        lambda rig: (rig.dashboard("stop"), None)[1],
        (FaultCode.ROBOT_NOT_RUNNING,),
        60.0,
    ),
    _latched("gripper unreachable", _cut_gripper, (FaultCode.GRIPPER,), 120.0),
    FaultCase("gripper jammed", _gripper_jammed),
    FaultCase("object lost", _object_lost),
    _driver_killed("servo process killed (SIGKILL)", ("servo",), 90.0),
    _driver_killed("driver killed (SIGKILL)", ("driver",), 90.0),
    _driver_killed("driver and servo killed (SIGKILL)", ("driver", "servo"), 90.0),
)
