# SPDX-License-Identifier: MIT
"""URDF text of an arm with the 2F-85 in a cell: kinematics of the arm's model, frames of the cell.

Made from the one description that the simulated world loads (a UR5 in primitive shapes): joint
origins are set to the lengths of the model, its shapes are stretched with them, and the frames
`tool0`, `tcp` and `task` are added. For arms other than the UR5 the shapes are for looking at;
the kinematics are exact for every model.
"""

from __future__ import annotations

import math
from importlib import resources
from xml.etree import ElementTree

from equi_core.cell_geometry import BASE_FRAME, TASK_FRAME, CellGeometry
from equi_core.motion.arm_models import UR5, ArmModel

FILE = "ur5_robotiq_2f85.urdf"
FINGER_JOINT = "left_finger_joint"
"""The joint that the driver reports: half of the gap between the pads [m]."""
MIRRORED_FINGER_JOINT = "right_finger_joint"
MAX_OPENING_M = 0.085
"""Gap between the pads of the open 2F-85 [m]."""
TOOL_FRAME = "tool0"
TCP_FRAME = "tcp"
GRIPPER_LINK = "gripper_base_link"
_FLANGE_LINK = "wrist_3_link"
_FINGERS = ("left_finger_joint", MIRRORED_FINGER_JOINT)


def finger_position_m(opening: float) -> float:
    """Position of `FINGER_JOINT` for an opening between 0 (closed) and 1 (open) [m]."""
    return min(max(opening, 0.0), 1.0) * MAX_OPENING_M / 2.0


def robot_description(arm: ArmModel = UR5, geometry: CellGeometry | None = None) -> str:
    """The URDF of an arm with its gripper, as `robot_description` wants it.

    Args:
        arm: model of the arm; its lengths become the joint origins.
        geometry: mounting of the gripper, TCP and task frame; by default those of the simulation.
    """
    geometry = geometry or CellGeometry()
    source = resources.files("equi_core.robot_description") / FILE
    robot = ElementTree.fromstring(source.read_text(encoding="utf-8"))
    robot.set("name", f"{arm.name}_robotiq_2f85")
    for link in robot.findall("link"):
        for contact in link.findall("contact"):  # known to PyBullet only
            link.remove(contact)
    _set_lengths(robot, arm)
    _stretch_shapes(robot, arm)
    _add_fixed(robot, _FLANGE_LINK, TOOL_FRAME, (0.0, 0.0, 0.0), 0.0)
    _mount_gripper(robot, geometry.tool_yaw_rad)
    tcp_m = (0.0, 0.0, geometry.tcp_from_flange_m)
    _add_fixed(robot, TOOL_FRAME, TCP_FRAME, tcp_m, geometry.tool_yaw_rad)
    task_m = (geometry.task_x_m, geometry.task_y_m, geometry.table_z_m)
    _add_fixed(robot, BASE_FRAME, TASK_FRAME, task_m, geometry.task_yaw_rad)
    ElementTree.indent(robot)
    return '<?xml version="1.0"?>\n' + ElementTree.tostring(robot, encoding="unicode") + "\n"


def _set_lengths(robot: ElementTree.Element, arm: ArmModel) -> None:
    d1, a2, a3, d4, d5, d6 = arm.links_m
    origins = {
        "shoulder_pan_joint": (0.0, 0.0, d1),
        "shoulder_lift_joint": (0.0, 0.0, 0.0),
        "elbow_joint": (a2, 0.0, 0.0),
        "wrist_1_joint": (a3, 0.0, d4),
        "wrist_2_joint": (0.0, -d5, 0.0),
        "wrist_3_joint": (0.0, d6, 0.0),
    }
    for name, xyz in origins.items():
        joint = _joint(robot, name)
        _child(joint, "origin").set("xyz", _numbers(xyz))
        limit = _child(joint, "limit")
        limit.set("lower", f"{-arm.joint_limit_rad:.15g}")
        limit.set("upper", f"{arm.joint_limit_rad:.15g}")


def _stretch_shapes(robot: ElementTree.Element, arm: ArmModel) -> None:
    """Stretch the UR5's shapes to the lengths of another arm."""
    d1, a2, a3, d4, d5, d6 = (new / old for new, old in zip(arm.links_m, UR5.links_m, strict=True))
    # Along x, y and z of each link.
    factors = {
        "base_link": (1.0, 1.0, d1),
        "shoulder_link": (1.0, 1.0, min(d1, 1.0)),
        "upper_arm_link": (a2, 1.0, d4),
        "forearm_link": (a3, 1.0, d4),
        "wrist_1_link": (1.0, d5, 1.0),
        "wrist_2_link": (1.0, d6, 1.0),
    }
    for link in robot.findall("link"):
        along = factors.get(str(link.get("name")))
        if along is None:
            continue
        for shape in link.findall("visual"):
            origin = _child(shape, "origin")
            xyz = _read(origin.get("xyz"))
            origin.set("xyz", _numbers(tuple(v * f for v, f in zip(xyz, along, strict=True))))
            cylinder = shape.find("geometry/cylinder")
            if cylinder is not None:
                roll, pitch, _ = _read(origin.get("rpy"))
                axis = 0 if abs(pitch) > 0.1 else 1 if abs(roll) > 0.1 else 2
                length = float(str(cylinder.get("length"))) * along[axis]
                cylinder.set("length", f"{length:.9g}")


def _mount_gripper(robot: ElementTree.Element, yaw_rad: float) -> None:
    """Hang the gripper's body and fingers on a frame of their own, turned about the tool axis."""
    flange = next(link for link in robot.findall("link") if link.get("name") == _FLANGE_LINK)
    gripper = _add_fixed(robot, TOOL_FRAME, GRIPPER_LINK, (0.0, 0.0, 0.0), yaw_rad)
    for shape in flange.findall("visual"):
        if shape.find("geometry/box") is not None:
            flange.remove(shape)
            gripper.append(shape)
    for name in _FINGERS:
        _child(_joint(robot, name), "parent").set("link", GRIPPER_LINK)
    mirrored = _joint(robot, MIRRORED_FINGER_JOINT)
    ElementTree.SubElement(mirrored, "mimic", joint=FINGER_JOINT, multiplier="1", offset="0")


def _add_fixed(
    robot: ElementTree.Element, parent: str, child: str, xyz: tuple[float, ...], yaw_rad: float
) -> ElementTree.Element:
    """Add a link on a fixed joint; returns the link."""
    link = ElementTree.SubElement(robot, "link", name=child)
    joint = ElementTree.SubElement(robot, "joint", name=f"{parent}-{child}", type="fixed")
    ElementTree.SubElement(joint, "parent", link=parent)
    ElementTree.SubElement(joint, "child", link=child)
    ElementTree.SubElement(joint, "origin", xyz=_numbers(xyz), rpy=_numbers((0.0, 0.0, yaw_rad)))
    return link


def _joint(robot: ElementTree.Element, name: str) -> ElementTree.Element:
    return next(joint for joint in robot.findall("joint") if joint.get("name") == name)


def _child(element: ElementTree.Element, tag: str) -> ElementTree.Element:
    return next(iter(element.findall(tag)))


def _read(text: str | None) -> tuple[float, float, float]:
    x, y, z = (float(word) for word in (text or "0 0 0").split())
    return x, y, z


def _numbers(values: tuple[float, ...]) -> str:
    if not all(math.isfinite(value) for value in values):
        raise ValueError(f"a URDF cannot hold {values}; check the cell's geometry")
    return " ".join(f"{value:.15g}" for value in values)
