# SPDX-License-Identifier: MIT
"""Rows of the fault table in which the driver's processes are killed while the arm moves.

Only the emulated controller is left to report what followed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

from equi_system_tests.faults.fault_case import FaultCase, FaultResult, Robot, repeatable
from equi_system_tests.faults.recording import travel_after
from equi_system_tests.faults.rig import RigError, recording_of, wait_for_standstill
from ur_emulator.launching import EmulatorProcess

_PATIENCE_S = 60.0
_FAST_RAD_S = 0.25


def driver_killed(name: str, victims: tuple[str, ...], most_mm: float) -> FaultCase:
    """SIGKILL of some of the driver's processes: `driver`, `servo`, or both."""
    return driver_signalled(name, victims, signal.SIGKILL, most_mm)


def driver_signalled(
    name: str, victims: tuple[str, ...], what: signal.Signals, most_mm: float
) -> FaultCase:
    """A signal to some of the driver's processes while the arm moves: killed, or made to hang."""

    def run(robot: Robot) -> FaultResult:
        with EmulatorProcess(arm=robot.arm, profile=robot.profile) as emulator:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "equi_system_tests.faults.driver_under_test"),
                    emulator.address,
                ],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            try:
                pids = _announced_pids(process)
                emulator.api.request("record_start")
                _wait_until_fast(emulator)
                instant_s = time.monotonic()
                for victim in victims:
                    os.kill(pids[victim], what)
                wait_for_standstill(emulator)
            finally:
                process.kill()
                process.wait()
            travel = travel_after(recording_of(emulator), instant_s)
            status = emulator.api.status()
        stopped = status["runtime_state"] == "STOPPED"
        by_watchdog = any("watchdog" in event for event in status["events"])
        observed = (
            f"program {status['runtime_state']}, {'watchdog' if by_watchdog else 'servoStop'}"
        )
        passed = stopped and travel.distance_mm < most_mm
        return FaultResult(name, "arm stops, program ended", observed, travel, None, passed)

    return repeatable(name, run)


def _announced_pids(process: subprocess.Popen[bytes]) -> dict[str, int]:
    """The driver's JSON line; ur_rtde writes lines of its own to the same pipe."""
    if process.stdout is None or process.stderr is None:
        raise RigError("no output of the driver")
    for line in process.stdout:
        if line.startswith(b"{"):
            pids: dict[str, int] = json.loads(line)
            return pids
    raise RigError(f"the driver ended: {process.stderr.read().decode()[-400:]}")


def _wait_until_fast(emulator: EmulatorProcess) -> None:
    deadline_s = time.monotonic() + _PATIENCE_S
    while emulator.api.status()["joint_speed_rad_s"] < _FAST_RAD_S:
        if time.monotonic() > deadline_s:
            raise RigError("the driver never moved")
