# SPDX-License-Identifier: MIT
"""The depth side of a calibration: the table, the length of depths, and cloud against cloud.

The images decide the camera poses; the clouds are an independent check. A table that is not at
z = 0, a block that two cameras see at two positions, or a depth that is too long by a percent would
spoil the fused observation without leaving a trace in any reprojection error.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import open3d as o3d
from numpy.typing import NDArray

from equi_calibration.cell_file import Box
from equi_calibration.errors import SceneError
from equi_core.geometry import invert, matrix_to_rotvec, transform_points

FloatArray = NDArray[np.float64]

_FEWEST_TABLE_POINTS = 2000
_SEARCH_ABOVE_M = 0.15
"""A camera that is wrong by more than this is not found by its clouds."""
_PLANE_GATE_M = 0.008
_MOST_TABLE_TILT_DEG = 25.0
_SCALE_TRUST = 0.01
_OFFSET_TRUST_M = 0.002
# Depth errors are alike over tens of pixels and not random: so many points count as independent.
_EFFECTIVE_POINTS = 200.0
_ICP_VOXEL_M = 0.004
_ICP_REACH_M = 0.02
_WEAKEST_DIRECTION = 0.1


@dataclass(frozen=True, eq=False)
class TablePlane:
    """The table as one camera sees it: z = height + slope_x (x - x0) + slope_y (y - y0)."""

    height_m: float
    """At the middle of the workspace; should be 0."""
    slope_x: float
    slope_y: float
    reference_xy_m: FloatArray
    noise_m: float
    """Spread of the points about the plane."""
    points: int

    def height_at(self, xy_m: FloatArray) -> FloatArray:
        """Heights (N,) at positions (N, 2) [m]."""
        offset = np.asarray(xy_m) - self.reference_xy_m
        return self.height_m + offset[:, 0] * self.slope_x + offset[:, 1] * self.slope_y

    def worst_mm(self, workspace: Box) -> float:
        """Largest distance from z = 0 over the workspace [mm]."""
        return 1000 * float(np.abs(self.height_at(workspace.corners_m()[:4, :2])).max())

    @property
    def tilt_deg(self) -> float:
        """Angle against the horizontal."""
        return float(np.degrees(np.arctan(np.hypot(self.slope_x, self.slope_y))))


@dataclass(frozen=True)
class DepthCorrection:
    """corrected point = scale * point + (0, 0, offset) in the cloud's optical frame."""

    scale: float
    offset_m: float


@dataclass(frozen=True, eq=False)
class Registration:
    """How one cloud must be moved to lie on another, where their shapes determine it."""

    translation_m: FloatArray
    """(3,) at the middle of the workspace."""
    rotation_rad: FloatArray
    """(3,)"""
    directions: FloatArray
    """(K, 6) unit vectors of the K of six directions that the shapes determine, for a motion whose
    rotation is multiplied by `lever_m`; a bare table determines three."""
    lever_m: float
    centre_m: FloatArray
    """(3,) point in the frame of the clouds about which the motion is stated."""
    fitness: float
    """Share of points with a partner."""
    rms_mm: float
    worst_mm: float
    """Largest displacement anywhere in the workspace."""

    @property
    def constrained(self) -> int:
        """How many directions the shapes determine."""
        return len(self.directions)

    def in_frame(self, dest_from_clouds: FloatArray) -> Registration:
        """The same motion of clouds that are stated in another frame (4, 4)."""
        rotation = dest_from_clouds[:3, :3]
        both = np.kron(np.eye(2), rotation)
        return dataclasses.replace(
            self,
            translation_m=rotation @ self.translation_m,
            rotation_rad=rotation @ self.rotation_rad,
            directions=self.directions @ both.T,
            centre_m=transform_points(dest_from_clouds, self.centre_m[None])[0],
        )


def to_base(
    points_camera_m: FloatArray,
    base_from_cloud: FloatArray,
    correction: DepthCorrection | None = None,
) -> FloatArray:
    """Valid points (N, 3) of a cloud in base_link, with the depth corrected if asked."""
    points = np.asarray(points_camera_m, dtype=np.float64)
    valid = np.all(np.isfinite(points), axis=1) & (points[:, 2] > 0.0)
    points = points[valid]
    if correction is not None:
        points = correction.scale * points + np.array([0.0, 0.0, correction.offset_m])
    return transform_points(base_from_cloud, points)


