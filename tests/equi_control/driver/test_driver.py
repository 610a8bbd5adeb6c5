# SPDX-License-Identifier: MIT
"""The driver on the emulated robot: steps, refusals, latched faults, and no jump on resume.

Limits on ages are wide, because a loaded test machine is no reason to fail; the strict defaults
are rehearsed by `equi-faults` and `equi-bench servo`.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from equi_control.driver.driver import Refused
from equi_control.driver.state import DriverState, FaultCode
from equi_control.driver.steps import Outcome, StepReport
from equi_control.servo.shared_state import Phase
from equi_core.motion.safety import StepCommand
from equi_core.motion.safety_limits import SafetyLimits
from equi_system_tests.faults.fault_table import resume_motion_mm
from equi_system_tests.faults.rig import Rig

LATE_S = 0.05
# Only a command that is older than this is stale; none of this module's own may be.
LIMITS = SafetyLimits(max_state_age_s=90.0, max_command_age_s=30.0)


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with Rig.patient(limits=LIMITS) as running:
        yield running


@pytest.fixture
def ready(rig: Rig, request: pytest.FixtureRequest) -> Rig:
    """The driver in HOLD at home, in an episode of this test's own."""
    if rig.driver.state is DriverState.IDLE:
        rig.take_over()
    rig.driver.go_home()
    rig.until(lambda: not rig.driver.homing, "home")
    rig.wait_for_standstill()
    rig.begin_episode(request.node.name)
    return rig


def only(reports: list[StepReport]) -> StepReport:
    assert len(reports) == 1
    return reports[0]


def test_nothing_moves_on_start_up_and_commands_are_refused_until_activation(rig: Rig) -> None:
    before = rig.emulator.api.status()["actual_q"]
    rig.until(lambda: rig.servo_state.phase is Phase.IDLE, "connected")

    report = only(rig.submit((0.05, 0.0, 0.0)))
    with pytest.raises(Refused, match="activate"):
        rig.driver.go_home()
    rig.wait_for_standstill()

    assert rig.driver.state is DriverState.IDLE
    assert report.outcome is Outcome.REJECTED
    assert report.reasons[0].startswith("not_active")
    np.testing.assert_array_equal(rig.emulator.api.status()["actual_q"], before)
    assert rig.emulator.api.status()["servoing"] is False


def test_a_step_is_executed_as_asked_and_reported_once(ready: Rig) -> None:
    start = ready.measured_m()

    reports = ready.submit((0.02, -0.03, -0.04), yaw_rad=0.2) + ready.finish_step()

    report = only(reports)
    assert report.outcome is Outcome.COMPLETED
    assert report.reasons == ()
    np.testing.assert_allclose(ready.measured_m() - start, (0.02, -0.03, -0.04), atol=5e-4)
    np.testing.assert_allclose(report.executed.step_m, (0.02, -0.03, -0.04), atol=1e-9)
    np.testing.assert_allclose(report.end_pose, report.target_pose, atol=2e-3)
    assert ready.driver.state is DriverState.HOLD
    assert ready.driver.executed_steps == 1
    # The servo process takes up the target after the command was received, and long before its end.
    assert report.received_s < report.motion_start_s < report.ended_s


def test_a_step_out_of_the_box_is_clipped_to_its_edge_and_says_so(ready: Rig) -> None:
    ready.submit((0.0, 0.0, 0.04))
    ready.finish_step()

    report = only(ready.submit((0.0, 0.0, 0.05)) + ready.finish_step())

    assert report.outcome is Outcome.CLIPPED
    assert report.reasons[0].startswith("workspace_clipped")
    assert ready.measured_m()[2] == pytest.approx(0.25, abs=5e-4)
    assert report.executed.step_m[2] == pytest.approx(0.01, abs=1e-6)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"step_m": (float("nan"), 0.0, 0.0)}, "not_finite"),
        ({"age_s": 31.0}, "stale_command"),
        ({"step_index": 7}, "out_of_order"),
        ({"episode_id": "yesterday"}, "foreign_episode"),
        ({"observation_age_s": 60.0}, "stale_observation"),
    ],
)
def test_what_must_not_be_done_is_refused_with_a_code_and_nothing_moves(
    ready: Rig, change: dict[str, Any], code: str
) -> None:
    before = ready.measured_m()
    requested: dict[str, Any] = {
        "episode_id": ready.driver.episode_id,
        "step_index": 0,
        "closedness": 0.0,
        "step_m": (0.05, 0.0, 0.0),
        "yaw_rad": 0.0,
        "age_s": 0.0,
    }

    report = only(ready.driver.submit(StepCommand(**{**requested, **change})))
    ready.wait_for_standstill()

    assert report.outcome is Outcome.REJECTED
    assert report.reasons[0].startswith(code)
    assert report.executed.step_m == (0.0, 0.0, 0.0)
    assert ready.driver.executed_steps == 0
    np.testing.assert_allclose(ready.measured_m(), before, atol=1e-4)


