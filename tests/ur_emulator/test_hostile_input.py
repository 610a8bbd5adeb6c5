# SPDX-License-Identifier: MIT
"""Whatever reaches the emulator's ports: no crash, no lost cycle, no client that hangs."""

from __future__ import annotations

import json
import math
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
import rtde_control
import rtde_receive

from ur_emulator import EmulatorProcess
from ur_emulator.controller.script_text import ScriptError, Upload, UploadReader
from ur_emulator.lines import LineReader, LineTooLongError
from ur_emulator.protocols import rtde_wire as wire

pytest_plugins = ["ur_emulator.pytest_plugin"]

DASHBOARD, SCRIPT, RTDE, GRIPPER, API = 29999, 30003, 30004, 63352, 29100
HOME = [0.0, -1.57, 1.57, -1.57, -1.57, 0.0]


def script(offset: str = "0", path: str = "") -> bytes:
    return (
        "def rtde_control():\n  global reg_offset_int = # int register offset\n"
        f"{offset}\n  def exec_move_path():\n    # inject move path\n{path}\n  end\nend\n"
    ).encode()


def cycles(emulator: EmulatorProcess) -> int:
    return int(emulator.api.status()["loop"]["cycles"])


def wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 10.0
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def run_cycles(emulator: EmulatorProcess, count: int) -> None:
    until = cycles(emulator) + count
    wait_until(lambda: cycles(emulator) >= until)


def assert_it_goes_on(emulator: EmulatorProcess) -> None:
    """Cycles are run, and a newcomer is served."""
    run_cycles(emulator, 20)
    with socket.create_connection((emulator.address, RTDE), 10.0) as client:
        client.sendall(wire.encode_package(wire.CONTROLLER_VERSION))
        answer = next_package(client)
    assert answer.kind == wire.CONTROLLER_VERSION, answer
    assert struct.unpack(">4I", answer.payload)[:2] == (3, 15)


def next_package(client: socket.socket) -> wire.Package:
    """The next whole RTDE package; TCP may deliver it in parts."""
    buffer = bytearray()
    while True:
        for package in wire.take_packages(buffer):
            return package
        data = client.recv(65_536)
        assert data, f"closed by the emulator after {bytes(buffer)!r}"
        buffer += data


def send_an_endless_line(client: socket.socket) -> None:
    for _ in range(1000):
        client.sendall(b"x" * 65_536)


PATH_MOVE = "    movej([{q}],a={a},v=1,r=0)\n"

