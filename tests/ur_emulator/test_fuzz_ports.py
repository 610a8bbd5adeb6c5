# SPDX-License-Identifier: MIT
"""Every parser behind a port, over mutated and made-up input: only its own errors leave it.

make fuzz                            # 10,000 cases per parser
"""

from __future__ import annotations

import json
import math
import struct
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, reject
from hypothesis import strategies as st
from mutations import fuzzed, mutated

from ur_emulator.arms import KinematicArm
from ur_emulator.conformance_file import ConformanceFile, ConformanceFileError, RobotIdentity
from ur_emulator.constants import MODELS, RuntimeState
from ur_emulator.controller.controller import Controller
from ur_emulator.controller.safety_system import Delays
from ur_emulator.controller.script_text import ScriptError, Upload, UploadReader
from ur_emulator.lines import LineTooLongError
from ur_emulator.mechanics.kinematics import HOME_RAD, Kinematics
from ur_emulator.mechanics.links import LINKS
from ur_emulator.profile import STRICT
from ur_emulator.protocols import rtde_wire as wire
from ur_emulator.protocols.control_api import ControlSession
from ur_emulator.protocols.dashboard import DashboardSession
from ur_emulator.protocols.robotiq_server import GripperTiming, RobotiqSession, RobotiqUnit
from ur_emulator.protocols.rtde_server import RtdeSession

pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(3600)]


