# SPDX-License-Identifier: MIT
"""A script that knows nothing of our driver picks a block in the emulated cell.

It uses the ur_rtde library and the gripper's text port alone, as any third-party program would.
"""

from __future__ import annotations

import socket
import time

import numpy as np
import rtde_control
import rtde_receive
from scipy.spatial.transform import Rotation

from ur_emulator.launching import EmulatorProcess

BLOCK_YAW_RAD = 0.3


class GripperPort:
    def __init__(self, address: str) -> None:
        self._socket = socket.create_connection((address, 63352), 10.0)

    def ask(self, request: str) -> str:
        self._socket.sendall(request.encode() + b"\n")
        return self._socket.recv(1024).decode().strip()

    def wait_for(self, name: str, *wanted: int) -> int:
        deadline_s = time.monotonic() + 60.0
        while (value := int(self.ask(f"GET {name}").split()[1])) not in wanted:
            assert time.monotonic() < deadline_s, f"{name} stays {value}"
            time.sleep(0.02)
        return value

    def go(self, position: int) -> int:
        assert self.ask(f"SET POS {position} SPE 255 FOR 10 GTO 1") == "ack"
        return self.wait_for("OBJ", 1, 2, 3)

    def close(self) -> None:
        self._socket.close()


def controller_pose(x: float, y: float, z: float) -> list[float]:
    """Tool down with the block's yaw, in the controller's base (half a turn from base_link)."""
    turn = Rotation.from_euler("z", np.pi + BLOCK_YAW_RAD) * Rotation.from_euler("x", np.pi)
    return [-x, -y, z, *turn.as_rotvec().tolist()]


def test_a_foreign_script_picks_a_block() -> None:
    block = {"kind": "block", "position_m": [0.5, 0.05, 0.025], "yaw_rad": BLOCK_YAW_RAD}
    with EmulatorProcess(arm="physics") as emulator:
        emulator.api.request("set_scene", scene={"objects": [{**block, "movable": True}]})
        control = rtde_control.RTDEControlInterface(emulator.address)
        receive = rtde_receive.RTDEReceiveInterface(emulator.address)
        gripper = GripperPort(emulator.address)

        assert control.setTcp([0.0, 0.0, 0.169, 0.0, 0.0, 0.0])
        assert gripper.ask("SET ACT 1") == "ack"
        gripper.wait_for("STA", 3)
        assert gripper.go(0) == 3
        assert control.moveL(controller_pose(0.5, 0.05, 0.15), 0.25, 1.0)
        assert control.moveL(controller_pose(0.5, 0.05, 0.02), 0.25, 1.0)
        assert gripper.go(255) == 2, "the block was not felt"
        assert control.moveL(controller_pose(0.5, 0.05, 0.20), 0.15, 0.5)

        scene = emulator.api.request("get_scene")["scene"]
        assert scene["holding"]
        assert scene["held_object"] == 0
        assert scene["objects"][0]["position_m"][2] > 0.15
        assert gripper.ask("GET OBJ") == "OBJ 2"

        gripper.close()
        control.disconnect()
        receive.disconnect()