HOSTILE = {
    "register offset 9999": (SCRIPT, script("9999")),
    "register offset of 5,000 digits": (SCRIPT, script("9" * 5000)),
    "path number 1.2.3": (SCRIPT, script(path=PATH_MOVE.format(q="0,0,0,0,0,1.2.3", a="1"))),
    "path acceleration 1.2.3": (SCRIPT, script(path=PATH_MOVE.format(q="0,0,0,0,0,0", a="1.2.3"))),
    "path of two joints": (SCRIPT, script(path=PATH_MOVE.format(q="0,0", a="1"))),
    "path number 1e999": (SCRIPT, script(path=PATH_MOVE.format(q="0,0,0,0,0,1e999", a="1"))),
    "script that is not UTF-8": (SCRIPT, b"def x():\n\xff\xfe\xff\nend\n"),
    "gripper position of 5,000 digits": (GRIPPER, b"SET POS " + b"9" * 5000 + b"\n"),
    "gripper position in other digits": (GRIPPER, "SET POS \u0663\u00b2\n".encode()),
    "JSON nested 100,000 deep": (API, b"[" * 100_000 + b"\n"),
    "JSON object nested 100,000 deep": (API, b'{"op":' * 100_000 + b"\n"),
    "API number of 5,000 digits": (API, b'{"op":"restart","boot_s":' + b"9" * 5000 + b"}\n"),
    "API NaN": (API, b'{"op":"delay","service":"rtde","seconds":NaN}\n'),
    "API list as operation": (API, b'{"op":[1]}\n'),
    "API wrong arguments": (API, b'{"op":"jog","dxyz_m":"abc"}\n'),
    "API infinite displacement": (API, b'{"op":"freedrive_move","dxyz_m":[Infinity,0,0]}\n'),
    "RTDE frequency NaN": (
        RTDE,
        wire.encode_package(wire.SETUP_OUTPUTS, struct.pack(">d", math.nan) + b"timestamp,"),
    ),
    "RTDE recipe larger than a package": (
        RTDE,
        wire.encode_package(wire.SETUP_OUTPUTS, struct.pack(">d", 125.0) + b"actual_q," * 7000)
        + wire.encode_package(wire.START),
    ),
    "RTDE 300 recipes": (RTDE, wire.encode_package(wire.SETUP_INPUTS, b"speed_slider_mask,") * 300),
    "RTDE slider without its fraction": (
        RTDE,
        wire.encode_package(wire.SETUP_INPUTS, b"speed_slider_mask,")
        + wire.encode_package(wire.DATA, b"\x01" + struct.pack(">I", 1)),
    ),
    "RTDE digital output mask without its value": (
        RTDE,
        wire.encode_package(wire.SETUP_INPUTS, b"standard_digital_output_mask,")
        + wire.encode_package(wire.DATA, b"\x01\xff"),
    ),
    "dashboard line of 60,000 bytes": (DASHBOARD, b"x" * 60_000 + b"\n"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_bytes_neither_crash_it_nor_stop_its_cycles(
    ur5_emulator: EmulatorProcess, case: str
) -> None:
    port, data = HOSTILE[case]
    with socket.create_connection((ur5_emulator.address, port), 10.0) as client:
        client.sendall(data)
        assert_it_goes_on(ur5_emulator)


@pytest.mark.parametrize("port", [DASHBOARD, SCRIPT, GRIPPER, API])
def test_an_endless_line_costs_the_connection_and_nothing_else(
    ur5_emulator: EmulatorProcess, port: int
) -> None:
    """On the old code it stopped the cycles and grew the memory for as long as it was sent."""
    began = cycles(ur5_emulator)
    began_s = time.monotonic()
    with (
        socket.create_connection((ur5_emulator.address, port), 10.0) as client,
        pytest.raises((ConnectionError, TimeoutError)),
    ):
        send_an_endless_line(client)
    elapsed_s = time.monotonic() - began_s
    assert cycles(ur5_emulator) - began >= 0.5 * (elapsed_s - 0.1) * 125
    assert_it_goes_on(ur5_emulator)


@pytest.mark.parametrize("port", [DASHBOARD, SCRIPT, RTDE, GRIPPER, API])
def test_clients_that_reset_their_connection_at_once_harm_nobody(
    ur5_emulator: EmulatorProcess, port: int
) -> None:
    """Some of them are gone before they are accepted, and have no address then."""
    for _ in range(50):
        client = socket.create_connection((ur5_emulator.address, port), 10.0)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    assert_it_goes_on(ur5_emulator)


def test_a_deeply_nested_request_is_answered_with_an_error(ur5_emulator: EmulatorProcess) -> None:
    with socket.create_connection((ur5_emulator.address, API), 10.0) as client:
        client.sendall(b"[" * 100_000 + b"\n")
        answer = json.loads(client.makefile("rb").readline())
    assert answer["ok"] is False
    assert "RecursionError" in answer["error"]


def test_a_refused_script_says_why(ur5_emulator: EmulatorProcess) -> None:
    with socket.create_connection((ur5_emulator.address, SCRIPT), 10.0) as client:
        client.sendall(script("9999"))
        wait_until(
            lambda: any(
                "register offset is 9999; allowed: 0, 24" in event
                for event in ur5_emulator.api.status()["events"]
            )
        )


def test_an_error_of_the_past_is_not_told_to_a_client_that_connects_later(
    ur5_emulator: EmulatorProcess,
) -> None:
    """On the old code it came before the answer to his first request."""
    before = ur5_emulator.api.status()["events"][-1:]
    with socket.create_connection((ur5_emulator.address, SCRIPT), 10.0) as client:
        client.sendall(script("9999"))
        wait_until(lambda: ur5_emulator.api.status()["events"][-1:] != before)
    run_cycles(ur5_emulator, 2)
    with socket.create_connection((ur5_emulator.address, RTDE), 10.0) as client:
        run_cycles(ur5_emulator, 2)
        client.sendall(wire.encode_package(wire.CONTROLLER_VERSION))
        assert next_package(client).kind == wire.CONTROLLER_VERSION


Call = Callable[[rtde_control.RTDEControlInterface, float], object]
NAN_CALLS: dict[str, Call] = {
    "servoJ": lambda c, x: c.servoJ([x, *HOME[1:]], 0.5, 0.5, 0.008, 0.1, 300),
    "servoL": lambda c, x: c.servoL([x, 0.1, 0.3, 0, 3, 0], 0.5, 0.5, 0.008, 0.1, 300),
    "moveJ": lambda c, x: c.moveJ([x, *HOME[1:]], 0.5, 0.5),
    "moveL": lambda c, x: c.moveL([-0.4, x, 0.3, 0, 3, 0], 0.1, 0.5),
    "speedJ": lambda c, x: c.speedJ([x, 0, 0, 0, 0, 0], 0.5, 0.1),
    "speedL": lambda c, x: c.speedL([0, 0, x, 0, 0, 0], 0.5, 0.1),
    "setTcp": lambda c, x: c.setTcp([0, 0, x, 0, 0, 0]),
    "poseTrans": lambda c, x: c.poseTrans([0, 0, x, 0, 0, 0], [0, 0, 0, 0, 0, 0]),
    "getForwardKinematics": lambda c, x: c.getForwardKinematics(
        [x, *HOME[1:]], [0, 0, 0, 0, 0, 0.1]
    ),
    "getInverseKinematics": lambda c, x: c.getInverseKinematics([x, 0, 0.3, 0, 3, 0], HOME),
    "setPayload": lambda c, x: c.setPayload(x, [0, 0, 0]),
}


@contextmanager
def connected(
    emulator: EmulatorProcess,
) -> Iterator[tuple[rtde_control.RTDEControlInterface, rtde_receive.RTDEReceiveInterface]]:
    """New interfaces: their constructor clears the command that an earlier one left behind."""
    control = rtde_control.RTDEControlInterface(emulator.address)
    receive = rtde_receive.RTDEReceiveInterface(emulator.address)
    try:
        yield control, receive
    finally:
        control.disconnect()
        receive.disconnect()


CASES = [(call, math.nan) for call in NAN_CALLS]
CASES += [("servoJ", math.inf), ("setTcp", 1e300)]


@pytest.mark.parametrize(("call", "number"), CASES)
def test_a_number_that_is_none_ends_the_program_and_the_call_returns(
    ur5_emulator: EmulatorProcess, call: str, number: float
) -> None:
    with connected(ur5_emulator) as (control, receive):
        began_s = time.monotonic()
        # Calls with a result raise when the program ends; the others return False.
        with suppress(RuntimeError):
            NAN_CALLS[call](control, number)
        assert time.monotonic() - began_s < 6.0
        while receive.getRuntimeState() == 2:
            assert time.monotonic() < began_s + 10.0
            time.sleep(0.01)
    events = ur5_emulator.api.status()["events"]
    assert "must be finite numbers" in events[-1]
    assert_it_goes_on(ur5_emulator)


@pytest.mark.parametrize(
    "call",
    [
        "sendCustomScriptFunction('dance', '  textmsg(1)\\n')",
        "sendCustomScript('def dance():\\n  textmsg(1)\\nend\\n')",
    ],
)
def test_a_custom_script_returns_to_its_caller(ur5_emulator: EmulatorProcess, call: str) -> None:
    """In a process of its own: a call that hangs cannot be interrupted."""
    program = (
        "import rtde_control\n"
        f"control = rtde_control.RTDEControlInterface('{ur5_emulator.address}')\n"
        f"control.{call}\ncontrol.disconnect()\n"
    )
    subprocess.run([sys.executable, "-c", program], timeout=20.0, check=True)
    assert_it_goes_on(ur5_emulator)


@pytest.mark.parametrize("offset", ["1", "9999", "9" * 5000])
def test_only_the_two_halves_of_the_registers_are_offsets(offset: str) -> None:
    with pytest.raises(ScriptError, match="allowed: 0, 24"):
        _ = Upload("rtde_control", script(offset).decode()).register_offset


def test_a_line_reader_keeps_no_more_than_its_limit() -> None:
    reader = LineReader(10)
    assert reader.feed(b"abc\nde") == [b"abc"]
    with pytest.raises(LineTooLongError, match="10 bytes"):
        reader.feed(b"f" * 20)


def test_a_program_without_an_end_is_cut_at_its_limit() -> None:
    reader = UploadReader()
    uploads = reader.feed(b"def x():\n")
    for _ in range(20):
        uploads += reader.feed(b"  a = 1\n" * 10_000)
    assert uploads[0].name == "x"
    assert len(uploads[0].text) < 1_100_000