def test_a_newer_command_takes_over_in_mid_motion_and_both_are_reported(ready: Rig) -> None:
    ready.start_moving()

    reports = ready.submit((0.0, 0.0, 0.02)) + ready.finish_step()

    assert [report.outcome for report in reports] == [Outcome.INTERRUPTED, Outcome.COMPLETED]
    assert "newer command" in reports[0].reasons[0]


def test_hold_stops_on_the_way(ready: Rig) -> None:
    for _ in range(10):
        ready.start_moving()
        since_fast_s = time.monotonic() - ready.servo_state.heartbeat_s
        report = only(ready.driver.hold())
        ready.wait_for_standstill()
        if since_fast_s < LATE_S:
            break
        ready.driver.resume()  # this computer stood still, the arm went on to its target: once more
    assert since_fast_s < LATE_S, "this computer stands still all the time"

    assert report.outcome is Outcome.INTERRUPTED
    assert ready.driver.state is DriverState.PAUSED
    # A whole step would have been 73 mm long.
    assert np.linalg.norm(ready.measured_m() - report.start_pose[:3, 3]) < 0.06
    ready.driver.resume()
    assert ready.driver.state is DriverState.HOLD


def test_squeezing_a_held_object_a_little_differently_does_not_lose_it(ready: Rig) -> None:
    ready.emulator.api.request("place_object", width_m=0.05)
    for closedness in (0.99, 0.97, 1.0):
        report = only(ready.submit((0.0, 0.0, 0.0), closedness=closedness) + ready.finish_step())
        assert report.holding
        assert not any("object_lost" in reason for reason in report.reasons)
    assert "object_lost" not in ready.driver.notice


def test_an_object_is_held_reported_and_its_loss_noticed(ready: Rig) -> None:
    ready.emulator.api.request("place_object", width_m=0.05)
    report = only(ready.submit((0.0, 0.0, 0.0), closedness=1.0) + ready.finish_step())
    assert report.holding
    assert report.opening == pytest.approx(0.05 / 0.085, abs=0.02)

    ready.emulator.api.request("lose_object")
    ready.until(lambda: not ready.driver.gripper_report.holding, "holding turns false")
    ready.until(lambda: "object_lost" in ready.driver.notice, "the loss is noticed")

    ready.submit((0.0, 0.0, 0.0), closedness=0.0)
    ready.finish_step()

    # The next episode does not begin with the loss of the last one.
    ready.begin_episode(ready.driver.episode_id)
    assert ready.driver.notice
    ready.begin_episode("after the loss")
    assert not ready.driver.notice


def test_fingers_that_do_not_move_are_a_fault_and_no_grasp(ready: Rig) -> None:
    ready.emulator.api.request("gripper_jam", on=True)

    report = only(ready.submit((0.0, 0.0, 0.0), closedness=1.0) + ready.finish_step())

    assert report.outcome is Outcome.INTERRUPTED
    assert "jammed" in report.reasons[-1]
    assert not report.holding
    assert ready.driver.fault is not None
    assert ready.driver.fault.code is FaultCode.GRIPPER

    # Freed and reset, the driver can be used again.
    ready.emulator.api.request("gripper_jam", on=False)
    ready.reset_fault()
    ready.driver.activate()
    ready.until(lambda: ready.driver.state is DriverState.HOLD, "the driver holds the arm again")
    ready.begin_episode("after the jam")
    report = only(ready.submit((0.0, 0.0, 0.0), closedness=0.0) + ready.finish_step())
    assert report.outcome is Outcome.COMPLETED
    assert report.opening > 0.95


def lose_gripper(rig: Rig) -> None:
    rig.emulator.api.request("refuse", service="gripper", on=True)
    rig.emulator.api.request("cut", service="gripper")
    rig.until(lambda: not rig.driver.gripper_report.connected, "the gripper is lost")


def give_gripper_back(rig: Rig) -> None:
    rig.emulator.api.request("refuse", service="gripper", on=False)
    rig.until(lambda: rig.driver.gripper_report.connected, "the gripper is back")


def watch(rig: Rig, duration_s: float) -> None:
    until_s = time.monotonic() + duration_s
    rig.until(lambda: time.monotonic() > until_s, "watched for a while")


