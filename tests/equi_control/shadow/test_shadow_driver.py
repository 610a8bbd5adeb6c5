# SPDX-License-Identifier: MIT
"""Shadow mode on an emulated controller: everything is checked and reported, nothing moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from families import wait_until

from equi_control.driver.config import DriverConfig
from equi_control.driver.driver import Refused
from equi_control.driver.state import DriverState, FaultCode
from equi_control.driver.steps import Outcome, StepReport
from equi_control.rtde.config import LinkConfig
from equi_control.servo.config import ServoConfig
from equi_control.shadow.shadow_driver import ShadowDriver
from equi_core.geometry import top_down_pose
from equi_core.motion.safety import StepCommand
from equi_core.motion.ur5_kinematics import HOME_RAD, inverse_near
from ur_emulator.launching import EmulatorProcess

EPISODE = "shadow-1"


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorProcess]:
    with EmulatorProcess(model="ur5") as running:
        tcp = ServoConfig(LinkConfig(running.address)).link.geometry.flange_from_tcp
        flange = top_down_pose((0.5, 0.0, 0.2), 0.0) @ np.linalg.inv(tcp)
        joints = inverse_near(flange, HOME_RAD)
        running.api.request("freedrive_joints", joints_rad=joints.tolist())
        yield running


@pytest.fixture
def driver(emulator: EmulatorProcess) -> Iterator[ShadowDriver]:
    made = ShadowDriver(DriverConfig(ServoConfig(LinkConfig(emulator.address))))
    made.connect()
    wait_until(lambda: made.ready_to_activate, 10.0, "the robot to be heard")
    made.poll()
    made.activate()
    made.begin_episode(EPISODE)
    yield made
    made.close()


def command(index: int, step_m: tuple[float, float, float], **changes: object) -> StepCommand:
    fields = {"closedness": 1.0, "yaw_rad": 0.1, "age_s": 0.01, **changes}
    return StepCommand(EPISODE, index, step_m=step_m, **fields)  # type: ignore[arg-type]


def only(reports: list[StepReport]) -> StepReport:
    (report,) = reports
    return report


def test_a_step_is_reported_as_it_would_be_and_nothing_is_sent_to_the_arm(
    driver: ShadowDriver, emulator: EmulatorProcess, tmp_path: Path
) -> None:
    emulator.api.request("record_start")
    before = emulator.api.status()
    for index in range(20):
        report = only(driver.submit(command(index, (0.02, -0.01, -0.03))))
        driver.poll()
    rows_file = tmp_path / "rows.npy"
    emulator.api.request("record_save", path=str(rows_file))
    rows, after = np.load(rows_file), emulator.api.status()
    assert report.outcome is Outcome.COMPLETED
    assert report.reasons[0] == "shadow: would step by 20, -10, -30 mm, 6 deg, gripper to 1.00"
    np.testing.assert_allclose(report.target_pose[:3, 3], [0.52, -0.01, 0.17], atol=1e-6)
    assert driver.executed_steps == 20
    assert not rows["command"].any()
    assert np.ptp(rows["target_q"], axis=0).max() == 0.0
    assert (after["gripper_opening_m"], after["runtime_state"]) == (
        before["gripper_opening_m"],
        "STOPPED",
    )


def test_the_policy_is_told_that_nothing_was_executed(driver: ShadowDriver) -> None:
    report = only(driver.submit(command(0, (0.02, 0.0, 0.0))))
    assert report.executed.step_m == (0.0, 0.0, 0.0)
    assert report.executed.yaw_rad == 0.0
    assert report.executed.closedness == pytest.approx(0.0, abs=0.02)
    np.testing.assert_allclose(report.end_pose, report.start_pose)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"age_s": 5.0}, "stale_command"),
        ({"step_m": (float("nan"), 0.0, 0.0)}, "not_finite"),
        ({"index": 3}, "out_of_order"),
    ],
)
def test_what_the_driver_would_refuse_is_refused_here(
    driver: ShadowDriver, changed: dict[str, object], reason: str
) -> None:
    fields: dict[str, object] = {"index": 0, "step_m": (0.0, 0.0, 0.0), **changed}
    report = only(driver.submit(command(**fields)))  # type: ignore[arg-type]
    assert report.outcome is Outcome.REJECTED
    assert report.reasons[0].startswith(reason)
    assert driver.executed_steps == 0


def test_a_clipped_step_says_so_after_what_it_would_do(driver: ShadowDriver) -> None:
    report = only(driver.submit(command(0, (0.3, 0.0, 0.0))))
    assert report.outcome is Outcome.CLIPPED
    assert report.reasons[0].startswith("shadow: would step by 50")
    assert len(report.reasons) > 1


def test_a_protective_stop_is_latched_and_reset_by_its_acknowledgement(
    driver: ShadowDriver, emulator: EmulatorProcess
) -> None:
    emulator.api.request("protective_stop")
    wait_until(lambda: driver.poll() == [] and driver.fault is not None, 5.0, "the fault")
    assert driver.fault is not None
    assert (driver.fault.code, driver.state) == (FaultCode.PROTECTIVE_STOP, DriverState.FAULT)
    assert only(driver.submit(command(0, (0.0, 0.0, 0.0)))).reasons[0].startswith("fault:")
    with pytest.raises(Refused, match="EMERGENCY_STOP was acknowledged"):
        driver.begin_reset(FaultCode.EMERGENCY_STOP, driver.fault_count)
    with pytest.raises(Refused, match="fault_count 0 was acknowledged, but 1 is latched"):
        driver.begin_reset(FaultCode.PROTECTIVE_STOP, 0)
    unlock(emulator.address)
    driver.begin_reset(FaultCode.PROTECTIVE_STOP, driver.fault_count)
    wait_until(lambda: driver.poll() == [] and driver.fault is None, 5.0, "the reset")
    assert driver.state is DriverState.IDLE


def unlock(address: str) -> None:
    from equi_control.rtde.dashboard import Dashboard

    with Dashboard(address) as dashboard:
        wait_until(
            lambda: (
                dashboard.ask("unlock protective stop") is not None
                and "NORMAL" in dashboard.ask("safetymode")
            ),
            5.0,
            "the unlocking",
        )


def test_the_tool_of_the_cell_counts_not_that_of_the_pendant(driver: ShadowDriver) -> None:
    # The emulated installation has no tool set; the cell file's TCP is computed from the joints.
    assert driver.servo_state is not None
    np.testing.assert_allclose(driver.servo_state.position_m, [0.5, 0.0, 0.2], atol=1e-6)


def test_a_lost_controller_is_a_fault(driver: ShadowDriver, emulator: EmulatorProcess) -> None:
    emulator.api.request("cut", service="rtde")
    wait_until(lambda: driver.poll() == [] and driver.fault is not None, 5.0, "the fault")
    assert driver.fault is not None
    assert driver.fault.code is FaultCode.CONNECTION_LOST


def test_shadow_modules_know_no_way_to_the_arm() -> None:
    import equi_control.shadow.listening_arm as arm
    import equi_control.shadow.shadow_driver as shadow

    for module in (arm, shadow):
        names = set(vars(module))
        assert not names & {"RtdeLink", "ServoProcess", "Arm", "Driver", "rtde_control"}
