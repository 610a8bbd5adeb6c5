# SPDX-License-Identifier: MIT
"""Is the gripper there, active and without fault? Nothing is sent that could move it."""

from __future__ import annotations

from equi_control.doctor.finding import Finding, fail, ok, warn
from equi_control.robotiq.client import GripperError, RobotiqClient

_FAULTS = {
    5: "action delayed: the activation must be completed first",
    7: "activation bit not set",
    8: "overheated; let it cool",
    9: "no communication for a second",
    10: "supply below 21.6 V",
    11: "automatic release in progress",
    12: "internal fault",
    13: "activation fault: something blocked the stroke",
    14: "overcurrent",
    15: "automatic release completed",
}


def check_gripper(host: str) -> Finding:
    """Status of the 2F-85 through its URCap."""
    try:
        with RobotiqClient(host) as gripper:
            status = gripper.status()
    except GripperError as error:
        return fail(
            "gripper",
            str(error),
            "switch on the tool's 24 V (installation, Tool I/O); check the cable and the URCap",
        )
    if status.fault:
        words = _FAULTS.get(status.fault, "see the gripper's manual")
        return fail(
            "gripper",
            f"fault {status.fault}: {words}",
            "clear the fingers, then deactivate and activate it in the URCap's toolbar",
        )
    opening = f"{100 * status.opening:.0f} % open"
    if not status.active:
        return warn(
            "gripper",
            f"not activated, {opening}",
            "nothing: the driver activates it, and the fingers then run through their whole "
            "stroke; keep them clear",
        )
    return ok("gripper", f"active, {opening}")
