# SPDX-License-Identifier: MIT
"""The robot's description file as numbers: joints, and the shapes that the ray caster draws.

Physics loads the same file, so what is drawn is where the links are. Only what the file uses is
understood (revolute and prismatic joints; boxes, cylinders and spheres); anything else is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from equi_core.cell_geometry import TCP_FROM_FLANGE_M
from equi_rl.sim.errors import SimError
from equi_rl.sim.raycast import Kind, ShapeTable

FloatArray = NDArray[np.float64]

FINGER_JOINTS = ("left_finger_joint", "right_finger_joint")
FLANGE_LINK = "wrist_3_link"

FINGER_TIP_FROM_TOOL0_M = 0.174
"""Tips of the closed 2F-85 behind an 11 mm coupling; our fingers do not shorten as they open."""
TCP_FROM_TOOL0_M = TCP_FROM_FLANGE_M
"""The TCP lies on the tool axis, 5 mm behind the tips: at the lowest allowed TCP height of 10 mm
the tips still clear the table by 5 mm. Its axes are those of tool0."""
FINGER_THICKNESS_M = 0.022
FINGER_WIDTH_M = 0.022
MAX_OPENING_M = 0.085


class DescriptionError(SimError):
    """The robot description holds something that this reader does not understand."""


@dataclass(frozen=True)
class RobotModel:
    """Kinematic tree (link 0 is the base; joint i moves link i + 1) and link shapes."""

    link_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    parent: NDArray[np.int64]
    """(J,) index of the link that joint i hangs on."""
    origin: FloatArray
    """(J, 4, 4) parent_from_joint at joint value zero."""
    axis: FloatArray
    """(J, 3) joint axis in the joint frame."""
    prismatic: NDArray[np.bool_]
    shapes: ShapeTable
    """Shapes in their link's frame."""
    shape_link: NDArray[np.int64]
    """(N,) link of each shape."""

    def frames(self, joints: ArrayLike) -> FloatArray:
        """base_from_link (L, 4, 4) of every link for joint values (J,) [rad or m]."""
        values = np.ascontiguousarray(joints, dtype=np.float64)
        frames: FloatArray = _chain(self.parent, self.origin, self.axis, self.prismatic, values)
        return frames

    def posed_shapes(self, joints: ArrayLike) -> ShapeTable:
        """The shapes in base_link for joint values (J,)."""
        frames = self.frames(joints)[self.shape_link]
        rotation = frames[:, :3, :3] @ self.shapes.rotation
        position = (frames[:, :3, :3] @ self.shapes.position_m[:, :, None])[:, :, 0]
        return ShapeTable(
            self.shapes.kind,
            self.shapes.size_m,
            rotation,
            position + frames[:, :3, 3],
            self.shapes.colour,
            self.shapes.body,
        )


def description_path() -> Path:
    """The installed description file."""
    return Path(str(resources.files("equi_core.robot_description") / "ur5_robotiq_2f85.urdf"))


@lru_cache(maxsize=1)
def robot_model() -> RobotModel:
    """The robot of this project, read once; body id 0 in images."""
    return read_description(description_path(), body=0)


def read_description(path: Path, body: int) -> RobotModel:
    """Read a description file; `body` is the id that its shapes get in segmentation images."""
    root = ElementTree.parse(path).getroot()
    colours = {
        material.attrib["name"]: _numbers(material.find("color"), "rgba", "1 1 1 1")[:3]
        for material in root.findall("material")
    }
    link_names = [link.attrib["name"] for link in root.findall("link")]
    joints = root.findall("joint")
    if [_child(joint, "child") for joint in joints] != link_names[1:]:
        raise DescriptionError(f"{path.name}: joint i must move link i + 1, in file order")
    rows = [
        (link_index, *_shape(visual, colours, path))
        for link_index, link in enumerate(root.findall("link"))
        for visual in link.findall("visual")
    ]
    shape_link, kinds, sizes, poses, shape_colours = zip(*rows, strict=True)
    pose = np.array(poses)
    return RobotModel(
        link_names=tuple(link_names),
        joint_names=tuple(joint.attrib["name"] for joint in joints),
        parent=np.array([link_names.index(_child(joint, "parent")) for joint in joints]),
        origin=np.array([_origin(joint.find("origin")) for joint in joints]),
        axis=np.array([_numbers(joint.find("axis"), "xyz", "0 0 1") for joint in joints]),
        prismatic=np.array([_is_prismatic(joint, path) for joint in joints]),
        shapes=ShapeTable(
            np.array(kinds, dtype=np.int64),
            np.array(sizes, dtype=np.float64),
            pose[:, :3, :3].copy(),
            pose[:, :3, 3].copy(),
            np.array(shape_colours, dtype=np.float64),
            np.full(len(rows), body, dtype=np.int64),
        ),
        shape_link=np.array(shape_link, dtype=np.int64),
    )


