# SPDX-License-Identifier: MIT
"""What two clouds say of two cameras, as a residual of the joint refinement (`solve --icp`).

ICP finds the motion that lays one cloud on the other, in the directions that the shapes on the
table determine. The refinement is asked to move the two cameras against each other by that motion,
as far as the images allow: each side counts by its standard deviation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equi_calibration.cell_file import SceneSettings
from equi_calibration.collect.dataset import Dataset
from equi_calibration.errors import SceneError
from equi_calibration.scene.depth import Registration, cloud_poses
from equi_calibration.scene.scene import SceneReport, examine_scene
from equi_calibration.solve.parameters import Parameters, skew
from equi_core.geometry import invert, matrix_to_rotvec, transform_points

FloatArray = NDArray[np.float64]

ICP_SIGMA_M = 0.7e-3
"""Standard deviation of what ICP says in one direction: depth errors are alike over the table, so
thousands of points do not make it better."""


@dataclass(frozen=True, eq=False)
class CloudConstraint:
    """`source` should move against `target` by a motion; both as they stood at registration."""

    source: str
    target: str
    base_from_camera: Mapping[str, FloatArray]
    registration: Registration
    sigma_m: float = ICP_SIGMA_M

    def residual(self, parameters: Parameters) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Value (K,), derivative (K, size) and standard deviation (K,) [m]."""
        found = self.registration
        wanted = np.concatenate([found.translation_m, found.rotation_rad])
        scale = np.array([1.0] * 3 + [found.lever_m] * 3)
        rows = found.directions * scale
        moved = self._moved(parameters, self.source) - self._moved(parameters, self.target)
        jacobian = np.zeros((len(rows), parameters.size))
        # A step (v, w) of camera_from_base moves what the camera sees at q by -(v + w x q).
        by_step = np.zeros((6, 6))
        by_step[:3, :3] = by_step[3:, 3:] = -np.eye(3)
        by_step[:3, 3:] = skew(found.centre_m)
        jacobian[:, parameters.camera_slice(self.source)] = rows @ by_step
        jacobian[:, parameters.camera_slice(self.target)] = -rows @ by_step
        return rows @ (moved - wanted), jacobian, np.full(len(rows), self.sigma_m)

    def _moved(self, parameters: Parameters, camera: str) -> FloatArray:
        """Motion (6,) about the centre by which a camera's points have moved since registration."""
        centre = self.registration.centre_m
        change = invert(parameters.camera_from_base[camera]) @ invert(self.base_from_camera[camera])
        return np.concatenate(
            [
                transform_points(change, centre[None])[0] - centre,
                matrix_to_rotvec(change[:3, :3]),
            ]
        )


def examine_dataset(
    dataset: Dataset, base_from_camera: Mapping[str, FloatArray], settings: SceneSettings
) -> SceneReport:
    """Examine the clouds of a dataset's last scene, seen by cameras at the given poses (4, 4).

    Raises:
        SceneError: the dataset holds no clouds, or they do not show a table.
    """
    if not dataset.scenes:
        raise SceneError(
            f"{dataset.folder} holds no clouds of the table; collect again, with "
            f"{settings.block_count} blocks of {settings.block_size_m} m on the free table"
        )
    scene = dataset.scenes[-1]
    poses = cloud_poses(
        base_from_camera,
        {name: camera.cloud_from_image for name, camera in dataset.cameras.items()},
    )
    clouds = {name: dataset.cloud(scene, name) for name in scene.clouds}
    return examine_scene(clouds, poses, settings)


def cloud_constraint(
    dataset: Dataset, base_from_camera: Mapping[str, FloatArray], settings: SceneSettings
) -> CloudConstraint:
    """Register the clouds of a dataset's last scene, seen by cameras at the given poses (4, 4).

    Raises:
        SceneError: the dataset holds no clouds of two cameras, or they cannot be registered.
    """
    report = examine_dataset(dataset, base_from_camera, settings)
    if report.registration is None:
        raise SceneError(
            f"--icp needs clouds of two cameras; {dataset.folder} holds one camera only"
        )
    source, target = sorted(report.views)[:2]
    found = report.registration
    if not settings.geometry.task_is_base_link:
        found = found.in_frame(settings.geometry.base_link_from_task)
    return CloudConstraint(source, target, base_from_camera, found)
