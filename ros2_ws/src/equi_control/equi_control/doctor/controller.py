# SPDX-License-Identifier: MIT
"""What the controller says of itself: version, model, modes, slider, TCP, payload, joints."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equi_control.doctor.finding import Finding, fail, ok, skipped, warn
from equi_control.rtde.dashboard import Dashboard
from equi_control.rtde.robot_reading import ROBOT_MODE_RUNNING
from equi_control.rtde.rtde_session import RtdeSession
from equi_control.servo.config import ServoConfig
from equi_core.geometry import invert, ur_pose_to_matrix
from equi_core.motion.arm_models import model_of_controller
from equi_core.motion.ur5_kinematics import JOINT_NAMES, forward

FloatArray = NDArray[np.float64]

OUTPUTS = (
    *("timestamp", "actual_q", "actual_TCP_pose", "robot_mode", "safety_mode"),
    *("target_speed_fraction", "payload", "payload_cog"),
)
"""RTDE outputs that the checks read."""
_OLDEST = {3: (3, 4), 5: (5, 4)}
"""ur_rtde needs these minor versions: before them its first command waits for ever."""
_NEWEST_TRIED = (5, 22)
_SAFETY_MODES = (
    *("", "NORMAL", "REDUCED", "PROTECTIVE_STOP", "RECOVERY", "SAFEGUARD_STOP"),
    *("SYSTEM_EMERGENCY_STOP", "ROBOT_EMERGENCY_STOP", "VIOLATION", "FAULT"),
)
_ROBOT_MODES = {
    -1: "NO_CONTROLLER",
    0: "DISCONNECTED",
    1: "CONFIRM_SAFETY",
    2: "BOOTING",
    3: "POWER_OFF",
    4: "POWER_ON",
    5: "IDLE",
    6: "BACKDRIVE",
    7: "RUNNING",
    8: "UPDATING_FIRMWARE",
}
_SAFETY_REPAIRS = {
    2: "leave reduced mode on the pendant, or find out which safety input or plane asks for it",
    3: "find the cause, clear the arm, enable the robot on the pendant",
    4: "move the arm out of the safety violation in recovery mode, on the pendant",
    5: "close the safeguard (door, light curtain) and reset it",
    6: "release the emergency stop of the cell, power on and release the brakes",
    7: "release the emergency stop of the pendant, power on and release the brakes",
}
_TCP_TOLERANCE_RAD = math.radians(1.0)
_PAYLOAD_TOLERANCE_KG = 0.15
# What ur_rtde's control program is commanded by.
_CONTROL_INPUTS = ("input_int_register_0", *(f"input_double_register_{i}" for i in range(6)))


def check_rtde_version(version: tuple[int, int, int, int]) -> Finding:
    """Whether ur_rtde works with this controller's software."""
    found = "RTDE 2, controller software " + ".".join(str(part) for part in version)
    oldest = _OLDEST.get(version[0])
    if oldest is not None and version[:2] < oldest:
        wanted = f"{oldest[0]}.{oldest[1]}"
        return fail("RTDE version", found, f"update PolyScope to {wanted} or later")
    if oldest is None or version[:2] > _NEWEST_TRIED:
        return warn(
            "RTDE version",
            found,
            "newer than any this driver was tried with; go through first_power_up.md step by step",
        )
    return ok("RTDE version", found)


def check_polyscope(dashboard: Dashboard, version: tuple[int, int, int, int]) -> Finding:
    """Whether PolyScope answers with the controller's own version: mixed updates happen."""
    answer = dashboard.ask_if_known("PolyscopeVersion")
    match = re.search(r"(\d+)\.(\d+)", answer or "")
    if match is None:
        return warn(
            "PolyScope", f"answers '{answer}'", "read the version on the pendant (About) and update"
        )
    if (int(match[1]), int(match[2])) != version[:2]:
        said = f"{answer}, but the controller is {version[0]}.{version[1]}"
        return fail("PolyScope", said, "the update was not finished; run it again")
    return ok("PolyScope", str(answer))


