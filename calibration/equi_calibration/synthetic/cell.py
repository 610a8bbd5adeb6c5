# SPDX-License-Identifier: MIT
"""A simulated cell with known truth: an arm that carries a printed board past two cameras.

Shapes are ray-cast with the project's own renderer, the board is drawn with its print, and images,
depth and robot poses get the errors of real ones. Behind the same interfaces as a real cell
(`equi_calibration.collect.sources`), so that the commands cannot tell them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from equi_calibration.board.intrinsics import Intrinsics
from equi_calibration.cell_file import CellSettings
from equi_calibration.collect.sources import ArmReading, StampedImage
from equi_calibration.errors import CollectError
from equi_calibration.synthetic.board_render import draw_board
from equi_calibration.synthetic.cell_shapes import block_shapes, board_shape
from equi_calibration.synthetic.depth_camera import cloud_of, intrinsics_of_spec
from equi_cell_sim.camera_model import CameraSpec, NoiseSpec
from equi_cell_sim.depth_camera import DepthCamera
from equi_core.geometry import invert, pose_matrix, rotvec_to_matrix
from equi_core.motion import ur5_kinematics
from equi_rl.sim.raycast import ShapeTable
from equi_rl.sim.robot_model import robot_model

FloatArray = NDArray[np.float64]

START_S = 1_790_000_000.0
_FRAME_S = 0.1


@dataclass(frozen=True)
class Imperfections:
    """How the simulated cell differs from its file; all drawn from the seed."""

    camera_offset_m: float = 0.05
    """How far each camera is from its nominal position."""
    camera_offset_deg: float = 5.0
    board_offset_m: float = 0.005
    """How far the board is from its nominal position in the gripper."""
    board_offset_deg: float = 2.0
    robot_position_m: float = 0.3e-3
    """Standard deviation of the reported TCP position, per axis."""
    robot_rotation_deg: float = 0.03
    """Standard deviation of the reported TCP orientation, per axis."""
    lens_blur_px: float = 0.6
    sensor_noise: float = 2.5
    """Standard deviation in grey levels of 255."""
    print_scale: float = 1.0
    """True size of the print over its stated size."""
    depth: NoiseSpec = field(default_factory=lambda: NoiseSpec(scale_error=0.004))
    swap_cameras: bool = False
    """Cables exchanged: each camera's images arrive under the other one's name."""
    moved_camera: str = ""
    """This camera is moved while collecting ..."""
    moved_after_pose: int = 10**9
    """... after so many images ..."""
    moved_m: float = 0.0
    """... by this much, in a drawn direction."""
    blunders: int = 0
    """Number of robot poses that are plainly wrong, by centimetres."""


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """What the solver should find."""

    base_from_camera: Mapping[str, FloatArray]
    tcp_from_board: FloatArray


class SimulatedCell:
    """World, arm and cameras; a clock that advances when something waits or moves."""

    def __init__(
        self,
        cell: CellSettings,
        seed: int = 0,
        imperfections: Imperfections | None = None,
        blocks_xy_yaw: tuple[tuple[float, float, float], ...] = (
            (0.42, -0.10, 0.3),
            (0.58, 0.08, 0.9),
            (0.44, 0.11, 1.3),
        ),
    ) -> None:
        self.settings = cell
        self.imperfections = imperfections or Imperfections()
        self.rng = np.random.default_rng(seed)
        wrong = self.imperfections
        self.truth = GroundTruth(
            {
                camera.name: camera.nominal.matrix
                @ _offset(self.rng, wrong.camera_offset_m, wrong.camera_offset_deg)
                for camera in cell.cameras
            },
            cell.collect.tcp_from_board.matrix
            @ _offset(self.rng, wrong.board_offset_m, wrong.board_offset_deg),
        )
        self._moved_direction = _direction(self.rng)
        scale = wrong.print_scale
        self.print = replace(
            cell.board,
            square_m=cell.board.square_m * scale,
            marker_m=cell.board.marker_m * scale,
            margin_m=cell.board.margin_m * scale,
        )
        self.clock_s = START_S
        self.joints_rad = np.asarray(ur5_kinematics.HOME_RAD)
        self.board_in_hand = True
        self.arm_visible = True
        self.blocks_xy_yaw = blocks_xy_yaw
        names = list(cell.names)
        seen_as = dict(zip(names, names[::-1] if wrong.swap_cameras else names, strict=True))
        self.cameras = {
            name: SimulatedCamera(self, name, device=seen_as[name], seed=seed) for name in names
        }
        self.arm = SimulatedArm(self)

    def true_camera(self, device: str, images: int) -> FloatArray:
        """True pose of a camera after so many images; one that is moved jumps after some."""
        pose = self.truth.base_from_camera[device]
        wrong = self.imperfections
        if device == wrong.moved_camera and images >= wrong.moved_after_pose:
            pose = pose.copy()
            pose[:3, 3] += wrong.moved_m * self._moved_direction
        return pose

    def base_from_tcp(self) -> FloatArray:
        """True TCP pose."""
        return ur5_kinematics.forward(self.joints_rad) @ self.settings.geometry.flange_from_tcp

    def base_from_board(self) -> FloatArray:
        """True pose of the print."""
        return self.base_from_tcp() @ self.truth.tcp_from_board

    def shapes(self) -> ShapeTable:
        """Everything that can be seen, but the table."""
        tables = [block_shapes(self.blocks_xy_yaw, self.settings.scene.block_size_m)]
        if self.arm_visible:
            fingers = [0.0] * (len(robot_model().joint_names) - 6)
            tables.append(robot_model().posed_shapes([*self.joints_rad, *fingers]))
            if self.board_in_hand:
                tables.append(board_shape(self.print, self.base_from_board()))
        return ShapeTable.joined(*tables)


class SimulatedCamera:
    """One camera of a simulated cell (`CameraSource`)."""

    def __init__(self, cell: SimulatedCell, name: str, device: str, seed: int) -> None:
        self._cell = cell
        self._name = name
        self._device = device
        self._image_count = 0
        self._seed = seed
        self._spec = CameraSpec(device, cell.settings.camera(device).nominal.position_m)
        self._intrinsics = intrinsics_of_spec(self._spec)
        self._placed: tuple[FloatArray, DepthCamera, DepthCamera] | None = None

    @property
    def name(self) -> str:
        """Name under which its data arrive."""
        return self._name

    @property
    def serial(self) -> str:
        """Serial as the driver reports it under this name."""
        return self._cell.settings.camera(self._name).serial

    @property
    def intrinsics(self) -> Intrinsics:
        """Of its images."""
        return self._intrinsics

    @property
    def cloud_from_image(self) -> FloatArray:
        """Both are one optical frame here."""
        return np.eye(4)

    def image_after(self, stamp_s: float, timeout_s: float) -> StampedImage:
        """An image exposed at the first frame time after `stamp_s`."""
        del timeout_s
        cell = self._cell
        cell.clock_s = max(cell.clock_s, stamp_s) + _FRAME_S
        pose, ideal, _ = self._devices()
        frame = ideal.capture(cell.shapes())
        image = np.asarray(cv2.cvtColor(frame.colour, cv2.COLOR_RGB2GRAY), dtype=np.uint8)
        if cell.board_in_hand and cell.arm_visible:
            depth = frame.depth_units.astype(np.float64) * frame.unit_m
            camera_from_board = invert(pose) @ cell.base_from_board()
            draw_board(image, depth, cell.print, self._intrinsics, camera_from_board)
        self._image_count += 1
        return StampedImage(self._degraded(image), cell.clock_s, cell.clock_s + 0.06)

    def cloud_after(self, stamp_s: float, timeout_s: float) -> tuple[NDArray[np.float32], float]:
        """A cloud in the optical frame."""
        del timeout_s
        cell = self._cell
        cell.clock_s = max(cell.clock_s, stamp_s) + _FRAME_S
        _, _, noisy = self._devices()
        frame = noisy.capture(cell.shapes(), with_colour=False)
        return cloud_of(self._spec, frame)[:, :3].copy(), cell.clock_s

    @property
    def depth_camera(self) -> DepthCamera:
        """The device itself, at its true pose and with its errors."""
        return self._devices()[2]

    def _devices(self) -> tuple[FloatArray, DepthCamera, DepthCamera]:
        """True pose, the camera without errors, and the one with them."""
        pose = self._cell.true_camera(self._device, self._image_count)
        if self._placed is None or not np.array_equal(self._placed[0], pose):
            wrong = self._cell.imperfections
            self._placed = (
                pose,
                DepthCamera(self._spec, NoiseSpec.ideal(), pose, self._seed),
                DepthCamera(self._spec, wrong.depth, pose, self._seed),
            )
        return self._placed

    def _degraded(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        wrong, rng = self._cell.imperfections, self._cell.rng
        light = image.astype(np.float64)
        if wrong.lens_blur_px > 0:
            light = np.asarray(cv2.GaussianBlur(light, (0, 0), wrong.lens_blur_px))
        light = light + rng.normal(0.0, wrong.sensor_noise, light.shape)
        return np.clip(light + 0.5, 0, 255).astype(np.uint8)


class SimulatedArm:
    """The arm of a simulated cell (`ArmMover`): exact motion, reported with errors."""

    def __init__(self, cell: SimulatedCell) -> None:
        self._cell = cell
        self._readings = 0

    def now_s(self) -> float:
        """The simulated clock."""
        return self._cell.clock_s

    def read(self) -> ArmReading:
        """Where the arm is, as its encoders and its kinematic model say."""
        cell, wrong = self._cell, self._cell.imperfections
        rng = cell.rng
        error = pose_matrix(
            rng.normal(0.0, wrong.robot_position_m, 3),
            rotvec_to_matrix(rng.normal(0.0, np.radians(wrong.robot_rotation_deg), 3)),
        )
        self._readings += 1
        if self._readings <= wrong.blunders:
            error[:3, 3] += 0.03 * _direction(rng)
        return ArmReading(
            cell.base_from_tcp() @ error, cell.joints_rad.copy(), cell.clock_s, moving=False
        )

    def move_to(self, joints_rad: FloatArray, speed_m_s: float) -> None:
        """Arrive there; the clock advances by a plausible time."""
        joints = np.asarray(joints_rad, dtype=np.float64)
        if joints.shape != (6,) or not np.all(np.isfinite(joints)):
            raise CollectError(f"joint target {joints.tolist()} must be six finite angles [rad]")
        before = self._cell.base_from_tcp()[:3, 3]
        self._cell.joints_rad = joints.copy()
        distance_m = float(np.linalg.norm(self._cell.base_from_tcp()[:3, 3] - before))
        self._cell.clock_s += 0.5 + distance_m / speed_m_s


def _offset(rng: np.random.Generator, distance_m: float, angle_deg: float) -> FloatArray:
    return pose_matrix(
        distance_m * _direction(rng), rotvec_to_matrix(np.radians(angle_deg) * _direction(rng))
    )


def _direction(rng: np.random.Generator) -> FloatArray:
    vector = rng.normal(size=3)
    return vector / np.linalg.norm(vector)
