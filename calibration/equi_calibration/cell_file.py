# SPDX-License-Identifier: MIT
"""The cell's calibration settings: which cameras, which board, where it is held, and the limits.

They are the block `equi_calibrate` of the cell file (equi_bringup's cells/<cell>.yaml, or your
own); serial numbers, cloud topics and tape-measured positions of the cameras come from its shared
block `cell`. Reading is strict: an unknown, missing or senseless field is refused by its name.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equi_calibration.board.board import BoardSpec
from equi_calibration.board.detection import ViewGate
from equi_calibration.errors import CalibrationError, CellFileError
from equi_core.cell_file import CellCamera, CellFile
from equi_core.cell_file import CellFileError as CoreCellFileError
from equi_core.cell_geometry import CellGeometry
from equi_core.contract import Workspace
from equi_core.geometry import (
    pose_matrix,
    quaternion_xyzw,
    quaternion_xyzw_to_matrix,
    transform_points,
)
from equi_core.motion.arm_models import UR5, ArmModel
from equi_core.strict_fields import FieldError, read_fields

FloatArray = NDArray[np.float64]
BLOCK = "equi_calibrate"
"""The block of the cell file that is read here."""


@dataclass(frozen=True)
class Pose:
    """A pose as a file holds it."""

    position_m: tuple[float, float, float]
    quaternion_xyzw: tuple[float, float, float, float]

    @property
    def matrix(self) -> FloatArray:
        """As a transform (4, 4)."""
        rotation = quaternion_xyzw_to_matrix(self.quaternion_xyzw)
        return pose_matrix(self.position_m, rotation)


@dataclass(frozen=True)
class CameraTopics:
    """Where one camera's images come from."""

    optical_frame: str
    image_topic: str
    camera_info_topic: str

    def __post_init__(self) -> None:
        _require_text(self, "optical_frame", "image_topic", "camera_info_topic")


@dataclass(frozen=True)
class CameraSettings:
    """One camera of the cell."""

    name: str
    serial: str
    """Serial number on the device's label; images of another device are refused."""
    optical_frame: str
    """frame_id of its clouds, which is the frame that is calibrated."""
    nominal: Pose
    """Where it was mounted, by tape measure: base_from_camera. Centimetres and degrees will do."""
    image_topic: str
    camera_info_topic: str
    cloud_topic: str


@dataclass(frozen=True)
class Box:
    """An axis-aligned box [m], in base_link unless its owner says otherwise."""

    low_m: tuple[float, float, float]
    high_m: tuple[float, float, float]

    def __post_init__(self) -> None:
        if not all(a < b for a, b in zip(self.low_m, self.high_m, strict=True)):
            raise CellFileError(f"box: low_m {self.low_m} must lie below high_m {self.high_m}")

    def contains(self, point_m: FloatArray) -> bool:
        """Whether a point lies inside."""
        return bool(np.all(point_m >= self.low_m) and np.all(point_m <= self.high_m))

    @property
    def centre_m(self) -> FloatArray:
        """Middle (3,) [m]."""
        return (np.asarray(self.low_m) + np.asarray(self.high_m)) / 2

    def corners_m(self) -> FloatArray:
        """The eight corners (8, 3) [m]."""
        low, high = np.asarray(self.low_m), np.asarray(self.high_m)
        bits = np.array([[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)])
        return low + bits * (high - low)


@dataclass(frozen=True)
class CollectSettings:
    """How the arm shows the board."""

    tcp_from_board: Pose
    """Where the board sits in the hand, roughly; the solver finds it exactly."""
    board_box: Box
    """The board's centre stays in here while collecting."""
    tcp_box: Box
    """The TCP stays in here while collecting."""
    table_clearance_m: float
    """Lowest point of board and gripper above the table."""
    poses: int
    speed_m_s: float
    settle_s: float
    """Rest before an image is taken."""

    def __post_init__(self) -> None:
        if not 0.0 < self.speed_m_s <= 0.25:
            raise CellFileError(f"collect.speed_m_s = {self.speed_m_s} must lie in (0, 0.25]")
        if self.poses < 8:
            raise CellFileError(f"collect.poses = {self.poses} must be at least 8")


@dataclass(frozen=True)
class SceneSettings:
    """The block that the depth check uses, and the region of the table."""

    workspace: Box
    """In the task frame, in which table and blocks are examined."""
    geometry: CellGeometry
    block_size_m: tuple[float, float, float]
    """Length, width, height."""
    block_count: int


@dataclass(frozen=True)
class VerdictLimits:
    """What a calibration has to reach."""

    reprojection_px: float
    position_error_mm: float
    """Held-out poses, RMS."""
    orientation_error_deg: float
    """Held-out poses, RMS."""
    cross_camera_mm: float
    """Worst disagreement of the cameras anywhere in the workspace."""
    table_plane_mm: float
    """Largest height of the table plane over the workspace; it should be 0."""
    block_mm: float
    """Disagreement of the cameras on the position of a block."""
    uncertainty_mm: float
    """95 % position uncertainty in the workspace."""
    board_scale_percent: float
    depth_scale_percent: float
    robot_error_mm: float
    """Spread of the robot's own error as the data show it."""
    nominal_position_m: float
    """How far a camera may be found from where it was mounted by tape measure."""
    nominal_rotation_deg: float
    valid_for_days: float
    moved_mm: float
    """Daily check: a camera that is off by more than this has moved."""

    def __post_init__(self) -> None:
        for spec in dataclasses.fields(self):
            value = getattr(self, spec.name)
            if not (math.isfinite(value) and value > 0.0):
                raise CellFileError(f"limits.{spec.name} = {value} must be a positive number")