def _shape(
    visual: ElementTree.Element, colours: dict[str, list[float]], path: Path
) -> tuple[int, list[float], FloatArray, list[float]]:
    geometry = visual.find("geometry")
    material = visual.find("material")
    if geometry is None or len(geometry) != 1 or material is None:
        raise DescriptionError(f"{path.name}: a visual needs one geometry and a material")
    shape = geometry[0]
    colour = colours[material.attrib["name"]]
    origin = _origin(visual.find("origin"))
    if shape.tag == "box":
        return Kind.BOX, [side / 2 for side in _numbers(shape, "size", "")], origin, colour
    if shape.tag == "cylinder":
        size = [float(shape.attrib["radius"]), float(shape.attrib["length"]) / 2, 0.0]
        return Kind.CYLINDER, size, origin, colour
    if shape.tag == "sphere":
        return Kind.SPHERE, [float(shape.attrib["radius"]), 0.0, 0.0], origin, colour
    raise DescriptionError(f"{path.name}: geometry '{shape.tag}' is not box, cylinder or sphere")


def _is_prismatic(joint: ElementTree.Element, path: Path) -> bool:
    kind = joint.attrib["type"]
    if kind not in ("revolute", "prismatic"):
        raise DescriptionError(
            f"{path.name}: joint '{joint.attrib['name']}' is {kind}; "
            "only revolute and prismatic are read"
        )
    return kind == "prismatic"


def _child(joint: ElementTree.Element, tag: str) -> str:
    element = joint.find(tag)
    if element is None:
        raise DescriptionError(f"joint '{joint.attrib['name']}' has no <{tag}>")
    return element.attrib["link"]


def _numbers(element: ElementTree.Element | None, name: str, default: str) -> list[float]:
    text = default if element is None else element.attrib.get(name, default)
    return [float(word) for word in text.split()]


def _origin(element: ElementTree.Element | None) -> FloatArray:
    pose = np.eye(4)
    roll_pitch_yaw = _numbers(element, "rpy", "0 0 0")
    pose[:3, :3] = Rotation.from_euler("xyz", roll_pitch_yaw).as_matrix()
    pose[:3, 3] = _numbers(element, "xyz", "0 0 0")
    return pose


@njit(cache=True)
def _chain(parent, origin, axis, prismatic, values):  # type: ignore[no-untyped-def] # pragma: no cover
    frames = np.empty((len(parent) + 1, 4, 4))
    frames[0] = np.eye(4)
    for i in range(len(parent)):
        motion = np.eye(4)
        x, y, z = axis[i]
        if prismatic[i]:
            motion[0, 3], motion[1, 3], motion[2, 3] = x * values[i], y * values[i], z * values[i]
        else:
            # Rodrigues' formula for a unit axis.
            c, s = math.cos(values[i]), math.sin(values[i])
            u = 1.0 - c
            motion[0, 0], motion[0, 1], motion[0, 2] = (
                c + u * x * x,
                u * x * y - s * z,
                u * x * z + s * y,
            )
            motion[1, 0], motion[1, 1], motion[1, 2] = (
                u * x * y + s * z,
                c + u * y * y,
                u * y * z - s * x,
            )
            motion[2, 0], motion[2, 1], motion[2, 2] = (
                u * x * z - s * y,
                u * y * z + s * x,
                c + u * z * z,
            )
        frames[i + 1] = frames[parent[i]] @ origin[i] @ motion
    return frames