def find_table(points_base_m: FloatArray, workspace: Box) -> TablePlane:
    """Fit the table in a cloud (N, 3) given in base_link.

    Raises:
        SceneError: no level surface near z = 0 in the workspace.
    """
    x, y, z = points_base_m.T
    near = (
        (x > workspace.low_m[0])
        & (x < workspace.high_m[0])
        & (y > workspace.low_m[1])
        & (y < workspace.high_m[1])
        & (np.abs(z) < _SEARCH_ABOVE_M)
    )
    cropped = points_base_m[near]
    if len(cropped) < _FEWEST_TABLE_POINTS:
        raise SceneError(
            f"only {len(cropped)} points lie over the workspace near the table, at least "
            f"{_FEWEST_TABLE_POINTS} are needed; does the camera look at the table, and is its "
            "calibration right to some centimetres?"
        )
    cloud = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(cropped))
    o3d.utility.random.seed(0)
    normal_and_offset, _ = cloud.segment_plane(_PLANE_GATE_M, 3, 400)
    normal = np.asarray(normal_and_offset[:3])
    tilt = float(np.degrees(np.arccos(min(1.0, abs(normal[2]) / np.linalg.norm(normal)))))
    if tilt > _MOST_TABLE_TILT_DEG:
        raise SceneError(
            f"the largest plane over the workspace is tilted by {tilt:.0f} deg; clear the table, "
            "or the camera's orientation is far off"
        )
    distance = np.abs(cropped @ normal + normal_and_offset[3])
    return _fit_plane(cropped[distance < _PLANE_GATE_M], workspace.centre_m[:2])


def depth_correction(
    points_camera_m: FloatArray, base_from_cloud: FloatArray, workspace: Box
) -> DepthCorrection:
    """Scale and offset that put the seen table where the calibrated camera says z = 0 is.

    Both are held near 1 and 0 by what is known of such devices, because a table seen over a short
    range of distances hardly tells them apart.
    """
    points = np.asarray(points_camera_m, dtype=np.float64)
    points = points[np.all(np.isfinite(points), axis=1) & (points[:, 2] > 0.0)]
    in_base = transform_points(base_from_cloud, points)
    table = find_table(in_base, workspace)
    over_table = (
        np.all(in_base[:, :2] > np.asarray(workspace.low_m[:2]), axis=1)
        & np.all(in_base[:, :2] < np.asarray(workspace.high_m[:2]), axis=1)
        & (np.abs(in_base[:, 2] - table.height_at(in_base[:, :2])) < _PLANE_GATE_M)
    )
    seen = points[over_table]
    rays = seen / seen[:, 2:]
    # Along each ray, the depth at which it meets z = 0.
    expected = -base_from_cloud[2, 3] / (rays @ base_from_cloud[2, :3])
    depth = seen[:, 2]
    sigma = max(float(np.std(expected - depth * np.median(expected / depth))), 5e-4)
    weight = np.sqrt(min(_EFFECTIVE_POINTS, len(depth)) / len(depth)) / sigma
    matrix = np.concatenate(
        [
            weight * np.stack([depth, np.ones_like(depth)], axis=1),
            np.diag([1.0 / _SCALE_TRUST, 1.0 / _OFFSET_TRUST_M]),
        ]
    )
    target = np.concatenate([weight * (expected - depth), np.zeros(2)])
    change, *_ = np.linalg.lstsq(matrix, target, rcond=None)
    return DepthCorrection(float(1.0 + change[0]), float(change[1]))


