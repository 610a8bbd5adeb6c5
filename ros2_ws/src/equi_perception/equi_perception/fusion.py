"""Clouds + robot state -> the policy's observation, by the functions of equi_core.

The same contract that shaped the training images shapes these; the calibration places the cameras.
Open3D is used only when asked for, for what it is best at: statistical outlier removal.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equi_core.calibration import CellCalibration
from equi_core.contract import PolicyContract
from equi_core.observation.height_repair import drop_spikes, fill_holes
from equi_core.observation.image import FloatImage, ObservationError, compose_observation
from equi_core.observation.projection import CameraCloud, fuse_clouds
from equi_core.observation.robot_shape import robot_volume


@dataclass(frozen=True)
class FusionConfig:
    """What may be tuned without touching the contract."""

    robot_margin_m: float = 0.006
    """How far around the robot's links points count as the robot's [m]."""
    min_height_m: float = -0.02
    max_height_m: float = 0.45
    """Points outside this range of heights are noise [m]."""
    max_unseen_fraction: float = 0.5
    """With more of the image unseen there is no observation."""
    remove_outliers: bool = False
    """Run Open3D's statistical outlier removal on each cloud first: slow, rarely needed."""

    def __post_init__(self) -> None:
        if not self.min_height_m < self.max_height_m:
            raise ValueError(
                f"min_height_m {self.min_height_m} must lie below max_height_m {self.max_height_m}"
            )
        if not 0 < self.max_unseen_fraction <= 1:
            raise ValueError(f"max_unseen_fraction is {self.max_unseen_fraction}; allowed 0 to 1")


@dataclass(frozen=True)
class RobotPose:
    """The part of the robot's state that places and draws the image."""

    joints_rad: tuple[float, ...]
    tcp_position_m: tuple[float, float, float]
    yaw_rad: float
    opening: float
    holding: bool


@dataclass(frozen=True, eq=False)
class FusedObservation:
    """The image and how it came about."""

    image: FloatImage
    """(2, S, S), exactly what the network takes."""
    unseen_fraction: float
    points_in_view: tuple[int, ...]
    points_on_robot: tuple[int, ...]
    stages_ms: Mapping[str, float]
    """Time per stage: fuse, repair, draw."""


class ObservationBuilder:
    """Builds observations of one policy from the cameras of one cell."""

    def __init__(
        self,
        contract: PolicyContract,
        calibration: CellCalibration,
        camera_names: tuple[str, ...],
        config: FusionConfig | None = None,
    ) -> None:
        self.contract = contract
        self.config = config or FusionConfig()
        self.camera_names = camera_names
        self._base_from_points = {
            name: calibration.camera(name).base_from_raw_points for name in camera_names
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
                self.build({name: points for name in self.camera_names}, robot)
            except ObservationError:
                heights = np.zeros((self.contract.image.size_px,) * 2, dtype=np.float32)
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
        image, config = self.contract.image, self.config
        begin = time.perf_counter()
        volume = robot_volume(robot.joints_rad, robot.opening, image, config.robot_margin_m)
        clouds = [
            CameraCloud(self._prepared(points[name]), self._base_from_points[name])
            for name in self.camera_names
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
                "stands in front of the cameras and that their calibration is right"
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
            unseen_fraction=unseen,
            points_in_view=fused.points_in_view,
            points_on_robot=fused.points_on_robot,
            stages_ms={
                "fuse": (fused_at - begin) * 1e3,
                "repair": (repaired_at - fused_at) * 1e3,
                "draw": (drawn_at - repaired_at) * 1e3,
            },
        )

    def _prepared(self, points: NDArray[np.float32]) -> NDArray[np.float32]:
        return _without_outliers(points) if self.config.remove_outliers else points


def _without_outliers(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Points that lie about as far from their neighbours as the others do, by Open3D."""
    import open3d  # a large library, loaded only by those who ask for it

    xyz: Any = points[:, :3].astype(np.float64)
    valid = np.isfinite(xyz).all(axis=1) & (xyz != 0.0).any(axis=1)
    cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(xyz[valid]))
    kept, _ = cloud.remove_statistical_outlier(nb_neighbors=12, std_ratio=2.0)
    return np.asarray(kept.points, dtype=np.float32)
