# SPDX-License-Identifier: MIT
"""`equi-bench fusion`: two 640 x 480 clouds to one observation, ours beside an Open3D pipeline.

Both ways start from the same two organised clouds in RealSense's 20-byte layout and end with the
same 2 x 84 x 84 observation: ours in compiled passes over the message's bytes, the other as one
writes it with Open3D (transform, crop, voxel down-sampling, projection). They take turns in one
process, so that a busy machine slows both.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from equi_core import geometry as geo
from equi_core.cell_geometry import TCP_FROM_FLANGE_M
from equi_core.contract import ImageSpec
from equi_core.motion.ur5_kinematics import inverse_near
from equi_core.observation.builder import FusionConfig, ObservationBuilder, RobotPose
from equi_core.observation.height_repair import drop_spikes, fill_holes
from equi_core.observation.image import compose_observation, heights_from_points
from equi_core.observation.projection import CameraCloud

TCP_M = (0.5, 0.0, 0.15)
YAW_RAD = 0.4
_WIDTH, _HEIGHT, _FOCAL = 640, 480, 383.0


def run(options: list[str]) -> dict[str, object]:
    """Entry point of the benchmark."""
    parsed = _parse(options)
    image = ImageSpec()
    clouds = [_cloud((0.60, side * 0.72, 0.62), seed) for seed, side in enumerate((1.0, -1.0))]
    joints = inverse_near(_tool_pose(), (0.0, -1.57, 1.57, -1.57, -1.57, 0.0))

    builder = ObservationBuilder(
        image, {str(index): cloud.base_from_camera for index, cloud in enumerate(clouds)}
    )
    points = {str(index): cloud.points_m for index, cloud in enumerate(clouds)}
    robot = RobotPose(tuple(joints), TCP_M, YAW_RAD, opening=1.0, holding=False)

    def ours() -> NDArray[np.float32]:
        return builder.build(points, robot).image

    theirs = _open3d_pipeline(clouds, image, parsed.voxel_mm / 1000.0)
    difference_m = float(np.mean(np.abs(ours()[0] - theirs()[0])))
    ours_ms, open3d_ms = [], []
    for _ in range(parsed.repeats):
        ours_ms.append(_timed_ms(ours))
        open3d_ms.append(_timed_ms(theirs))
    metrics = {
        "ours_ms": float(np.median(ours_ms)),
        "open3d_ms": float(np.median(open3d_ms)),
        "ours_p99_ms": float(np.percentile(ours_ms, 99)),
        "open3d_p99_ms": float(np.percentile(open3d_ms, 99)),
    }
    # The median of ratios of neighbouring runs: a slow moment of the machine hits both alike.
    speedup = float(np.median(np.array(open3d_ms) / np.array(ours_ms)))
    table = Table(title="Two 640 x 480 clouds to one observation")
    for column in ("pipeline", "median [ms]", "p99 [ms]"):
        table.add_column(column, justify="left" if column == "pipeline" else "right")
    for name, key in (("ours (compiled passes)", "ours"), ("Open3D", "open3d")):
        table.add_row(name, f"{metrics[f'{key}_ms']:.2f}", f"{metrics[f'{key}_p99_ms']:.2f}")
    console = Console(stderr=True)
    console.print(table)
    console.print(
        f"{speedup:.1f} times as fast; the images differ by {difference_m * 1e3:.1f} mm on average"
    )
    return {
        **{name: round(value, 3) for name, value in metrics.items()},
        "speedup": round(speedup, 2),
        "mean_difference_mm": round(difference_m * 1e3, 3),
        "points": sum(len(cloud.points_m) for cloud in clouds),
        "repeats": parsed.repeats,
    }


def _open3d_pipeline(clouds: list[CameraCloud], image: ImageSpec, voxel_m: float) -> Any:
    """The same observation as one writes it with Open3D."""
    import open3d  # large; only this benchmark needs it

    half, limits = image.view_m / 2, FusionConfig()
    low = np.array([TCP_M[0] - half, TCP_M[1] - half, limits.min_height_m])
    high = np.array([TCP_M[0] + half, TCP_M[1] + half, limits.max_height_m])
    box = open3d.geometry.AxisAlignedBoundingBox(low, high)

    def pipeline() -> NDArray[np.float32]:
        parts = []
        for cloud in clouds:
            xyz = cloud.points_m[:, :3]
            valid = xyz[np.isfinite(xyz).all(axis=1) & (xyz[:, 2] != 0.0)].astype(np.float64)
            points = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(valid))
            points.transform(cloud.base_from_camera)
            parts.append(points.crop(box).voxel_down_sample(voxel_m))
        merged = np.concatenate([np.asarray(part.points) for part in parts])
        heights = heights_from_points(merged, TCP_M, image)
        return compose_observation(
            fill_holes(drop_spikes(heights)), TCP_M, YAW_RAD, 1.0, False, image
        )

    return pipeline


def _cloud(position_m: tuple[float, float, float], seed: int) -> CameraCloud:
    """What a camera sees of a table with two blocks, in RealSense's 20-byte layout, organised."""
    rng = np.random.default_rng(seed)
    z = np.array([0.5, 0.0, 0.02]) - position_m
    z = z / np.linalg.norm(z)
    x = np.cross(z, [0.0, 0.0, 1.0])
    x = x / np.linalg.norm(x)
    pose = geo.pose_matrix(position_m, np.column_stack([x, np.cross(z, x), z]))
    v, u = np.mgrid[:_HEIGHT, :_WIDTH]
    rays = np.stack(
        [(u - 319.5) / _FOCAL, (v - 239.5) / _FOCAL, np.ones((_HEIGHT, _WIDTH))], axis=-1
    )
    directions = rays @ pose[:3, :3].T
    depth = np.full((_HEIGHT, _WIDTH), np.inf)
    for height, centre, reach in (
        (0.0, (0.45, 0.0), (0.7, 0.8)),
        (0.05, (0.45, 0.08), (0.025, 0.025)),
        (0.05, (0.58, -0.08), (0.025, 0.025)),
    ):
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(directions[..., 2] < 0, (height - pose[2, 3]) / directions[..., 2], np.inf)
            hit = pose[:2, 3] + t[..., None] * directions[..., :2]
        inside = (np.abs(hit - centre) <= reach).all(axis=-1)
        depth = np.where(inside & (t < depth), t, depth)
    depth = depth + rng.normal(0.0, 0.001, depth.shape)
    depth[~np.isfinite(depth) | (rng.uniform(size=depth.shape) < 0.02)] = 0.0
    points = np.zeros((_HEIGHT * _WIDTH, 5), dtype=np.float32)
    points[:, :3] = (rays * depth[..., None]).reshape(-1, 3)
    return CameraCloud(points, pose)


def _tool_pose() -> NDArray[np.float64]:
    pose = geo.top_down_pose(TCP_M, YAW_RAD)
    pose[:3, 3] -= TCP_FROM_FLANGE_M * pose[:3, 2]
    return pose


def _timed_ms(pipeline: Any) -> float:
    start = time.perf_counter()
    pipeline()
    return (time.perf_counter() - start) * 1e3


def _parse(options: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="equi-bench fusion",
        description="Time cloud fusion. Example: equi-bench fusion --repeats 100",
    )
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument(
        "--voxel-mm", type=float, default=3.0, help="voxel size of the Open3D pipeline [mm]"
    )
    parsed = parser.parse_args(options)
    if parsed.repeats < 5:
        parser.error(f"--repeats {parsed.repeats}: at least 5")
    return parsed
