# SPDX-License-Identifier: MIT
"""Rows of the fault table that an operator causes, or the way the robot stands there.

Speed slider, reduced mode, hold, a paused program, a wound wrist, a wrong branch, a wrong model, a
gripper without power, contact with something rigid.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from equi_control.driver.config import DriverConfig
from equi_control.driver.driver import Driver
from equi_control.driver.state import DriverState, FaultCode
from equi_control.driver.steps import Outcome
from equi_control.servo.config import ServoConfig
from equi_control.servo.shared_state import Phase
from equi_core.cell_geometry import CellGeometry
from equi_core.geometry import invert, top_down_pose
from equi_core.motion.ur5_kinematics import HOME_RAD, inverse, inverse_near
from equi_system_tests.faults.contact_trials import LAB_LINK, run_trial
from equi_system_tests.faults.fault_case import FaultCase, FaultResult, Robot, on_a_rig, repeatable
from equi_system_tests.faults.recording import Travel, travel_after
from equi_system_tests.faults.rig import Rig

_SLIDER = 0.2
_OBSERVE_S = 0.6


def _slowed(name: str, op: str, **arguments: object) -> FaultCase:
    """The controller slows the arm in mid-step: the step takes longer and ends by arrival."""

    def run_once(rig: Rig) -> FaultResult:
        rig.record()
        rig.start_moving()
        instant_s = time.monotonic()
        rig.emulator.api.request(op, **arguments)
        reports = rig.finish_step()
        took_s = time.monotonic() - instant_s
        share = rig.servo_state.speed_share
        travel = travel_after(rig.recorded(), instant_s)
        off_mm = 1e3 * float(np.linalg.norm(rig.measured_m() - reports[-1].target_pose[:3, 3]))
        arrived = reports[-1].outcome is Outcome.COMPLETED and off_mm < 3.0
        observed = (
            f"{reports[-1].outcome.name} after {took_s:.1f} s at {share:.0%}, {off_mm:.1f} mm off"
        )
        passed = arrived and share < 0.5 and rig.driver.fault is None
        return FaultResult(name, "slower, ends by arrival", observed, travel, None, passed)

    return on_a_rig(name, run_once, strict_only=True)


def _held(rig: Rig) -> FaultResult:
    rig.record()
    rig.start_moving()
    instant_s = time.monotonic()
    (report,) = rig.driver.hold()
    refused = [found.outcome for _ in range(3) for found in rig.submit((0.05, 0.0, 0.0))]
    rig.wait_for_standstill()
    travel = travel_after(rig.recorded(), instant_s)
    rig.record()
    until_s = time.monotonic() + _OBSERVE_S
    rig.until(lambda: time.monotonic() > until_s, "observed for a while")
    stood_mm = travel_after(rig.recorded(), until_s - _OBSERVE_S).distance_mm
    paused = rig.driver.state is DriverState.PAUSED
    rig.driver.resume()
    again = rig.submit((0.0, 0.0, 0.01)) + rig.finish_step()
    passed = (
        paused
        and report.outcome is Outcome.INTERRUPTED
        and refused == [Outcome.REJECTED] * 3
        and stood_mm < 0.5
        and again[-1].outcome is Outcome.COMPLETED
    )
    observed = (
        f"{'PAUSED' if paused else 'NOT paused'}, {len(refused)} commands refused, then resumed"
    )
    return FaultResult(
        "hold in mid-episode", "stands until resumed", observed, travel, None, passed
    )


def _program_paused(rig: Rig) -> FaultResult:
    """A protective stop pauses the program; somebody unlocks and presses play."""
    rig.record()
    rig.start_moving()
    instant_s = time.monotonic()
    rig.emulator.api.request("protective_stop")
    rig.until(lambda: rig.driver.state is DriverState.FAULT, "fault latched")
    rig.wait_for_standstill()
    travel = travel_after(rig.recorded(), instant_s)
    rig.recover_robot()
    rig.record()
    played = rig.dashboard("play")
    until_s = time.monotonic() + _OBSERVE_S
    rig.until(lambda: time.monotonic() > until_s, "observed for a while")
    moved_mm = travel_after(rig.recorded(), until_s - _OBSERVE_S).distance_mm
    ended = rig.emulator.api.status()["runtime_state"] == "STOPPED"
    code = rig.driver.fault.code.name if rig.driver.fault else "none"
    observed = f"FAULT {code}, program {'ended' if ended else 'NOT ended'}, play: '{played}'"
    passed = ended and code == "PROTECTIVE_STOP" and moved_mm < 0.5
    return FaultResult(
        "play after a protective stop", "program ended, nothing moves", observed, travel, moved_mm,
        passed,
    )  # fmt: skip


def _refused_take_over(
    name: str, place: Callable[[Rig], None], word: str, **settings: Any
) -> FaultCase:
    """An arm that stands or is made so that it must not be driven: refused, nothing moves."""

    def run(robot: Robot) -> FaultResult:
        with Rig(arm=robot.arm, profile=robot.profile) as rig:
            rig.until(lambda: rig.servo_state.phase is Phase.IDLE, "connected")
            rig.driver.close()
            place(rig)
            rig.driver = Driver(_changed(rig, settings))
            rig.driver.connect()
            rig.record()
            began_s = time.monotonic()
            rig.until(
                lambda: rig.servo_state.phase is Phase.IDLE or rig.driver.fault is not None,
                "connected or refused",
            )
            if rig.driver.fault is None:
                rig.driver.activate()
                rig.until(lambda: not rig.driver.activating, "the take-over is over")
            reason = rig.driver.fault.reason if rig.driver.fault else rig.driver.notice
            until_s = time.monotonic() + _OBSERVE_S
            rig.until(lambda: time.monotonic() > until_s, "observed for a while")
            travel = travel_after(rig.recorded(), began_s)
        refused = word in reason
        observed = f"refused ({word})" if refused else f"NOT refused: {reason or 'driven'}"
        passed = refused and travel.distance_mm < 0.5
        return FaultResult(name, f"refused ({word})", observed, travel, None, passed)

    return repeatable(name, run, strict_only=True)


def _changed(rig: Rig, link: dict[str, Any]) -> DriverConfig:
    servo = replace(rig.config.servo, link=replace(rig.config.servo.link, **link))
    return replace(rig.config, servo=servo)


def _place(joints_of: Callable[[], np.ndarray]) -> Callable[[Rig], None]:
    def place(rig: Rig) -> None:
        rig.emulator.api.request("stop_program")
        rig.wait_until_stopped()
        rig.emulator.api.request("freedrive_joints", joints_rad=joints_of().tolist())

    return place


def _flange() -> np.ndarray:
    return top_down_pose((0.5, 0.0, 0.2), 0.0) @ invert(CellGeometry().flange_from_tcp)


def _wound_joints() -> np.ndarray:
    joints = inverse_near(_flange(), HOME_RAD)
    joints[5] += 2 * math.pi * (1 if joints[5] < 0 else -1)
    joints[5] += math.copysign(6.1 - abs(joints[5]), joints[5])
    return joints


def _wrong_branch_joints() -> np.ndarray:
    home = np.array(HOME_RAD)
    return next(
        joints
        for joints in inverse(_flange())
        if math.sin(joints[4]) * math.sin(home[4]) < 0 < math.sin(joints[2]) * math.sin(home[2])
    )


def _late_gripper(robot: Robot) -> FaultResult:
    """The gripper has no power at the take-over, and gets it after the driver gave up."""
    timeout_s = 2.0
    settings = {"gripper_activation_timeout_s": timeout_s}
    with Rig(arm=robot.arm, profile=robot.profile, driver=settings) as rig:
        rig.until(lambda: rig.servo_state.phase is Phase.IDLE, "connected")
        rig.emulator.api.request("gripper_power", on=False)
        rig.record()
        rig.driver.activate()
        rig.until(lambda: rig.driver.state is DriverState.FAULT, "fault latched")
        fault, latched_s = rig.driver.fault, time.monotonic()
        before_m = rig.emulator.api.status()["gripper_opening_m"]
        rig.emulator.api.request("gripper_power", on=True)
        until_s = time.monotonic() + 3.0
        openings = [before_m]

        def observed_for_a_while() -> bool:
            openings.append(rig.emulator.api.status()["gripper_opening_m"])
            return time.monotonic() > until_s

        rig.until(observed_for_a_while, "observed for a while")
        stroke_mm = 1e3 * (max(openings) - min(openings))
        travel = travel_after(rig.recorded(), latched_s)
    latched = fault is not None and fault.code is FaultCode.GRIPPER
    code = fault.code.name if fault else "none"
    observed = f"FAULT {code}, fingers moved {stroke_mm:.1f} mm when power came"
    return FaultResult(
        "gripper without power at take-over", "FAULT GRIPPER, no late stroke", observed, travel,
        None, latched and stroke_mm < 0.5,
    )  # fmt: skip


def _contact(robot: Robot) -> FaultResult:
    """A step of 50 mm down into something rigid, at the driver's own speeds and the lab's link."""
    speed = ServoConfig.step_speed_m_s
    with Rig(arm=robot.arm, profile=robot.profile, link=LAB_LINK, step_speed_m_s=speed) as rig:
        rig.take_over()
        trial = run_trial(rig, np.random.default_rng(3), towards=(0, 0, -1))
    observed = (
        f"{'noticed' if trial.noticed else 'NOT noticed'}, {trial.largest_force_n:.0f} N, "
        f"lag {trial.largest_lag_mm:.1f} mm"
    )
    passed = trial.noticed and not trial.protective_stop
    travel = Travel(trial.travel_mm, trial.standstill_s, trial.speed_mm_s)
    return FaultResult(
        "table contact at full speed", "noticed, no protective stop", observed, travel, None, passed
    )


OPERATOR_CASES: tuple[FaultCase, ...] = (
    _slowed("speed slider at 20 %", "set_speed_slider", fraction=_SLIDER),
    _slowed("reduced mode", "set_reduced_mode", on=True),
    on_a_rig("hold in mid-episode", _held),
    on_a_rig("play after a protective stop", _program_paused),
    _refused_take_over("wrist 3 wound up", _place(_wound_joints), "wound_joint"),
    _refused_take_over("wrong branch", _place(_wrong_branch_joints), "wrong_branch"),
    _refused_take_over("wrong model", lambda rig: None, "wrong_model", robot_model="ur10"),
    repeatable("gripper without power at take-over", _late_gripper, strict_only=True),
    repeatable("table contact at full speed", _contact, strict_only=True),
)
