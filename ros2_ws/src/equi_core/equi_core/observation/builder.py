# SPDX-License-Identifier: MIT
"""Camera clouds and robot state -> the policy's observation: the one place that composes it.

The perception node, the studies, the benchmark and the test of the law all run this object. The
same contract that shaped the training images shapes these; the calibration places the cameras.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equi_core import geometry as geo
from equi_core.cell_geometry import CellGeometry
from equi_core.contract import ImageSpec
from equi_core.motion.arm_models import UR5, ArmModel
from equi_core.observation.height_repair import drop_spikes, fill_holes
from equi_core.observation.image import FloatImage, ObservationError, compose_observation
from equi_core.observation.projection import CameraCloud, fuse_clouds
from equi_core.observation.robot_shape import robot_volume
from equi_core.setting_fields import setting


@dataclass(frozen=True)
class FusionConfig:
    """What may be tuned without touching the contract."""

    robot_margin_m: float = setting(0.006, low=0.0, high=0.1)
    """How far around the robot's links points count as the robot's [m]."""
    min_height_m: float = setting(-0.02, "lower points are noise [m]", low=-0.5, high=0.5)
    max_height_m: float = setting(0.45, "higher points are noise [m]", low=0.0, high=2.0)
    max_unseen_fraction: float = setting(0.5, low=0.0, high=1.0)
    """With more of the image unseen there is no observation."""

    def __post_init__(self) -> None:
        if not self.min_height_m < self.max_height_m:
            raise ValueError(
                f"min_height_m {self.min_height_m} must lie below max_height_m {self.max_height_m}"
            )
        if not 0 < self.max_unseen_fraction <= 1:
            raise ValueError(f"max_unseen_fraction is {self.max_unseen_fraction}; allowed 0 to 1")


@dataclass(frozen=True)
class RobotPose:
    """The part of the robot's state that places and draws the image, in the task frame."""

    joints_rad: tuple[float, ...]
    tcp_position_m: tuple[float, float, float]
    yaw_rad: float
    opening: float
    holding: bool
    quaternion_xyzw: tuple[float, float, float, float] | None = None
    """Measured orientation of the TCP in the task frame; None: it points straight down."""

    @property
    def task_from_tcp(self) -> NDArray[np.float64]:
        """Measured pose (4, 4) of the TCP."""
        if self.quaternion_xyzw is None:
            return geo.top_down_pose(self.tcp_position_m, self.yaw_rad)
        rotation = geo.quaternion_xyzw_to_matrix(self.quaternion_xyzw)
        return geo.pose_matrix(self.tcp_position_m, rotation)


@dataclass(frozen=True, eq=False)
class FusedObservation:
    """The image and how it came about."""

    image: FloatImage
    """(2, S, S), exactly what the network takes."""
    height_m: FloatImage
    """Heights (S, S) above z = 0 of the task frame [m] that it shows; holes are filled."""
    unseen_fraction: float
    points_in_view: tuple[int, ...]
    points_on_robot: tuple[int, ...]
    stages_ms: Mapping[str, float]
    """Time per stage: fuse, repair, draw."""


class ObservationBuilder:
    """Builds observations of one policy from the cameras of one cell."""

    def __init__(
        self,
        image: ImageSpec,
        base_from_points: Mapping[str, NDArray[np.float64]],
        config: FusionConfig | None = None,
        geometry: CellGeometry | None = None,
        arm: ArmModel = UR5,
    ) -> None:
        """Define what is drawn, and where the cameras are.

        Args:
            image: image definition of the contract.
            base_from_points: (4, 4) per camera name that places its raw points in base_link,
                depth correction included (`CameraCalibration.base_from_raw_points`).
            config: limits of the fusion.
            geometry: task frame and mounting of the gripper; by default the task frame is
                base_link.
            arm: model of the arm, which is taken out of the clouds.
        """
        self.image = image
        self.config = config or FusionConfig()
        self._geometry = geometry or CellGeometry()
        self._arm = arm
        self._task_from_points = {
            name: self._geometry.to_task(pose) for name, pose in base_from_points.items()
        }

    def warm_up(self) -> None:
        """Compile the kernels before the first cloud arrives."""
        cloud = np.array([[0.0, 0.0, 0.5, 0.0]], dtype=np.float32)
        # Each kind of array gets a kernel of its own: a message's bytes can only be read, the copy
        # of a cloud in another layout can be written too.
        message = cloud.copy()
        message.flags.writeable = False
        robot = RobotPose((0.0, -1.57, 1.57, -1.57, -1.57, 0.0), (0.5, 0.0, 0.2), 0.0, 1.0, False)
        for points in (message, cloud):
            # One point cannot make an image; compiling is all that is wanted here.
            try:
                self.build(dict.fromkeys(self._task_from_points, points), robot)
            except ObservationError:
                heights = np.zeros((self.image.size_px,) * 2, dtype=np.float32)
                heights[0, 0] = np.nan
                fill_holes(drop_spikes(heights))

    def build(
        self,
        points: Mapping[str, NDArray[np.float32]],
        robot: RobotPose,
        goal_xy_m: tuple[float, float] | None = None,
    ) -> FusedObservation:
        """Fuse one cloud (N, C >= 3) per camera, given in that camera's optical frame [m].

        Raises ObservationError if too little of the image was seen.
        """
        image, config = self.image, self.config
        begin = time.perf_counter()
        volume = robot_volume(
            robot.joints_rad,
            robot.opening,
            image,
            config.robot_margin_m,
            self._geometry,
            robot.task_from_tcp,
            self._arm,
        )
        clouds = [
            CameraCloud(points[name], task_from_points)
            for name, task_from_points in self._task_from_points.items()
        ]
        fused = fuse_clouds(
            clouds,
            robot.tcp_position_m,
            image,
            robot_capsules_m=volume.capsules,
            robot_boxes_m=volume.boxes,
            height_range_m=(config.min_height_m, config.max_height_m),
        )
        fused_at = time.perf_counter()
        seen = drop_spikes(fused.height_m)
        unseen = float(np.mean(np.isnan(seen)))
        if unseen > config.max_unseen_fraction:
            raise ObservationError(
                f"{unseen:.0%} of the image is unseen, at most {config.max_unseen_fraction:.0%} is "
                f"allowed (points in view per camera: {fused.points_in_view}); check that nothing "
                "blocks the view of the cameras and that their calibration is right"
            )
        heights = fill_holes(seen)
        repaired_at = time.perf_counter()
        observation = compose_observation(
            heights,
            robot.tcp_position_m,
            robot.yaw_rad,
            robot.opening,
            robot.holding,
            image,
            goal_xy_m=goal_xy_m,
        )
        drawn_at = time.perf_counter()
        return FusedObservation(
            image=observation,
            height_m=heights,
            unseen_fraction=unseen,
            points_in_view=fused.points_in_view,
            points_on_robot=fused.points_on_robot,
            stages_ms={
                "fuse": (fused_at - begin) * 1e3,
                "repair": (repaired_at - fused_at) * 1e3,
                "draw": (drawn_at - repaired_at) * 1e3,
            },
        )