class Wire:
    """The emulator's side of a connection: keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.is_open = True

    def send(self, data: bytes, *, droppable: bool = False) -> None:
        self.sent.append(data)

    def close(self) -> None:
        self.is_open = False


class Robot:
    """A whole robot without its sockets."""

    def __init__(self) -> None:
        arm = KinematicArm(Kinematics(LINKS["ur5"]), STRICT)
        self.controller = Controller(MODELS["ur5"], arm, Delays().scaled(0.0), STRICT)
        self.robotiq = RobotiqUnit(arm.gripper, GripperTiming(0.1))
        self.network = None

    def restart(self, boot_s: float | None) -> None:
        self.controller.boot(powered=True)

    def statistics(self) -> dict[str, Any]:
        return {}

    def request_shutdown(self) -> None:
        """Nothing runs."""


SCRIPT = (
    b"def rtde_control():\n # int register offset\n24 x\n def exec_move_path():\n"
    b"  # inject move path\n  movej([0,-1.5,1.5,0,0,1e-05],a=1.4,v=1.05,r=0.01)\n"
    b"  movel(p[0.1,-0.2,0.3,0,3.14,0],a=1.2,v=0.25,r=0)\n end\nend\n"
)


@fuzzed(mutated(SCRIPT))
def test_uploaded_scripts(data: bytes) -> None:
    try:
        uploads = UploadReader().feed(data)
        for upload in uploads:
            offset, path = upload.register_offset, upload.path
            assert offset in (0, 24)
            assert all(math.isfinite(value) for move in path for value in move.values)
    except (ScriptError, LineTooLongError):
        pass


def recipe(kind: int, names: bytes) -> bytes:
    frequency = struct.pack(">d", 125.0) if kind == wire.SETUP_OUTPUTS else b""
    return wire.encode_package(kind, frequency + names)


RTDE = (
    wire.encode_package(wire.PROTOCOL_VERSION, struct.pack(">H", 2))
    + wire.encode_package(wire.CONTROLLER_VERSION)
    + recipe(wire.SETUP_OUTPUTS, b"timestamp,actual_q,output_int_register_0,")
    + recipe(wire.SETUP_INPUTS, b"input_int_register_0,input_double_register_0,")
    + recipe(wire.SETUP_INPUTS, b"speed_slider_mask,speed_slider_fraction,")
    + wire.encode_package(wire.START)
    + wire.encode_package(wire.DATA, b"\x01" + struct.pack(">id", 11, 0.5))
    + wire.encode_package(wire.DATA, b"\x02" + struct.pack(">Id", 1, 0.5))
)


@fuzzed(mutated(RTDE))
def test_rtde_packages(data: bytes) -> None:
    robot = _ROBOT
    session = RtdeSession(Wire(), robot.controller)  # type: ignore[arg-type]
    session.received(data)
    session.closed()
    assert 0.0 <= robot.controller.registers.speed_slider <= 1.0


DASHBOARD = (
    b"running\nprogramState\nplay\npause\nstop\nsafetymode\nload x\npopup y\nPolyscopeVersion\n"
)


@fuzzed(mutated(DASHBOARD))
def test_dashboard_lines(data: bytes) -> None:
    connection = Wire()
    session = DashboardSession(connection, _ROBOT.controller)  # type: ignore[arg-type]
    try:
        session.received(data)
    except LineTooLongError:
        return
    for answer in connection.sent:
        assert answer.endswith(b"\n")


GRIPPER = b"SET ACT 1\nSET POS 255 SPE 128 FOR 0 GTO 1\nGET POS\nGET OBJ\nGET ZZZ\nSET ATR 0\n"


@fuzzed(mutated(GRIPPER))
def test_gripper_lines(data: bytes) -> None:
    unit = _ROBOT.robotiq
    session = RobotiqSession(Wire(), unit)  # type: ignore[arg-type]
    try:
        session.received(data)
    except LineTooLongError:
        return
    unit.advance(0.008)
    assert 0.0 <= _ROBOT.controller.arm.gripper.opening_m <= 0.085


# Operations that touch the file system or the network of the emulator are left out.
REQUESTS = [
    {"op": "status"},
    {"op": "jog", "dxyz_m": [0.0, 0.0, 0.01]},
    {"op": "freedrive_move", "dxyz_m": [0.0, 0.01, 0.0]},
    {"op": "freedrive_joints", "joints_rad": [0.0, -1.5, 1.5, -1.5, -1.5, 0.0]},
    {"op": "set_speed_slider", "fraction": 0.5},
    {"op": "add_obstacle", "centre_m": [0.5, 0.0, 0.1], "size_m": [0.1, 0.1, 0.1], "yaw_rad": 0.1},
    {"op": "set_factory_kinematics", "seed": 2},
    {"op": "place_object", "width_m": 0.05},
    {"op": "set_scene", "scene": {"objects": []}},
]
API = b"".join(json.dumps(request).encode() + b"\n" for request in REQUESTS)


@fuzzed(mutated(API))
def test_control_api_lines(data: bytes) -> None:
    assume(b"record_save" not in data and b"shutdown" not in data)
    connection = Wire()
    try:
        ControlSession(connection, _ROBOT).received(data)  # type: ignore[arg-type]
    except LineTooLongError:
        return
    for answer in connection.sent:
        assert isinstance(json.loads(answer)["ok"], bool)
    _ROBOT.controller.cycle()
    _ROBOT.controller.arm.obstacles = ()


CONFORMANCE = ConformanceFile(RobotIdentity("a", "1", "ur5", "3.15"), unlock_delay_s=5.0).to_json()


@fuzzed(mutated(CONFORMANCE.encode()))
def test_conformance_files(data: bytes) -> None:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        reject()
    with suppress(ConformanceFileError):
        ConformanceFile.from_json(text)


START = Upload("rtde_control", "def rtde_control():\n # int register offset\n0\nend")
doubles = st.one_of(
    st.floats(),
    st.floats(-7.0, 7.0),
    st.sampled_from([0.0, math.nan, math.inf, 1e300, -1e-300, 1e6, 0.008]),
)


@fuzzed(st.integers(-1, 260), st.lists(doubles, min_size=18, max_size=18), st.integers(0, 1))
def test_commands_in_registers(command: int, values: list[float], asynchronous: int) -> None:
    """Whatever is asked for, the controller's cycle goes on and its state stays finite."""
    controller = _ROBOT.controller
    if controller.runtime_state is not RuntimeState.PLAYING or not controller.safety.normal:
        controller.boot(powered=True)
        controller.arm.place(np.array(HOME_RAD))
        controller.boot(powered=True)
        controller.upload(START)
        controller._upload = (0.0, START)
        controller.cycle()
    registers = controller.registers
    registers.input_ints[:2] = [command, asynchronous]
    registers.input_doubles[:18] = values
    for _ in range(3):
        controller.cycle()
    registers.input_ints[0] = 0
    controller.cycle()
    for value in (*controller.target.joints_rad, *controller.arm.joints_rad):
        assert math.isfinite(value)


_ROBOT = Robot()
