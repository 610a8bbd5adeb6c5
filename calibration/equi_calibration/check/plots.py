# SPDX-License-Identifier: MIT
"""Images and plots of a calibration: reprojected corners, both clouds, the fused image."""

from __future__ import annotations

from collections.abc import Mapping

import cv2
import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from equi_calibration.board.detection import BoardDetector
from equi_calibration.cell_file import CellSettings
from equi_calibration.check.reprojection import reproject
from equi_calibration.collect.dataset import Dataset
from equi_calibration.scene.scene import SceneReport
from equi_calibration.solve.solution import Solution
from equi_core.contract import ImageSpec
from equi_core.geometry import transform_points
from equi_core.observation.image import heights_from_points

FloatArray = NDArray[np.float64]

CAMERA_COLOURS = ("#d1495b", "#2a7f9e")
_DETECTED_BGR = (80, 200, 80)
_PREDICTED_BGR = (60, 60, 230)
_ZOOM = 2
_MARGIN_PX = 25


def corner_overlay(
    dataset: Dataset, solution: Solution, cell: CellSettings, pose_index: int, camera: str
) -> NDArray[np.uint8]:
    """A view, cropped and enlarged, with detected (green) and predicted (red) corners; BGR."""
    pose = dataset.poses[pose_index]
    image = dataset.image(pose, camera)
    predicted = reproject(solution, pose, camera, dataset.board.corners_m())
    outline = reproject(solution, pose, camera, dataset.board.outline_m())
    detector = BoardDetector(dataset.board, cell.view_gate)
    detection = detector.detect(image, solution.cameras[camera].intrinsics)
    low = np.maximum(np.floor(outline.min(axis=0)).astype(int) - _MARGIN_PX, 0)
    high = np.ceil(outline.max(axis=0)).astype(int) + _MARGIN_PX
    crop = image[low[1] : high[1], low[0] : high[0]]
    drawn = cv2.cvtColor(
        cv2.resize(crop, None, fx=_ZOOM, fy=_ZOOM, interpolation=cv2.INTER_CUBIC),
        cv2.COLOR_GRAY2BGR,
    )

    def in_crop(pixel: FloatArray) -> tuple[int, int]:
        """Position in the enlarged crop, in sixteenths of a pixel."""
        x, y = (pixel - low + 0.5) * _ZOOM - 0.5
        return round(float(x) * 16), round(float(y) * 16)

    for corner in detection.corners_px:
        cv2.circle(drawn, in_crop(corner), 5 * 16, _DETECTED_BGR, 1, cv2.LINE_AA, 4)
    for corner in predicted:
        x, y = in_crop(corner)
        for dx, dy in ((3 * 16, 0), (0, 3 * 16)):
            cv2.line(drawn, (x - dx, y - dy), (x + dx, y + dy), _PREDICTED_BGR, 1, cv2.LINE_AA, 4)
    return np.asarray(drawn, dtype=np.uint8)


def plot_clouds(scene: SceneReport, cell: CellSettings) -> Figure:
    """Both clouds in two colours: from above and from the side."""
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    above, side = figure.subplots(1, 2, width_ratios=[1, 1.25])
    rng = np.random.default_rng(0)
    box = cell.scene.workspace
    for (name, view), colour in zip(scene.views.items(), CAMERA_COLOURS, strict=False):
        points = view.points_task_m
        near = points[
            np.all(points[:, :2] > np.array(box.low_m[:2]) - 0.05, axis=1)
            & np.all(points[:, :2] < np.array(box.high_m[:2]) + 0.05, axis=1)
            & (np.abs(points[:, 2]) < 0.3)
        ]
        raised = near[near[:, 2] > 0.012]
        raised = raised[rng.permutation(len(raised))[:6000]]
        some = near[rng.permutation(len(near))[:12000]]
        above.scatter(raised[:, 0], raised[:, 1], s=1.0, color=colour, label=name, linewidths=0)
        side.scatter(
            some[:, 1], 1000 * some[:, 2], s=0.6, color=colour, label=name, linewidths=0, alpha=0.6
        )
        for block in view.blocks:
            outline = _block_outline(block.centre_m, block.yaw_rad, cell.scene.block_size_m)
            above.plot(outline[:, 0], outline[:, 1], color=colour, linewidth=1.2)
    above.set(
        xlabel="x [m]", ylabel="y [m]", title="Points above the table, and the boxes fitted to them"
    )
    above.set_aspect("equal")
    above.legend(markerscale=8, loc="upper right", framealpha=1.0)
    side.axhline(0.0, color="k", linewidth=0.8)
    side.axhline(1000 * cell.scene.block_size_m[2], color="k", linewidth=0.8, linestyle=":")
    side.set(
        xlabel="y [m]",
        ylabel="z [mm]",
        title="From the side: table at 0, dotted the block's height",
        ylim=(-20, 1000 * cell.scene.block_size_m[2] + 30),
    )
    return figure