def test_after_a_fault_the_fingers_do_not_move_unasked_nor_the_fault_clear_by_itself(
    ready: Rig,
) -> None:
    opening_m = ready.emulator.api.status()["gripper_opening_m"]
    ready.submit((0.0, 0.0, 0.0), closedness=1.0)
    lose_gripper(ready)
    ready.until(lambda: ready.driver.state is DriverState.FAULT, "the fault")
    assert ready.driver.fault is not None
    assert ready.driver.fault.code is FaultCode.GRIPPER

    # The gripper comes back: nothing happens until somebody asks for it.
    give_gripper_back(ready)
    watch(ready, 0.5)
    still_m = ready.emulator.api.status()["gripper_opening_m"]
    assert still_m == pytest.approx(opening_m, abs=1e-3)

    # A reset that waits for the gripper in vain is given up and says so; the fault stays.
    lose_gripper(ready)
    ready.driver.begin_reset(FaultCode.GRIPPER, ready.driver.fault_count)
    ready.until(lambda: ready.servo_state.phase is Phase.IDLE, "the robot is connected")
    watch(ready, 0.3)
    assert ready.driver.resetting
    assert "gripper" in ready.driver.abort_reset()
    give_gripper_back(ready)
    watch(ready, 0.3)
    assert ready.driver.state is DriverState.FAULT

    # And the same request is sent when it is made again.
    ready.reset_fault()
    ready.driver.activate()
    ready.until(lambda: ready.driver.state is DriverState.HOLD, "the driver holds the arm again")
    ready.begin_episode("after the gripper")
    report = only(ready.submit((0.0, 0.0, 0.0), closedness=1.0) + ready.finish_step())
    assert report.opening < 0.1
    ready.submit((0.0, 0.0, 0.0), closedness=0.0)
    ready.finish_step()


def test_a_take_over_can_be_called_off_and_the_driver_used_again(ready: Rig) -> None:
    ready.start_moving()
    report = only(ready.driver.deactivate())
    assert report.outcome is Outcome.INTERRUPTED
    assert "deactivated" in report.reasons[-1]
    ready.until(lambda: ready.servo_state.phase is Phase.IDLE, "the arm is let go")

    # Without its gripper the driver streams, but does not hold the arm yet.
    lose_gripper(ready)
    ready.driver.activate()
    ready.until(lambda: ready.servo_state.phase is Phase.STREAMING, "the arm is driven")
    assert ready.driver.state is DriverState.IDLE
    assert ready.driver.deactivate() == []
    ready.until(lambda: ready.servo_state.phase is Phase.IDLE, "the arm is let go")
    assert ready.emulator.api.status()["servoing"] is False

    give_gripper_back(ready)
    ready.driver.activate()
    ready.until(lambda: ready.driver.state is DriverState.HOLD, "the driver holds the arm again")


def test_a_reset_with_the_button_still_pressed_keeps_the_emergency_stop(ready: Rig) -> None:
    ready.emulator.api.request("emergency_stop")
    ready.until(lambda: ready.driver.state is DriverState.FAULT, "the fault")

    ready.driver.begin_reset(FaultCode.EMERGENCY_STOP, ready.driver.fault_count)
    ready.until(lambda: not ready.driver.resetting, "the early reset ends")

    assert ready.driver.fault is not None
    assert ready.driver.fault.code is FaultCode.EMERGENCY_STOP
    assert "release the button" in ready.driver.fault.operator_action

    ready.recover_robot()
    ready.reset_fault()


def test_a_protective_stop_latches_and_nothing_jumps_when_it_is_over(ready: Rig) -> None:
    ready.start_moving()

    ready.emulator.api.request("protective_stop")
    reports = ready.until(lambda: ready.driver.state is DriverState.FAULT, "the fault")

    assert only(reports).outcome is Outcome.INTERRUPTED
    assert ready.driver.fault is not None
    assert ready.driver.fault.code is FaultCode.PROTECTIVE_STOP
    assert only(ready.submit((0.01, 0.0, 0.0))).reasons[0].startswith("fault")
    with pytest.raises(Refused, match="reset it first"):
        ready.driver.activate()
    with pytest.raises(Refused, match="PROTECTIVE_STOP"):
        ready.driver.begin_reset(FaultCode.GRIPPER, ready.driver.fault_count)

    # An operator who resets before unlocking gets the fault back.
    seen = ready.driver.fault_count
    ready.driver.begin_reset(FaultCode.PROTECTIVE_STOP, seen)
    ready.until(lambda: not ready.driver.resetting, "the early reset ends")
    assert ready.driver.state is DriverState.FAULT
    # That is a second fault of the same code: whoever has seen only the first may not reset it.
    assert ready.driver.fault_count == seen + 1
    for stale in (seen, 0):
        with pytest.raises(Refused, match=f"fault_count {stale} was acknowledged"):
            ready.driver.begin_reset(FaultCode.PROTECTIVE_STOP, stale)
    assert not ready.driver.resetting

    assert resume_motion_mm(ready) < 0.5
    ready.begin_episode("after the stop")
    report = only(ready.submit((0.0, 0.0, 0.02)) + ready.finish_step())
    assert report.outcome is Outcome.COMPLETED


def test_a_dead_servo_process_is_a_fault(ready: Rig) -> None:
    pid = ready.driver.servo_pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)

    ready.until(lambda: ready.driver.state is DriverState.FAULT, "the fault")

    assert ready.driver.fault is not None
    assert ready.driver.fault.code is FaultCode.SERVO_FAILED
    ready.recover_robot()
    ready.reset_fault()
    assert ready.driver.state is DriverState.IDLE
