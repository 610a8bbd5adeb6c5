# SPDX-License-Identifier: MIT
"""The emulator at its edges: hostile bytes, split uploads, bad requests, faults of the wire."""

from __future__ import annotations

import socket
import struct
import time
from itertools import pairwise

import pytest

from ur_emulator import EmulatorProcess, RequestError
from ur_emulator.controller.script_text import UploadReader
from ur_emulator.protocols import rtde_wire as wire

pytest_plugins = ["ur_emulator.pytest_plugin"]

SCRIPT = (
    "def rtde_control():\n"
    "  global reg_offset_int = # int register offset\n"
    "24  global other = 2\n"
    "  def exec_move_path():\n"
    "    # inject move path\n"
    "    signal_async_progress(0)\n"
    "    movel(p[0.1,-0.2,0.3,0,3.14,0],a=1.2,v=0.25,r=0)\n"
    "    movej([0,-1.5,1.5,0,0,1e-05],a=1.4,v=1.05,r=0.01)\n"
    "  end\n"
    "  movej([9,9,9,9,9,9],a=1,v=1,r=0)\n"
    "end\n"
)


@pytest.mark.parametrize("piece", [1, 7, 64, 10_000])
def test_an_upload_is_understood_in_whatever_pieces_it_arrives(piece: int) -> None:
    reader = UploadReader()
    data = SCRIPT.encode()

    uploads = [
        upload
        for start in range(0, len(data), piece)
        for upload in reader.feed(data[start : start + piece])
    ]

    assert len(uploads) == 1
    assert uploads[0].is_control_script
    assert uploads[0].register_offset == 24
    moves = uploads[0].path
    assert [(move.kind, move.is_pose) for move in moves] == [("movel", True), ("movej", False)]
    assert moves[1].values[-1] == pytest.approx(1e-5)
    assert moves[1].blend_m == 0.01


def test_packages_are_cut_from_the_stream_whatever_its_pieces() -> None:
    stream = wire.encode_package(wire.START) + wire.encode_package(wire.DATA, b"\x01abc")
    buffer = bytearray()
    found = []
    for byte in stream:
        buffer.append(byte)
        found += list(wire.take_packages(buffer))

    assert [(package.kind, package.payload) for package in found] == [
        (wire.START, b""),
        (wire.DATA, b"\x01abc"),
    ]


def test_a_package_shorter_than_its_header_is_refused() -> None:
    with pytest.raises(wire.WireError, match="length 2"):
        list(wire.take_packages(bytearray(b"\x00\x02U")))


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00\x00\x00\x00",
        b"\xff" * 500,
        struct.pack(">HB", 4, wire.DATA) + b"\xff",
        b"GET / HTTP\r\n",
    ],
)
def test_garbage_on_the_rtde_port_harms_nobody_else(
    ur5_emulator: EmulatorProcess, garbage: bytes
) -> None:
    with socket.create_connection((ur5_emulator.address, 30004), 10.0) as client:
        client.sendall(garbage)

    with socket.create_connection((ur5_emulator.address, 30004), 10.0) as client:
        client.sendall(wire.encode_package(wire.CONTROLLER_VERSION))
        assert struct.unpack(">HB4I", client.recv(100))[2:5] == (3, 15, 8)


def test_an_unknown_program_is_reported_and_acknowledged(ur5_emulator: EmulatorProcess) -> None:
    with socket.create_connection((ur5_emulator.address, 30002), 10.0) as client:
        client.sendall(b"def my_dance():\n  movej([0,0,0,0,0,0])\nend\n")
        deadline_s = time.monotonic() + 30.0
        while not any(
            "unknown program 'my_dance'" in e for e in ur5_emulator.api.status()["events"]
        ):
            assert time.monotonic() < deadline_s
            time.sleep(0.02)


@pytest.mark.parametrize(
    ("op", "arguments", "words"),
    [
        ("dance", {}, "known: "),
        ("freeze", {"service": "coffee"}, "service is 'coffee'"),
        ("freeze", {}, "service"),
        ("set_scene", {"scene": {}}, "--arm physics"),
        ("freedrive_move", {"dxyz_m": [9, 0, 0]}, "no joint solution"),
        ("record_save", {"path": "/nonexistent/folder/x.npy"}, "No such file"),
    ],
)
def test_a_bad_request_is_answered_with_what_is_allowed(
    ur5_emulator: EmulatorProcess, op: str, arguments: dict[str, object], words: str
) -> None:
    with pytest.raises(RequestError, match=words):
        ur5_emulator.api.request(op, **arguments)
    assert ur5_emulator.api.status()["model"] == "ur5"


def test_a_delayed_dashboard_answers_late_and_a_thawed_one_again(
    ur5_emulator: EmulatorProcess,
) -> None:
    ur5_emulator.api.request("delay", service="dashboard", seconds=0.3)
    began_s = time.monotonic()
    with socket.create_connection((ur5_emulator.address, 29999), 10.0) as client:
        assert client.makefile("r").readline().startswith("Connected")
    assert time.monotonic() - began_s >= 0.3
    ur5_emulator.api.request("clear_faults")


def test_a_port_that_drops_everything_answers_again_when_the_fault_is_cleared(
    ur5_emulator: EmulatorProcess,
) -> None:
    with socket.create_connection((ur5_emulator.address, 63352), 10.0) as gripper:
        ur5_emulator.api.request("drop", service="gripper", fraction=1.0)
        gripper.sendall(b"GET STA\n")
        # A later answer on another connection: the emulator has seen the request by then.
        ur5_emulator.api.status()
        ur5_emulator.api.request("clear_faults")

        gripper.sendall(b"GET FLT\n")

        assert gripper.recv(20).strip() == b"FLT 0"


def test_dropped_rtde_packages_leave_whole_ones_in_order(ur5_emulator: EmulatorProcess) -> None:
    ur5_emulator.api.request("drop", service="rtde", fraction=0.0)
    with socket.create_connection((ur5_emulator.address, 30004), 10.0) as client:
        names = struct.pack(">d", 125.0) + b"timestamp,"
        client.sendall(wire.encode_package(wire.SETUP_OUTPUTS, names))
        client.sendall(wire.encode_package(wire.START))
        buffer, stamps_s = bytearray(), []
        dropping = False
        while len(stamps_s) < 60:
            buffer += client.recv(4096)
            for package in wire.take_packages(buffer):
                if package.kind == wire.DATA:
                    stamps_s.append(struct.unpack_from(">d", package.payload, 1)[0])
            if stamps_s and not dropping:
                dropping = True
                ur5_emulator.api.request("drop", service="rtde", fraction=0.5)
    ur5_emulator.api.request("clear_faults")

    steps = [round((b - a) / 0.008) for a, b in pairwise(stamps_s)]
    assert min(steps) == 1
    assert max(steps) > 1


def test_a_cut_closes_every_connection_of_that_service_only(ur5_emulator: EmulatorProcess) -> None:
    with (
        socket.create_connection((ur5_emulator.address, 29999), 10.0) as dashboard,
        socket.create_connection((ur5_emulator.address, 63352), 10.0) as gripper,
    ):
        assert dashboard.makefile("r").readline().startswith("Connected")
        gripper.sendall(b"GET STA\n")
        assert gripper.recv(20).strip() == b"STA 0"

        assert ur5_emulator.api.request("cut", service="dashboard")["closed"] == 1

        with pytest.raises(ConnectionResetError):
            dashboard.recv(20)
        gripper.sendall(b"GET STA\n")
        assert gripper.recv(20).strip() == b"STA 0"
