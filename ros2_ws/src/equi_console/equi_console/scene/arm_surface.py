# SPDX-License-Identifier: MIT
"""How far points are from the surface of arm and gripper, by the robot's description.

The description's boxes and cylinders are what the simulated arm is made of; of a real arm they are
a likeness. Whoever measures by them has to look at how well the points lie on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from equi_core import geometry as geo
from equi_core.cell_geometry import CellGeometry
from equi_core.motion.arm_models import UR5, ArmModel
from equi_core.robot_description.joint_tree import JointTree
from equi_core.robot_description.urdf import (
    FINGER_JOINT,
    TCP_FRAME,
    finger_position_m,
    robot_description,
)

FloatArray = NDArray[np.float64]

ARM_JOINTS = (
    *("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint"),
    *("wrist_1_joint", "wrist_2_joint", "wrist_3_joint"),
)
_STEP_M = 1e-5


@dataclass(frozen=True, eq=False)
class _Shape:
    link: str
    link_from_shape: FloatArray
    half_m: FloatArray
    """Of a box: half extents (3,); of a cylinder: radius and half length (2,) [m]."""


@dataclass(frozen=True, eq=False)
class PosedSurface:
    """The surface in one posture, in the task frame."""

    shapes: tuple[tuple[FloatArray, FloatArray], ...]
    """shape_from_task (4, 4) and sizes of each shape."""

    def distance_m(self, points_m: FloatArray) -> FloatArray:
        """Signed distance (N,) of points (N, 3) of the task frame; negative inside [m]."""
        nearest = np.full(len(points_m), np.inf)
        for shape in self.shapes:
            nearest = np.minimum(nearest, _distance_m(points_m, *shape))
        return nearest

    def near(self, points_m: FloatArray, reach_m: float) -> PosedSurface:
        """Only the shapes that some point is near to: the others cost time and change nothing."""
        return PosedSurface(
            tuple(
                shape
                for shape in self.shapes
                if np.any(np.abs(_distance_m(points_m, *shape)) < reach_m)
            )
        )

    def direction(self, points_m: FloatArray) -> FloatArray:
        """Gradient (N, 3) of the distance: away from the surface."""
        here = self.distance_m(points_m)
        steps = _STEP_M * np.eye(3)
        moved = [self.distance_m(points_m + step) - here for step in steps]
        return np.column_stack(moved) / _STEP_M


def _distance_m(
    points_m: FloatArray, shape_from_task: FloatArray, half_m: FloatArray
) -> FloatArray:
    local = points_m @ shape_from_task[:3, :3].T + shape_from_task[:3, 3]
    if len(half_m) == 3:
        beyond = np.abs(local) - half_m
    else:
        radial = np.hypot(local[:, 0], local[:, 1]) - half_m[0]
        beyond = np.column_stack([radial, np.abs(local[:, 2]) - half_m[1]])
    outside = np.sqrt(np.sum(np.maximum(beyond, 0.0) ** 2, axis=1))
    inside: FloatArray = np.minimum(beyond.max(axis=1), 0.0)
    distance: FloatArray = outside + inside
    return distance


class ArmSurface:
    """The robot of a cell; `posed` puts it where the controller says it is."""

    def __init__(self, arm: ArmModel = UR5, geometry: CellGeometry | None = None) -> None:
        self._geometry = geometry or CellGeometry()
        text = robot_description(arm, self._geometry)
        self._tree = JointTree(text)
        self._shapes = tuple(
            _shape(str(link.get("name")), visual)
            for link in ElementTree.fromstring(text).findall("link")
            for visual in link.findall("visual")
        )

    def posed(
        self, joints_rad: Sequence[float], opening: float, tcp_m: Sequence[float] | None = None
    ) -> PosedSurface:
        """The surface for joints (6,) [rad], an opening from 0 to 1 and the measured TCP.

        Kinematics of an arm at hand differ by millimetres from the nominal ones. The controller
        knows them: everything is shifted so that the TCP is where it reports it (3,), in the task
        frame [m].
        """
        fingers = {FINGER_JOINT: finger_position_m(opening)}
        frames = self._tree.frames({**dict(zip(ARM_JOINTS, joints_rad, strict=True)), **fingers})
        shift = np.eye(4)
        if tcp_m is not None:
            shift[:3, 3] = tcp_m - self._geometry.to_task(frames[TCP_FRAME])[:3, 3]
        return PosedSurface(
            tuple(
                (
                    geo.invert(
                        shift @ self._geometry.to_task(frames[shape.link]) @ shape.link_from_shape
                    ),
                    shape.half_m,
                )
                for shape in self._shapes
            )
        )


def _shape(link: str, visual: ElementTree.Element) -> _Shape:
    origin, box = visual.find("origin"), visual.find("geometry/box")
    pose = np.eye(4)
    if origin is not None:
        pose[:3, 3] = _numbers(origin.get("xyz", "0 0 0"))
        angles = _numbers(origin.get("rpy", "0 0 0"))
        pose[:3, :3] = Rotation.from_euler("xyz", angles).as_matrix()
    if box is not None:
        return _Shape(link, pose, _numbers(str(box.get("size"))) / 2)
    cylinder = visual.find("geometry/cylinder")
    if cylinder is None:
        raise ValueError(f"link {link} of the robot's description has neither box nor cylinder")
    half = (float(str(cylinder.get("radius"))), float(str(cylinder.get("length"))) / 2)
    return _Shape(link, pose, np.array(half))


def _numbers(text: str) -> FloatArray:
    return np.array([float(word) for word in text.split()])