def plot_fused_heights(scene: SceneReport, cell: CellSettings) -> Figure:
    """The fused top-down height image, per camera and together, with the boxes drawn in."""
    spec = ImageSpec()
    centre = np.array([*cell.scene.workspace.centre_m[:2], 0.2])
    per_camera = {
        name: heights_from_points(view.points_task_m, centre, spec)
        for name, view in scene.views.items()
    }
    together = heights_from_points(
        np.concatenate([view.points_task_m for view in scene.views.values()]), centre, spec
    )
    figure = Figure(figsize=(11, 3.9), layout="constrained")
    axes = figure.subplots(1, len(per_camera) + 1)
    half = spec.view_m / 2
    # Rows grow with x, so the image is shown with x downwards and y to the right.
    extent = (centre[1] - half, centre[1] + half, centre[0] + half, centre[0] - half)
    shown = None
    for axis, (title, heights) in zip(
        axes, [*per_camera.items(), ("fused", together)], strict=True
    ):
        shown = axis.imshow(
            1000 * np.clip(heights, -0.01, 0.08), extent=extent, cmap="viridis", vmin=-5, vmax=60
        )
        axis.set(title=title, xlabel="y [m]", ylabel="x [m]")
    for (_, view), colour in zip(scene.views.items(), CAMERA_COLOURS, strict=False):
        for block in view.blocks:
            outline = _block_outline(block.centre_m, block.yaw_rad, cell.scene.block_size_m)
            axes[-1].plot(outline[:, 1], outline[:, 0], color=colour, linewidth=1.2)
    if shown is not None:
        figure.colorbar(shown, ax=axes, label="height [mm]", shrink=0.85)
    return figure


def plot_view_errors(
    dataset: Dataset, solution: Solution, errors_px: Mapping[str, Mapping[int, float]]
) -> Figure:
    """Reprojection error per pose, and where the board was shown."""
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    bars, positions = figure.subplots(1, 2, width_ratios=[1.6, 1])
    for index, (name, colour) in enumerate(zip(solution.cameras, CAMERA_COLOURS, strict=False)):
        values = errors_px.get(name, {})
        bars.bar(
            np.array(list(values)) + 0.4 * index - 0.2,
            list(values.values()),
            width=0.4,
            color=colour,
            label=name,
        )
        centres = np.array(
            [
                transform_points(
                    dataset.poses[pose].base_from_tcp @ solution.tcp_from_board,
                    dataset.board.centre_m[None],
                )[0]
                for pose in values
            ]
        )
        if len(centres):
            positions.scatter(centres[:, 0], centres[:, 1], color=colour, s=14, label=name)
    bars.set(
        xlabel="pose",
        ylabel="RMS [px]",
        title="Reprojection error per view, robot poses as reported",
    )
    bars.legend()
    positions.set(xlabel="x [m]", ylabel="y [m]", title="Board centres per camera")
    positions.set_aspect("equal")
    return figure


def _block_outline(
    centre_m: FloatArray, yaw_rad: float, size_m: tuple[float, float, float]
) -> FloatArray:
    """Closed outline (5, 2) of a block's top face in base_link."""
    half = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1], [1, 1]]) * np.array(size_m[:2]) / 2
    cos, sin = np.cos(yaw_rad), np.sin(yaw_rad)
    return centre_m[:2] + half @ np.array([[cos, sin], [-sin, cos]])
