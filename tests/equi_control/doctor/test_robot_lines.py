# SPDX-License-Identifier: MIT
"""The doctor's lines about the robot: one defect each, injected into an emulated controller."""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from equi_control.doctor import main as doctor
from equi_control.doctor.finding import Finding, Verdict, fail
from equi_control.doctor.gripper import check_gripper
from equi_control.doctor.network import check_stream
from equi_control.rtde.config import LinkConfig
from equi_control.rtde.dashboard import Dashboard
from equi_control.rtde.rtde_link import RtdeLink
from equi_control.rtde.rtde_session import RtdeSession
from equi_control.servo.config import ServoConfig
from equi_core.motion.ur5_kinematics import HOME_RAD
from ur_emulator.arms import KinematicArm
from ur_emulator.constants import MODELS, Ports, RobotModel
from ur_emulator.controller.safety_system import Delays
from ur_emulator.launching import EmulatorProcess, free_address
from ur_emulator.mechanics.kinematics import Kinematics
from ur_emulator.mechanics.links import LINKS
from ur_emulator.robot import EmulatedRobot

LISTEN_S = 0.3


@pytest.fixture(scope="module")
def emulators() -> Iterator[dict[str, EmulatorProcess]]:
    """A UR5 and a UR5e, set up as the pendant's installation of a good cell would be."""
    own_links = {"own_links": True}
    with (
        EmulatorProcess(model="ur5") as cb3,
        EmulatorProcess(model="ur5e", behaviours=own_links) as e_series,
    ):
        for name, emulator in (("ur5", cb3), ("ur5e", e_series)):
            emulator.api.request("freedrive_joints", joints_rad=list(HOME_RAD))
            with RtdeLink(LinkConfig(emulator.address, robot_model=name)):
                pass  # sets TCP and payload, moves nothing
        yield {"ur5": cb3, "ur5e": e_series}


def servo(address: str, model: str = "ur5") -> ServoConfig:
    return ServoConfig(LinkConfig(address, robot_model=model))


def lines(config: ServoConfig) -> dict[str, Finding]:
    return {finding.check: finding for finding in doctor.robot_findings(config, LISTEN_S)}


@pytest.mark.parametrize("model", ["ur5", "ur5e"])
def test_a_robot_that_is_set_up_well_has_no_complaint(
    emulators: dict[str, EmulatorProcess], model: str
) -> None:
    found = lines(servo(emulators[model].address, model))
    # The load of the machine that runs the tests is no property of the emulated robot.
    timed = {"RTDE stream", "round trip"}
    assert {name for name, line in found.items() if line.verdict is not Verdict.OK} <= timed
    assert len(found) == 16


def _request(op: str, **arguments: object) -> Callable[[EmulatorProcess], None]:
    return lambda emulator: emulator.api.request(op, **arguments) and None


def _emergency_stop(emulator: EmulatorProcess) -> None:
    emulator.api.request("emergency_stop")
    emulator.api.request("release_emergency_stop")


DEFECTS: list[tuple[str, str, Callable[[EmulatorProcess], None], Verdict, str]] = [
    ("speed slider", "ur5", _request("set_speed_slider", fraction=0.3), Verdict.WARN, "100 %"),
    ("speed slider", "ur5", _request("set_speed_slider", fraction=0.0), Verdict.FAIL, "pendant"),
    ("safety mode", "ur5", _request("protective_stop"), Verdict.FAIL, "enable the robot"),
    ("robot mode", "ur5", _emergency_stop, Verdict.FAIL, "release the brakes"),
    ("safety mode", "ur5e", _request("set_reduced_mode", on=True), Verdict.WARN, "reduced"),
    ("remote control", "ur5e", _request("set_remote_control", on=False), Verdict.FAIL, "Remote"),
    (
        "round trip",
        "ur5",
        _request("delay", service="dashboard", seconds=0.04),
        Verdict.FAIL,
        "cab",
    ),
    (
        "wrist winding",
        "ur5",
        _request("freedrive_joints", joints_rad=[*HOME_RAD[:5], math.radians(350)]),
        Verdict.FAIL,
        "whole turn",
    ),
    (
        "wrist winding",
        "ur5",
        _request("freedrive_joints", joints_rad=[*HOME_RAD[:5], math.radians(-270)]),
        Verdict.WARN,
        "whole turn",
    ),
]