@dataclass(frozen=True)
class CellSettings:
    """Everything that calibration needs to know of a cell."""

    cell: str
    geometry: CellGeometry
    """Table and TCP seen from base_link, in which calibration works."""
    robot_serial: str
    board: BoardSpec
    cameras: tuple[CameraSettings, ...]
    collect: CollectSettings
    scene: SceneSettings
    limits: VerdictLimits
    view_gate: ViewGate
    arm: ArmModel = UR5
    """Whose links keep clear of the table: the driver's `link.robot_model`."""

    def __post_init__(self) -> None:
        _require_text(self, "robot_serial")

    def camera(self, name: str) -> CameraSettings:
        """The camera of that name."""
        for camera in self.cameras:
            if camera.name == name:
                return camera
        known = ", ".join(camera.name for camera in self.cameras)
        raise CellFileError(f"cell '{self.cell}' has no camera '{name}'; its cameras: {known}")

    @property
    def workspace_centre_m(self) -> FloatArray:
        """Middle (3,) of the policies' workspace in base_link [m]."""
        centre: FloatArray = transform_points(
            self.geometry.base_link_from_task, self.scene.workspace.centre_m[None]
        )[0]
        return centre

    @property
    def names(self) -> tuple[str, ...]:
        """Camera names."""
        return tuple(camera.name for camera in self.cameras)


def load_cell(path: Path) -> CellSettings:
    """Read the calibration settings of a cell file."""
    try:
        return _settings(CellFile.load(path))
    except CoreCellFileError as error:
        raise CellFileError(str(error)) from error
    except (FieldError, CellFileError) as error:
        raise CellFileError(f"{path}: {error}") from error


def _settings(file: CellFile) -> CellSettings:
    data = file.block(BLOCK)
    if not data:
        raise CellFileError(
            f"it has no block '{BLOCK}'; copy the one of launch/cells/sim.yaml and edit it"
        )
    topics = data.pop("cameras", None)
    if not isinstance(topics, Mapping) or set(topics) != set(file.camera_names):
        raise CellFileError(
            f"'{BLOCK}.cameras' must describe exactly the cameras {file.camera_names}"
        )
    cameras = tuple(_camera(name, camera, topics[name]) for name, camera in file.cameras.items())
    scene = data.get("scene")
    if isinstance(scene, Mapping):
        data["scene"] = {
            **scene,
            "workspace": policy_workspace(),
            "geometry": file.geometry,
        }
    whole = {**data, "cell": file.name, "geometry": file.geometry, "cameras": cameras}
    whole["arm"] = file.arm
    return read_fields(CellSettings, whole, BLOCK, refused_by=CalibrationError)


def policy_workspace() -> Box:
    """The part of the table that policies act on, as the contract has it by default."""
    space = Workspace()
    return Box((space.x_min_m, space.y_min_m, 0.0), (space.x_max_m, space.y_max_m, space.z_max_m))


def _camera(name: str, camera: CellCamera, data: Any) -> CameraSettings:
    where = f"{BLOCK}.cameras.{name}"
    topics = read_fields(CameraTopics, data, where, refused_by=CellFileError)
    for field, value in (("serial", camera.serial), ("topic", camera.topic)):
        if not value:
            raise CellFileError(
                f"'cell.{name}.{field}' is empty; the serial number is on the device's label,"
                " the topic is that of its clouds"
            )
    return CameraSettings(
        name,
        camera.serial,
        topics.optical_frame,
        _looking_at(camera.position_m, camera.target_m),
        topics.image_topic,
        topics.camera_info_topic,
        camera.topic,
    )


def _require_text(settings: object, *names: str) -> None:
    for name in names:
        if not getattr(settings, name):
            raise CellFileError(f"{name} is empty; write the name or number that it stands for")


def _looking_at(position_m: Sequence[float], target_m: Sequence[float]) -> Pose:
    """Pose of an upright camera (x right, y down, z forward) that looks at a point."""
    z = np.subtract(target_m, position_m)
    right = np.cross(z, [0.0, 0.0, 1.0])
    if np.linalg.norm(right) < 1e-6:
        raise CellFileError(
            f"a camera at {tuple(position_m)} looking at {tuple(target_m)} looks straight up or "
            "down; move one of the two by a centimetre"
        )
    z, x = z / np.linalg.norm(z), right / np.linalg.norm(right)
    quaternion = quaternion_xyzw(np.column_stack([x, np.cross(z, x), z]))
    px, py, pz = (float(value) for value in position_m)
    qx, qy, qz, qw = (float(value) for value in quaternion)
    return Pose((px, py, pz), (qx, qy, qz, qw))