def register(source_m: FloatArray, target_m: FloatArray, workspace: Box) -> Registration:
    """Register two clouds in base_link by ICP (point to plane) over the workspace.

    Directions in which the shapes can slide on themselves are not reported as disagreement.
    """
    source, target = (_prepared(cloud, workspace) for cloud in (source_m, target_m))
    centre = workspace.centre_m * [1.0, 1.0, 0.0]
    result = o3d.pipelines.registration.registration_icp(
        source,
        target,
        _ICP_REACH_M,
        np.eye(4),
        o3d.pipelines.registration.TransformationEstimationPointToPlane(
            o3d.pipelines.registration.TukeyLoss(0.006)
        ),
        o3d.pipelines.registration.ICPConvergenceCriteria(1e-7, 1e-7, 60),
    )
    if len(result.correspondence_set) < 500:
        raise SceneError(
            f"only {len(result.correspondence_set)} points of the two clouds lie within "
            f"{_ICP_REACH_M * 1000:.0f} mm of each other; a camera is far off or looks elsewhere"
        )
    pose = np.asarray(result.transformation)
    motion = np.concatenate(
        [
            transform_points(pose, centre[None])[0] - centre,
            matrix_to_rotvec(pose[:3, :3]),
        ]
    )
    partners = np.asarray(result.correspondence_set)
    points = transform_points(pose, np.asarray(source.points))[partners[:, 0]] - centre
    normals = np.asarray(target.normals)[partners[:, 1]]
    directions, lever = _determined(points, normals)
    scaled = directions.T @ (directions @ (motion * _lever_scale(lever)))
    motion = scaled / _lever_scale(lever)
    corners = workspace.corners_m() - centre
    moved = motion[:3] + np.cross(motion[3:], corners)
    return Registration(
        motion[:3],
        motion[3:],
        directions,
        lever,
        centre,
        float(result.fitness),
        1000 * float(result.inlier_rmse),
        1000 * float(np.linalg.norm(moved, axis=1).max()),
    )


def cloud_poses(
    base_from_camera: Mapping[str, FloatArray], cloud_from_image: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """`base_from_cloud` of each camera from the pose of its images."""
    return {name: pose @ invert(cloud_from_image[name]) for name, pose in base_from_camera.items()}


def _fit_plane(points: FloatArray, reference_xy_m: FloatArray) -> TablePlane:
    offset = points[:, :2] - reference_xy_m
    matrix = np.column_stack([np.ones(len(points)), offset])
    weights = np.ones(len(points))
    for _ in range(5):
        solution, *_ = np.linalg.lstsq(
            matrix * weights[:, None], points[:, 2] * weights, rcond=None
        )
        residual = points[:, 2] - matrix @ solution
        spread = max(1.4826 * float(np.median(np.abs(residual))), 1e-5)
        weights = np.sqrt(1.0 / (1.0 + (residual / (2.0 * spread)) ** 2))
    height, slope_x, slope_y = (float(value) for value in solution)
    return TablePlane(height, slope_x, slope_y, np.asarray(reference_xy_m), spread, len(points))


def _prepared(points_m: FloatArray, workspace: Box) -> o3d.geometry.PointCloud:
    inside = np.all(points_m > np.asarray(workspace.low_m) - [0.0, 0.0, 0.05], axis=1) & np.all(
        points_m < np.asarray(workspace.high_m), axis=1
    )
    cloud = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(points_m[inside]))
    cloud = cloud.voxel_down_sample(_ICP_VOXEL_M)
    if len(cloud.points) < 500:
        raise SceneError("the workspace is empty in one of the clouds; is the lens covered?")
    cloud.estimate_normals(o3d.geometry.KDTreeSearchParamHybrid(0.015, 30))
    cloud.orient_normals_to_align_with_direction(np.array([0.0, 0.0, 1.0]))
    return cloud


def _determined(points: FloatArray, normals: FloatArray) -> tuple[FloatArray, float]:
    """Directions (K, 6) of a motion that plane distances depend on, and their lever [m]."""
    lever = max(float(np.sqrt(np.mean(np.sum(points**2, axis=1)))), 1e-3)
    rows = np.concatenate([normals, np.cross(points, normals) / lever], axis=1)
    values, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
    return vectors[:, values > _WEAKEST_DIRECTION * values.max()].T, lever


def _lever_scale(lever_m: float) -> FloatArray:
    return np.array([1.0, 1.0, 1.0, lever_m, lever_m, lever_m])