def check_model(dashboard: Dashboard, major: int, expected: str) -> Finding:
    """Whether the arm is the one of the cell file."""
    said = dashboard.ask_if_known("get robot model")
    if said is None:
        return warn(
            "robot model",
            "this software does not say",
            f"read the label: {expected} is what the cell file has",
        )
    model = model_of_controller(said, major)
    if model != expected:
        return fail(
            "robot model",
            f"{model}, the cell file says {expected}",
            "correct link.robot_model in the cell file, or the address",
        )
    return ok("robot model", model)


def check_safety_mode(values: Mapping[str, Any]) -> Finding:
    """Whether the safety system lets the arm move at full speed."""
    mode = int(values["safety_mode"])
    name = _SAFETY_MODES[mode] if 0 < mode < len(_SAFETY_MODES) else f"mode {mode}"
    if mode == 1:
        return ok("safety mode", name)
    repair = _SAFETY_REPAIRS.get(mode, "read the pendant's log, and restart the safety system")
    return (warn if mode == 2 else fail)("safety mode", name, repair)


def check_robot_mode(values: Mapping[str, Any]) -> Finding:
    """Whether the arm has power and its brakes are released."""
    mode = int(values["robot_mode"])
    name = _ROBOT_MODES.get(mode, f"mode {mode}")
    if mode == ROBOT_MODE_RUNNING:
        return ok("robot mode", name)
    return fail("robot mode", name, "power on and release the brakes on the pendant")


def check_remote_control(dashboard: Dashboard, major: int) -> Finding:
    """Whether programs may come over the network."""
    if major <= 3:
        return ok("remote control", "a CB3 has no such switch")
    answer = dashboard.ask_if_known("is in remote control")
    if answer is None:
        return skipped("remote control", "this software does not say")
    if answer.strip().lower() != "true":
        return fail(
            "remote control",
            "off: the robot is in local control",
            "enable it (Settings, System, Remote Control), then choose Remote at the top right",
        )
    return ok("remote control", "on")


def check_slider(values: Mapping[str, Any]) -> Finding:
    """Whether the pendant's speed slider stands at 100 %."""
    fraction = float(values["target_speed_fraction"])
    if fraction < 0.05:
        return fail(
            "speed slider",
            f"{100 * fraction:.0f} %: the arm stands still",
            "raise it on the pendant",
        )
    if fraction < 0.99:
        return warn(
            "speed slider",
            f"{100 * fraction:.0f} %: steps take longer",
            "set it to 100 %; the driver's own limits keep the arm slow",
        )
    return ok("speed slider", "100 %")


def check_tcp(values: Mapping[str, Any], servo: ServoConfig) -> Finding:
    """Whether the TCP on the pendant is the cell's. The driver sets its own while it runs."""
    offset = _flange_from_tcp(values, servo)
    expected = servo.link.geometry.flange_from_tcp
    error_m = float(np.linalg.norm(offset[:3, 3] - expected[:3, 3]))
    error_rad = _angle_between(offset, expected)
    x, y, z = (1e3 * offset[:3, 3]).tolist()
    found = f"{x:.0f}, {y:.0f}, {z:.0f} mm, turned by {math.degrees(error_rad):.0f} deg"
    if error_m > _kinematics_tolerance_m(servo) or error_rad > _TCP_TOLERANCE_RAD:
        wanted = f"0, 0, {1e3 * servo.link.geometry.tcp_from_flange_m:.0f} mm"
        return warn(
            "TCP",
            f"{found} (cell: {wanted})",
            "set it in the pendant's installation, so that its safety planes and freedrive use it; "
            "or measure again and correct geometry in the cell file",
        )
    return ok("TCP", found)


