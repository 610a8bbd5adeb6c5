# SPDX-License-Identifier: MIT
"""The fault table, row by row: injected while the arm moves, measured at the controller.

Each row returns how far and how long the arm moved after the fault, what the driver reported, and
how far the arm moved by itself after the reset, with the arm moved in freedrive in between.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import numpy as np

from equi_control.driver.state import DriverState, FaultCode
from equi_control.driver.steps import Outcome
from equi_system_tests.faults.fault_case import FaultCase, FaultResult, Robot, on_a_rig, repeatable
from equi_system_tests.faults.killed_driver import driver_killed, driver_signalled
from equi_system_tests.faults.operator_rows import OPERATOR_CASES
from equi_system_tests.faults.recording import (
    keeps_caps,
    stream_metrics,
    tcp_positions_m,
    travel_after,
)
from equi_system_tests.faults.rig import Rig, RigError

FREEDRIVE_MOVE_M = (-0.03, 0.02, 0.02)
_OBSERVE_AFTER_RESUME_S = 1.0
_LOST_FRACTION = 0.3
_PACKAGES_LOST = "RTDE loses 30 % of its packages"
_GRASP_HEIGHT_M = 0.02
_STEPS_DOWN = 4


def resume_motion_mm(rig: Rig) -> float:
    """Recover, move in freedrive, reset, activate; how far the arm then moves by itself [mm]."""
    rig.recover_robot()
    rig.emulator.api.request("freedrive_move", dxyz_m=list(FREEDRIVE_MOVE_M))
    rig.wait_for_standstill()
    rig.record()
    rig.reset_fault()
    rig.driver.activate()
    rig.until(lambda: rig.driver.state is DriverState.HOLD, "the driver holds the arm again")
    until_s = time.monotonic() + _OBSERVE_AFTER_RESUME_S
    rig.until(lambda: time.monotonic() > until_s, "observed for a while")
    here_m = tcp_positions_m(rig.recorded())
    return float(np.linalg.norm(here_m - here_m[0], axis=1).max()) * 1e3


def _latched(
    name: str,
    inject: Callable[[Rig], None],
    allowed: tuple[FaultCode, ...],
    most_mm: float,
    closedness: float = 0.0,
    word: str = "",
) -> FaultCase:
    """A fault that must latch: arm stops, state FAULT, nothing jumps on resume.

    Args:
        name: of the row.
        inject: causes the fault.
        allowed: fault codes that describe it.
        most_mm: the arm must stop after less travel than this.
        closedness: gripper command of the running step.
        word: must be in the reported reason.
    """

    def run_once(rig: Rig) -> FaultResult:
        rig.record()
        rig.start_moving(closedness)
        instant_s = time.monotonic()
        inject(rig)
        rig.until(lambda: rig.driver.state is DriverState.FAULT, f"{name}: fault latched")
        fault = rig.driver.fault
        if fault is None:
            raise RigError("state FAULT without a fault")
        rig.wait_for_standstill()
        holding = rig.driver.gripper_report.holding
        travel = travel_after(rig.recorded(), instant_s)
        jump_mm = resume_motion_mm(rig)
        rig.begin_episode(f"after {name}")
        again = rig.submit((0.0, 0.0, 0.01)) + rig.finish_step()
        usable = [report.outcome for report in again] == [Outcome.COMPLETED]
        reported = fault.code in allowed and word in fault.reason and not holding
        passed = reported and travel.distance_mm < most_mm and jump_mm < 1.0 and usable
        words = " or ".join(code.name for code in allowed)
        observed = f"FAULT {fault.code.name}" + (
            f" ({word})" if word and word in fault.reason else ""
        )
        return FaultResult(name, f"FAULT {words}", observed, travel, jump_mm, passed)

    return on_a_rig(name, run_once)


def _policy_killed(rig: Rig) -> FaultResult:
    rig.record()
    rig.start_moving()
    instant_s = time.monotonic()
    reports = rig.finish_step()
    rig.wait_for_standstill()
    travel = travel_after(rig.recorded(), instant_s)
    target_m = reports[-1].target_pose[:3, 3]
    off_mm = float(np.linalg.norm(rig.measured_m() - target_m)) * 1e3
    passed = rig.driver.state is DriverState.HOLD and off_mm < 1.0
    fault = "" if rig.driver.fault is None else f" {rig.driver.fault.code.name}"
    observed = f"{rig.driver.state.name}{fault}, {off_mm:.2f} mm from the last target"
    return FaultResult("policy killed", "ends its step, HOLD", observed, travel, None, passed)


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
    observed = (
        f"{'rejected' if refused else 'NOT rejected'}, {'clipped' if clipped else 'NOT clipped'}"
    )
    return FaultResult(
        "NaN, infinite and huge action",
        "rejected or clipped, stays in the box",
        f"{observed}, {'inside' if inside else 'OUTSIDE'} the box",
        travel,
        None,
        refused and clipped and inside,
    )


def _packages_lost(rig: Rig) -> FaultResult:
    rig.record()
    rig.start_moving()
    instant_s = time.monotonic()
    rig.emulator.api.request("drop", service="rtde", fraction=_LOST_FRACTION)
    reports = rig.finish_step() + rig.submit((0.0, 0.0, 0.03)) + rig.finish_step()
    rig.wait_for_standstill()
    rig.emulator.api.request("clear_faults")
    rows = rig.recorded()
    travel = travel_after(rows, instant_s)
    completed = [report.outcome for report in reports] == [Outcome.COMPLETED] * 2
    period_s = rig.servo_state.period_s
    kept = keeps_caps(stream_metrics(rows, period_s), rig.config.servo.limits)
    observed = f"{rig.driver.state.name}, steps {'completed' if completed else 'NOT completed'}"
    return FaultResult(
        _PACKAGES_LOST,
        "steps completed, caps kept",
        f"{observed}, caps {'kept' if kept else 'BROKEN'}",
        travel,
        None,
        completed and kept and rig.driver.state is DriverState.HOLD,
    )


def _object_lost(robot: Robot) -> FaultResult:
    with Rig(arm=robot.arm, profile=robot.profile) as rig:
        if robot.arm == "physics":
            x, y, _ = rig.config.home_position_m
            block = {"kind": "block", "position_m": [x, y, 0.025], "yaw_rad": 0.0, "movable": True}
            rig.emulator.api.request("set_scene", scene={"objects": [block]})
        else:
            rig.emulator.api.request("place_object", width_m=0.05)
        rig.take_over()
        down_m = rig.config.home_position_m[2] - _GRASP_HEIGHT_M
        for _ in range(_STEPS_DOWN):
            rig.submit((0.0, 0.0, -down_m / _STEPS_DOWN))
            rig.finish_step()
        rig.submit((0.0, 0.0, 0.0), closedness=1.0)
        rig.finish_step()
        rig.submit((0.0, 0.0, 0.05), closedness=1.0)
        rig.finish_step()
        held = rig.driver.gripper_report.holding
        rig.record()
        rig.submit((-0.05, 0.0, 0.05), closedness=1.0)
        rig.until_fast()
        instant_s = time.monotonic()
        rig.emulator.api.request("lose_object")
        rig.finish_step()
        rig.until(lambda: not rig.driver.gripper_report.holding, "holding turns false")
        rig.until(lambda: rig.driver.gripper_report.settled, "the fingers are at rest")
        rig.wait_for_standstill()
        travel = travel_after(rig.recorded(), instant_s)
        reported = "object_lost" in rig.driver.notice
    observed = f"held {held}, then holding False, {'reported' if reported else 'NOT reported'}"
    return FaultResult(
        "object lost", "reported, holding False", observed, travel, None, held and reported
    )


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
    on_a_rig("policy killed", _policy_killed),
    on_a_rig("NaN, infinite and huge action", _hostile_action),
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
    on_a_rig(_PACKAGES_LOST, _packages_lost),
    _latched("gripper unreachable", _cut_gripper, (FaultCode.GRIPPER,), 120.0),
    _latched(
        "gripper answers lost",
        _request("drop", service="gripper", fraction=1.0),
        (FaultCode.GRIPPER,),
        120.0,
    ),
    _latched(
        "gripper jammed",
        _request("gripper_jam"),
        (FaultCode.GRIPPER,),
        120.0,
        closedness=1.0,
        word="jammed",
    ),
    repeatable("object lost", _object_lost),
    driver_killed("servo process killed (SIGKILL)", ("servo",), 90.0),
    driver_killed("driver killed (SIGKILL)", ("driver",), 90.0),
    driver_killed("driver and servo killed (SIGKILL)", ("driver", "servo"), 90.0),
    driver_signalled("driver hangs (SIGSTOP)", ("driver",), signal.SIGSTOP, 170.0),
    *OPERATOR_CASES,
)
