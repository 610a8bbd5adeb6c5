# SPDX-License-Identifier: MIT
"""Transforms of a URDF's joints: fixed ones once, the others for joint positions.

Understands what a serial arm with a gripper uses: fixed, revolute, continuous and prismatic joints,
and joints that mimic another. Anything else is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

FloatArray = NDArray[np.float64]

_TURNING = ("revolute", "continuous")
_KINDS = ("fixed", *_TURNING, "prismatic")


class DescriptionError(ValueError):
    """A robot description that cannot be read or used; says what is wrong with it."""


@dataclass(frozen=True, eq=False)
class Joint:
    """One joint: its child link's pose in the parent link."""

    name: str
    kind: str
    parent: str
    child: str
    origin: FloatArray
    """parent_from_child (4, 4) at position zero."""
    axis: FloatArray
    """(3,) unit vector in the joint's frame."""
    mimics: str = ""
    """Joint whose position this one follows; empty: its own."""
    multiplier: float = 1.0
    offset: float = 0.0

    def transform(self, position: float) -> FloatArray:
        """parent_from_child (4, 4) at a position [rad or m]."""
        moved = np.eye(4)
        if self.kind in _TURNING:
            moved[:3, :3] = Rotation.from_rotvec(position * self.axis).as_matrix()
        elif self.kind == "prismatic":
            moved[:3, 3] = position * self.axis
        result: FloatArray = self.origin @ moved
        return result


class JointTree:
    """The joints of one description."""

    def __init__(self, text: str) -> None:
        """Read a URDF; DescriptionError if it is none or holds what is not understood."""
        try:
            robot = ElementTree.fromstring(text)
        except ElementTree.ParseError as error:
            raise DescriptionError(f"the robot description is not XML: {error}") from None
        if robot.tag != "robot":
            raise DescriptionError(f"the robot description begins with <{robot.tag}>, not <robot>")
        self.name = str(robot.get("name", ""))
        self.joints = tuple(_joint(element) for element in robot.findall("joint"))
        self.links = tuple(str(link.get("name")) for link in robot.findall("link"))
        children = [joint.child for joint in self.joints]
        roots = [link for link in self.links if link not in children]
        if len(roots) != 1 or len(set(children)) != len(children):
            raise DescriptionError(
                f"the links of '{self.name}' do not form a tree: roots {', '.join(roots) or 'none'}"
            )
        self.root = roots[0]

    @property
    def fixed(self) -> tuple[Joint, ...]:
        """Joints that never move."""
        return tuple(joint for joint in self.joints if joint.kind == "fixed")

    @property
    def moving(self) -> tuple[Joint, ...]:
        """Joints whose position must be known."""
        return tuple(joint for joint in self.joints if joint.kind != "fixed")

    def position(self, joint: Joint, positions: Mapping[str, float]) -> float | None:
        """Position of a joint among those reported [rad or m]; None if it was not reported."""
        value = positions.get(joint.mimics or joint.name)
        return None if value is None else joint.multiplier * value + joint.offset

    def frames(self, positions: Mapping[str, float]) -> dict[str, FloatArray]:
        """root_from_link (4, 4) of every link; joints that are not reported stand at zero."""
        frames = {self.root: np.eye(4)}
        waiting = list(self.joints)
        while waiting:
            rest = []
            for joint in waiting:
                if joint.parent not in frames:
                    rest.append(joint)
                    continue
                position = self.position(joint, positions) or 0.0
                frames[joint.child] = frames[joint.parent] @ joint.transform(position)
            if len(rest) == len(waiting):
                raise DescriptionError(f"{rest[0].parent} of joint {rest[0].name} is not a link")
            waiting = rest
        return frames


def _joint(element: ElementTree.Element) -> Joint:
    name, kind = str(element.get("name")), str(element.get("type"))
    if kind not in _KINDS:
        raise DescriptionError(f"joint {name} is '{kind}'; supported are {', '.join(_KINDS)}")
    parent, child = element.find("parent"), element.find("child")
    if parent is None or child is None:
        raise DescriptionError(f"joint {name} lacks its parent or child link")
    place = element.find("origin")
    origin = np.eye(4)
    if place is not None:
        origin[:3, 3] = _vector(place.get("xyz", "0 0 0"), name)
        angles = _vector(place.get("rpy", "0 0 0"), name)
        origin[:3, :3] = Rotation.from_euler("xyz", angles).as_matrix()
    axis_element = element.find("axis")
    axis = _vector("1 0 0" if axis_element is None else axis_element.get("xyz", "1 0 0"), name)
    length = float(np.linalg.norm(axis))
    if kind != "fixed" and length < 1e-9:
        raise DescriptionError(f"joint {name} has no axis")
    mimic = element.find("mimic")
    if mimic is None:
        return Joint(name, kind, _link(parent), _link(child), origin, axis / max(length, 1e-9))
    return Joint(
        name,
        kind,
        _link(parent),
        _link(child),
        origin,
        axis / max(length, 1e-9),
        str(mimic.get("joint")),
        float(mimic.get("multiplier", "1")),
        float(mimic.get("offset", "0")),
    )


def _link(element: ElementTree.Element) -> str:
    return str(element.get("link"))


def _vector(text: str, joint: str) -> FloatArray:
    try:
        values = np.array([float(word) for word in text.split()])
    except ValueError:
        values = np.empty(0)
    if values.shape != (3,) or not np.isfinite(values).all():
        raise DescriptionError(f"joint {joint} has '{text}' where three numbers belong")
    return values