def check_payload(values: Mapping[str, Any], servo: ServoConfig) -> Finding:
    """Whether the payload on the pendant is that of gripper and coupling."""
    if "payload" not in values:
        return skipped("payload", "this software does not publish it (from 3.11 and 5.5 on)")
    found_kg = float(values["payload"])
    found = f"{found_kg:.2f} kg"
    if abs(found_kg - servo.link.payload_kg) > _PAYLOAD_TOLERANCE_KG:
        return warn(
            "payload",
            f"{found} (cell: {servo.link.payload_kg:.2f} kg)",
            "set it in the pendant's installation: without it freedrive sinks, and the force "
            "estimate is off by the gripper's weight",
        )
    return ok("payload", found)


def check_kinematics(values: Mapping[str, Any], servo: ServoConfig) -> Finding:
    """Whether the joints put the TCP where the controller says it is.

    The pendant may have the cell's TCP or none; with another one this cannot be told apart from
    wrong links, and the line says so.
    """
    offset = _flange_from_tcp(values, servo)
    known = (servo.link.geometry.flange_from_tcp, np.eye(4))
    error_m = min(float(np.linalg.norm(offset[:3, 3] - one[:3, 3])) for one in known)
    found = f"forward kinematics and reported TCP differ by {1e3 * error_m:.1f} mm"
    limit_m = _kinematics_tolerance_m(servo)
    if error_m > limit_m:
        return fail(
            "kinematics",
            f"{found} (at most {1e3 * limit_m:.0f} mm)",
            "is link.robot_model this arm? If the pendant has another TCP, set the cell's (line "
            "TCP) and look again",
        )
    return ok("kinematics", found)


def check_registers(session: RtdeSession) -> Finding:
    """Whether the input registers of the control program are free."""
    taken = session.taken_inputs(_CONTROL_INPUTS)
    if taken:
        return fail(
            "registers",
            f"{', '.join(taken)} held by another client",
            "end the other RTDE client (a driver that runs already, a PLC); switch off EtherNet/IP"
            ", PROFINET and Modbus in the installation",
        )
    return ok("registers", f"{len(_CONTROL_INPUTS)} registers of the control program are free")


def check_winding(values: Mapping[str, Any], servo: ServoConfig) -> Finding:
    """Whether a joint has been turned so far that it soon reaches its end."""
    joints = np.asarray(values["actual_q"], dtype=np.float64)
    worst = int(np.abs(joints).argmax())
    name, degrees = JOINT_NAMES[worst], math.degrees(joints[worst])
    largest = servo.joint_limits.largest_rad
    found = f"farthest from zero: {name} at {degrees:.0f} deg"
    turned = "jog or freedrive it back by a whole turn; mind the gripper's cable"
    if abs(joints[worst]) > largest:
        most = math.degrees(largest)
        return fail("wrist winding", f"{found} (at most {most:.0f} deg)", turned)
    if abs(joints[worst]) > math.pi + 0.5:
        return warn("wrist winding", found, turned)
    return ok("wrist winding", found)


def _flange_from_tcp(values: Mapping[str, Any], servo: ServoConfig) -> FloatArray:
    """The TCP that the controller uses now, seen from the flange of the nominal arm."""
    base_link_from_tcp = ur_pose_to_matrix(values["actual_TCP_pose"])
    base_link_from_tool0 = forward(values["actual_q"], servo.joint_limits.arm)
    offset: FloatArray = invert(base_link_from_tool0) @ base_link_from_tcp
    return offset


def _kinematics_tolerance_m(servo: ServoConfig) -> float:
    """What nominal links may be wrong by: an arm is not exactly its data sheet."""
    return servo.joint_limits.max_kinematics_error_m


def _angle_between(a: FloatArray, b: FloatArray) -> float:
    cosine = (float(np.trace(a[:3, :3].T @ b[:3, :3])) - 1.0) / 2.0
    return math.acos(min(max(cosine, -1.0), 1.0))
