# SPDX-License-Identifier: MIT
"""Address of a cell's robot: every simulated cell of a machine has a loopback address of its own.

The ports of a UR controller are fixed, so two emulated ones need two addresses. A namespace names a
cell, so it decides on the address too: all launch files of the cell arrive at the same one.
"""

from __future__ import annotations

import hashlib
import ipaddress

from equi_bringup.arguments import ArgumentError


def robot_address(given: str, of_cell: str, simulated: bool, namespace: str) -> str:
    """Where the controller is.

    Args:
        given: the argument `robot_ip`; empty if it was left out.
        of_cell: the address in the cell file.
        simulated: whether the cell is.
        namespace: absolute; "" or "/" is the root.

    Raises:
        ArgumentError: a simulated cell, whose limits are generous, with a robot on the network.
    """
    address = given or of_cell
    if not simulated:
        return address
    if not _is_loopback(address):
        raise ArgumentError(
            f"robot_ip:={address} is not a loopback address, but the cell is simulated and its "
            "limits are made for an emulator; use a real cell (sim:=false cell:=lab)"
        )
    if given or namespace in ("", "/"):
        return address
    digest = hashlib.sha256(namespace.encode()).digest()
    # 127.0.0.x stays for cells without a namespace; .0 and .255 at the end are nobody's.
    return f"127.{1 + digest[0] % 254}.{digest[1]}.{2 + digest[2] % 252}"


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