@pytest.fixture
def fresh(request: pytest.FixtureRequest) -> Iterator[EmulatorProcess]:
    """An emulator of its own for a defect that stays."""
    with EmulatorProcess(model=request.param) as emulator:
        emulator.api.request("freedrive_joints", joints_rad=list(HOME_RAD))
        yield emulator


@pytest.mark.parametrize(
    ("check", "model", "inject", "verdict", "repair"),
    DEFECTS,
    ids=[f"{row[0]} {row[3].name} {index}" for index, row in enumerate(DEFECTS)],
)
def test_a_defect_is_named_in_its_line_with_its_repair(
    emulators: dict[str, EmulatorProcess],
    check: str,
    model: str,
    inject: Callable[[EmulatorProcess], None],
    verdict: Verdict,
    repair: str,
) -> None:
    emulator = emulators[model]
    inject(emulator)
    try:
        found = lines(servo(emulator.address, model))
    finally:
        make_good(emulator, model)
    assert found[check].verdict is verdict
    assert repair in found[check].repair


def make_good(emulator: EmulatorProcess, model: str) -> None:
    api = emulator.api
    api.request("clear_faults")
    api.request("set_speed_slider", fraction=1.0)
    api.request("set_reduced_mode", on=False)
    if model == "ur5e":
        api.request("set_remote_control", on=True)
    if api.status()["safety_mode"] != "NORMAL" or api.status()["robot_mode"] != "RUNNING":
        recover(emulator.address)
    api.request("freedrive_joints", joints_rad=list(HOME_RAD))


def recover(address: str) -> None:
    """What a person does at the pendant; the emulator's delays are short."""
    with Dashboard(address) as dashboard:
        for command in ("unlock protective stop", "power on", "brake release"):
            wait_for_answer(dashboard, command)


def wait_for_answer(dashboard: Dashboard, command: str) -> None:
    deadline_s = time.monotonic() + 5.0
    while time.monotonic() < deadline_s:
        dashboard.ask(command)
        state = dashboard.ask("robotmode") + dashboard.ask("safetymode")
        if command == "unlock protective stop" and "PROTECTIVE" not in state:
            return
        if command == "power on" and any(mode in state for mode in ("IDLE", "RUNNING")):
            return
        if command == "brake release" and "RUNNING" in state:
            return
        time.sleep(0.02)
    raise AssertionError(f"'{command}' had no effect")


@pytest.mark.parametrize("fresh", ["ur5"], indirect=True)
def test_an_installation_without_tool_is_noticed_in_tcp_and_payload(fresh: EmulatorProcess) -> None:
    found = lines(servo(fresh.address))
    assert found["TCP"].verdict is Verdict.WARN
    assert "(cell: 0, 0, 169 mm)" in found["TCP"].found
    assert found["payload"].verdict is Verdict.WARN
    assert "0.95 kg" in found["payload"].found
    # No tool at all is a known state: the links are still seen to be right.
    assert found["kinematics"].verdict is Verdict.OK


def test_other_links_than_those_of_the_model_are_noticed() -> None:
    with EmulatorProcess(model="ur5e") as emulator:  # an e-Series controller with a UR5's links
        found = lines(servo(emulator.address, "ur5e"))
    assert found["robot model"].verdict is Verdict.OK
    assert found["kinematics"].verdict is Verdict.FAIL
    assert "link.robot_model" in found["kinematics"].repair


def test_another_arm_than_the_cells_is_named(emulators: dict[str, EmulatorProcess]) -> None:
    found = lines(servo(emulators["ur5e"].address, "ur5"))
    assert found["robot model"].verdict is Verdict.FAIL
    assert "ur5e, the cell file says ur5" in found["robot model"].found


def test_registers_held_by_another_client_are_named_and_given_back(
    emulators: dict[str, EmulatorProcess],
) -> None:
    config = servo(emulators["ur5"].address)
    with RtdeSession(config.link.host) as other:
        assert other.taken_inputs(["input_int_register_0"]) == []
        held = lines(config)["registers"]
    assert held.verdict is Verdict.FAIL
    assert "input_int_register_0" in held.found
    assert lines(config)["registers"].verdict is Verdict.OK


