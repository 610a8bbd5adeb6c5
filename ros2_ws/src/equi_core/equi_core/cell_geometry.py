# SPDX-License-Identifier: MIT
"""Where a cell's task, table and gripper are, seen from its robot: one place for every node.

The *task frame* is the frame of the policy: z = 0 is the table, the workspace of the contract, the
observations and the steps are stated in it. `base_link` is the robot's own frame; kinematics, the
calibration of the cameras and joint limits live there. Both are level: the task frame may be
shifted and turned about the vertical, not tilted. With the defaults they are the same frame.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equi_core.geometry import invert, pose_matrix, rotation_about_z

FloatArray = NDArray[np.float64]

TCP_FROM_FLANGE_M = 0.169
"""From the tool flange (tool0) to the TCP along the tool axis [m]: the TCP of the training
simulation, 5 mm above the tips of the closed 2F-85."""
TASK_FRAME = "task"
BASE_FRAME = "base_link"


class GeometryRangeError(ValueError):
    """A cell geometry that no cell can have; names the field, the value and what is allowed."""


# What a table-top cell can have. A unit mistake (mm, degrees) falls outside.
_RANGES: dict[str, tuple[float, float, str]] = {
    "task_x_m": (-1.5, 1.5, "metres"),
    "task_y_m": (-1.5, 1.5, "metres"),
    "task_yaw_rad": (-math.pi, math.pi, "radians"),
    "table_z_m": (-0.8, 0.5, "metres"),
    "tool_yaw_rad": (-math.pi, math.pi, "radians"),
    "tcp_from_flange_m": (0.05, 0.4, "metres"),
}


@dataclass(frozen=True)
class CellGeometry:
    """Task frame, table, mounting of the gripper and TCP of one cell."""

    task_x_m: float = 0.0
    """Origin of the task frame along x of base_link [m]."""
    task_y_m: float = 0.0
    """Origin of the task frame along y of base_link [m]."""
    task_yaw_rad: float = 0.0
    """From x of base_link to x of the task frame, counter-clockwise from above [rad]."""
    table_z_m: float = 0.0
    """Height of the table's surface above the origin of base_link [m]: z = 0 of the task frame."""
    tool_yaw_rad: float = 0.0
    """From x of the flange (tool0) to the axis along which the fingers open, about z of the flange
    [rad]."""
    tcp_from_flange_m: float = TCP_FROM_FLANGE_M
    """From the flange to the TCP along the tool axis [m]; nothing else states it."""

    def __post_init__(self) -> None:
        for spec in dataclasses.fields(self):
            value = getattr(self, spec.name)
            low, high, unit = _RANGES[spec.name]
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or not low <= value <= high:
                raise GeometryRangeError(
                    f"geometry.{spec.name} is {value}; it must be a number of {unit} between "
                    f"{low:.4g} and {high:.4g}: measure it again, and mind the unit"
                )

    @property
    def task_is_base_link(self) -> bool:
        """Whether the task frame is base_link itself."""
        return not any((self.task_x_m, self.task_y_m, self.task_yaw_rad, self.table_z_m))

    @property
    def frame_id(self) -> str:
        """Name of the task frame in messages: `base_link` where it is the same frame."""
        return BASE_FRAME if self.task_is_base_link else TASK_FRAME

    @cached_property
    def base_link_from_task(self) -> FloatArray:
        """Transform (4, 4) from the task frame to base_link."""
        position = (self.task_x_m, self.task_y_m, self.table_z_m)
        return pose_matrix(position, rotation_about_z(self.task_yaw_rad))

    @cached_property
    def task_from_base_link(self) -> FloatArray:
        """Transform (4, 4) from base_link to the task frame."""
        return invert(self.base_link_from_task)

    @cached_property
    def flange_from_tcp(self) -> FloatArray:
        """Transform (4, 4) from the TCP, whose x axis the fingers open along, to tool0."""
        return pose_matrix((0.0, 0.0, self.tcp_from_flange_m), rotation_about_z(self.tool_yaw_rad))

    @property
    def tcp_offset(self) -> list[float]:
        """The TCP as the controller takes it: x, y, z [m] and rotation vector [rad] in tool0."""
        return [0.0, 0.0, self.tcp_from_flange_m, 0.0, 0.0, self.tool_yaw_rad]

    def to_task(self, base_link_from_frame: FloatArray) -> FloatArray:
        """`task_from_frame` (4, 4) of a pose in base_link; the same array if they coincide."""
        if self.task_is_base_link:
            return base_link_from_frame
        pose: FloatArray = self.task_from_base_link @ base_link_from_frame
        return pose

    def to_base_link(self, task_from_frame: FloatArray) -> FloatArray:
        """`base_link_from_frame` (4, 4) of a pose in the task frame."""
        if self.task_is_base_link:
            return task_from_frame
        pose: FloatArray = self.base_link_from_task @ task_from_frame
        return pose

    def rotate_to_task(self, vectors: FloatArray) -> FloatArray:
        """A twist or wrench (6,) in base_link's axes, in the axes of the task frame."""
        if self.task_is_base_link:
            return vectors
        rotation = self.task_from_base_link[:3, :3]
        return np.concatenate([rotation @ vectors[:3], rotation @ vectors[3:]])
