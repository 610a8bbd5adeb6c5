# SPDX-License-Identifier: MIT
"""The observation through two cameras whose true poses differ from the calibrated ones.

The simulated world is rendered from the true poses; the clouds are transformed by the calibrated
poses and become an observation by the same `ObservationBuilder` as on the robot.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from equi_calibration.synthetic.depth_camera import cloud_of
from equi_cell_sim.camera_model import CameraRig
from equi_cell_sim.depth_camera import DepthCamera
from equi_core.contract import ImageSpec
from equi_core.observation.builder import (
    FusedObservation,
    FusionConfig,
    ObservationBuilder,
    RobotPose,
)
from equi_core.observation.image import compose_observation
from equi_rl.envs.base import HiddenPropertyEnv
from equi_rl.sim.world import World

FloatArray = NDArray[np.float64]
FloatImage = NDArray[np.float32]

_EDGE_PX = 2
_EDGE_STEP_M = 0.005
_WRONG_M = 0.01


@dataclass(frozen=True, eq=False)
class CalibratedCamera:
    """A camera at its true pose, and the pose that the calibration states."""

    camera: DepthCamera
    base_from_points: FloatArray
    """(4, 4) by which perception transforms its raw points, depth correction included."""


@dataclass(frozen=True)
class ImageError:
    """A fused depth image against the training renderer's image of the same scene."""

    flat_mm: float
    """Mean absolute depth error further than two pixels from every edge."""
    wrong_share: float
    """Share of all pixels that are off by more than 10 mm."""


class FusedCamera:
    """All cameras of a cell, fused to the observation of a world."""

    def __init__(self, world: World, cameras: Sequence[CalibratedCamera], image: ImageSpec) -> None:
        self._world = world
        self._cameras = {item.camera.spec.name: item for item in cameras}
        self._image = image

    def heights(self) -> FloatImage:
        """Fused heights (S, S) [m] around the TCP; unseen pixels are filled as on the robot.

        Raises:
            ObservationError: more is unseen than perception allows.
        """
        return self._fused(FusionConfig()).height_m

    def observation(self) -> FloatImage:
        """What the policy gets (2, S, S); raises as `heights` does."""
        return self._fused(FusionConfig()).image

    def image_error(self) -> ImageError:
        """Error of the fused image of the present scene, however little of it was seen."""
        state = self._world.get_state()
        true = compose_observation(
            self._world.heights(self._image, state.tcp_position_m[:2]),
            state.tcp_position_m,
            state.yaw_rad,
            state.scene.opening,
            state.holding,
            self._image,
            goal_xy_m=state.scene.goal_xy_m,
        )[0]
        error = np.abs(self._fused(FusionConfig(max_unseen_fraction=1.0)).image[0] - true)
        kernel = np.ones((2 * _EDGE_PX + 1, 2 * _EDGE_PX + 1), np.uint8)
        flat = cv2.dilate(true, kernel) - cv2.erode(true, kernel) < _EDGE_STEP_M
        return ImageError(1000 * float(error[flat].mean()), float((error > _WRONG_M).mean()))

    def _fused(self, config: FusionConfig) -> FusedObservation:
        shapes, state = self._world.shapes(with_robot=True), self._world.get_state()
        poses = {name: item.base_from_points for name, item in self._cameras.items()}
        clouds = {
            name: cloud_of(item.camera.spec, item.camera.capture(shapes, with_colour=False))
            for name, item in self._cameras.items()
        }
        joints, _ = self._world.arm.measured()
        robot = RobotPose(
            tuple(joints), state.tcp_position_m, state.yaw_rad, state.scene.opening, state.holding
        )
        builder = ObservationBuilder(self._image, poses, config)
        return builder.build(clouds, robot, state.scene.goal_xy_m)


def displaced_cameras(rig: CameraRig, seed: int) -> list[CalibratedCamera]:
    """The cameras of a rig, displaced as it says, while the calibration stays nominal."""
    wrong = dataclasses.replace(rig.miscalibration, seed=seed)
    return [
        CalibratedCamera(
            DepthCamera(
                spec, rig.noise, wrong.true_pose(spec.base_from_camera, spec.name), seed=seed
            ),
            spec.base_from_camera,
        )
        for spec in rig.cameras
    ]


def pose_scene(env: HiddenPropertyEnv, seed: int) -> None:
    """A scene of the task with the gripper somewhere over the workspace, open or closing."""
    env.reset(seed=seed)
    rng = np.random.default_rng([seed, 7])
    x, y, z = rng.uniform((0.35, -0.15, 0.10), (0.65, 0.15, 0.24))
    env.world.reset(
        dataclasses.replace(
            env.state().scene,
            tcp_position_m=(float(x), float(y), float(z)),
            yaw_rad=float(rng.uniform(-np.pi / 2, np.pi / 2)),
            opening=float(rng.choice([1.0, 0.6])),
        )
    )


def mean_error(errors: Sequence[ImageError]) -> ImageError:
    """Mean over scenes."""
    return ImageError(
        float(np.mean([error.flat_mm for error in errors])),
        float(np.mean([error.wrong_share for error in errors])),
    )