def test_a_stream_that_loses_packages_is_a_failure_of_the_wiring(
    emulators: dict[str, EmulatorProcess],
) -> None:
    emulator = emulators["ur5"]
    lossy = threading.Timer(
        0.1, emulator.api.request, ("drop",), {"service": "rtde", "fraction": 0.5}
    )
    with RtdeSession(emulator.address) as session:
        lossy.start()
        samples = session.read(["timestamp"], 0.6)
        lossy.join()
        emulator.api.request("clear_faults")
    found = check_stream(samples)
    assert found.verdict is Verdict.FAIL
    assert "cable" in found.repair


@contextmanager
def software(version: tuple[int, int, int, int], polyscope: str = "") -> Iterator[str]:
    """An emulated UR5 whose controller has this version, in a thread of the test."""

    class Reported(RobotModel):
        @property
        def polyscope_version(self) -> str:
            return polyscope or super().polyscope_version

    fields = dataclasses.asdict(MODELS["ur5"]) | {"version": version}
    address = free_address()
    robot = EmulatedRobot(
        address,
        Ports(),
        Reported(**fields),
        KinematicArm(Kinematics(LINKS["ur5"], 0)),
        Delays().scaled(0.05),
    )
    thread = threading.Thread(target=robot.run, daemon=True)
    thread.start()
    try:
        yield address
    finally:
        robot.request_shutdown()
        thread.join(5.0)


@pytest.mark.parametrize(
    ("version", "polyscope", "check", "verdict"),
    [
        ((3, 3, 4, 1), "", "RTDE version", Verdict.FAIL),
        ((5, 25, 0, 1), "", "RTDE version", Verdict.WARN),
        ((3, 15, 8, 1), "URSoftware 3.14.0.1", "PolyScope", Verdict.FAIL),
        ((3, 15, 8, 1), "URSoftware ?", "PolyScope", Verdict.WARN),
    ],
)
def test_software_that_does_not_fit_is_named(
    version: tuple[int, int, int, int], polyscope: str, check: str, verdict: Verdict
) -> None:
    with software(version, polyscope) as address:
        found = lines(servo(address))
    assert found[check].verdict is verdict
    assert found[check].repair


def test_a_gripper_without_power_is_noticed(emulators: dict[str, EmulatorProcess]) -> None:
    emulator = emulators["ur5"]
    emulator.api.request("refuse", service="gripper")
    try:
        found = check_gripper(emulator.address)
    finally:
        emulator.api.request("refuse", service="gripper", on=False)
    assert found.verdict is Verdict.FAIL
    assert "24 V" in found.repair
    waiting = check_gripper(emulator.address)
    assert (waiting.verdict, "keep them clear" in waiting.repair) == (Verdict.WARN, True)


def test_a_controller_that_is_off_gives_one_failure_per_port_and_skips_the_rest() -> None:
    found = lines(servo(free_address()))
    failed = [name for name, line in found.items() if line.verdict is Verdict.FAIL]
    assert failed == ["RTDE", "dashboard"]
    assert all(
        line.verdict is Verdict.SKIPPED for name, line in found.items() if name not in failed
    )


def test_an_unknown_address_is_one_sentence_and_a_wrong_argument(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert doctor.main(["--robot-ip", "no.such.robot.invalid", "--cell", "lab"]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert "'no.such.robot.invalid' is neither an IP address nor a known host name" in said.err
    assert said.out == ""


def test_no_line_complains_without_saying_what_to_do() -> None:
    with pytest.raises(ValueError, match="has no repair"):
        fail("TCP", "wrong", "")


def test_looking_sends_no_command_to_the_arm(
    emulators: dict[str, EmulatorProcess], tmp_path: Path
) -> None:
    emulator = emulators["ur5"]
    path = tmp_path / "rows.npy"
    emulator.api.request("record_start")
    lines(servo(emulator.address))
    emulator.api.request("record_save", path=str(path))
    rows = np.load(path)
    assert len(rows) > 10
    assert not rows["command"].any()
    assert np.ptp(rows["actual_q"], axis=0).max() == 0.0
