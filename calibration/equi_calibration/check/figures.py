"""Pictures of a calibration: corners in their places, clouds on each other, blocks as blocks."""

from __future__ import annotations

from collections.abc import Mapping

import cv2
import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from equi_calibration.board.detection import BoardDetector
from equi_calibration.board.intrinsics import Intrinsics
from equi_calibration.cell_file import CellSettings
from equi_calibration.collect.dataset import Dataset
from equi_calibration.scene.scene import SceneReport
from equi_calibration.solve.solution import SolutionRecord
from equi_core.contract import ImageSpec
from equi_core.geometry import invert, transform_points
from equi_core.observation.image import heights_from_points

FloatArray = NDArray[np.float64]

CAMERA_COLOURS = ("#d1495b", "#2a7f9e")
_SEEN = (80, 200, 80)
_PREDICTED = (60, 60, 230)
_ZOOM = 2
_MARGIN_PX = 25


def overlay(
    dataset: Dataset, record: SolutionRecord, cell: CellSettings, pose_index: int, camera: str
) -> NDArray[np.uint8]:
    """A view, cropped and enlarged, with seen (green) and predicted (red) corners."""
    pose = dataset.poses[pose_index]
    image = dataset.image(pose, camera)
    lens = Intrinsics.from_dict(record.cameras[camera].intrinsics)
    camera_from_board = (
        invert(record.cameras[camera].pose) @ pose.base_from_tcp @ np.array(record.tcp_from_board)
    )
    predicted = lens.project(transform_points(camera_from_board, dataset.board.corners_m()))
    detection = BoardDetector(dataset.board, cell.view_gate).detect(image, lens)
    outline = lens.project(transform_points(camera_from_board, dataset.board.outline_m()))
    low = np.maximum(np.floor(outline.min(axis=0)).astype(int) - _MARGIN_PX, 0)
    high = np.ceil(outline.max(axis=0)).astype(int) + _MARGIN_PX
    crop = image[low[1] : high[1], low[0] : high[0]]
    picture = cv2.cvtColor(
        cv2.resize(crop, None, fx=_ZOOM, fy=_ZOOM, interpolation=cv2.INTER_CUBIC),
        cv2.COLOR_GRAY2BGR,
    )

    def place(pixel: FloatArray) -> tuple[int, int]:
        x, y = (pixel - low + 0.5) * _ZOOM - 0.5
        return round(float(x) * 16), round(float(y) * 16)

    for corner in detection.corners_px:
        cv2.circle(picture, place(corner), 5 * 16, _SEEN, 1, cv2.LINE_AA, 4)
    for corner in predicted:
        x, y = place(corner)
        for dx, dy in ((3 * 16, 0), (0, 3 * 16)):
            cv2.line(picture, (x - dx, y - dy), (x + dx, y + dy), _PREDICTED, 1, cv2.LINE_AA, 4)
    return np.asarray(picture, dtype=np.uint8)


def clouds_figure(scene: SceneReport, cell: CellSettings) -> Figure:
    """Both clouds in two colours: from above and from the side."""
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    above, side = figure.subplots(1, 2, width_ratios=[1, 1.25])
    rng = np.random.default_rng(0)
    box = cell.scene.workspace
    for (name, view), colour in zip(scene.views.items(), CAMERA_COLOURS, strict=False):
        points = view.points_base_m
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


def fused_figure(scene: SceneReport, cell: CellSettings) -> Figure:
    """The fused top-down height image, per camera and together, with the boxes drawn in."""
    spec = ImageSpec()
    centre = np.array([*cell.scene.workspace.centre_m[:2], 0.2])
    pictures = {
        name: heights_from_points(view.points_base_m, centre, spec)
        for name, view in scene.views.items()
    }
    together = heights_from_points(
        np.concatenate([view.points_base_m for view in scene.views.values()]), centre, spec
    )
    figure = Figure(figsize=(11, 3.9), layout="constrained")
    axes = figure.subplots(1, len(pictures) + 1)
    half = spec.view_m / 2
    # Rows grow with x, so the image is shown with x downwards and y to the right.
    extent = (centre[1] - half, centre[1] + half, centre[0] + half, centre[0] - half)
    shown = None
    for axis, (title, picture) in zip(axes, [*pictures.items(), ("fused", together)], strict=True):
        shown = axis.imshow(
            1000 * np.clip(picture, -0.01, 0.08), extent=extent, cmap="viridis", vmin=-5, vmax=60
        )
        axis.set(title=title, xlabel="y [m]", ylabel="x [m]")
    for (_, view), colour in zip(scene.views.items(), CAMERA_COLOURS, strict=False):
        for block in view.blocks:
            outline = _block_outline(block.centre_m, block.yaw_rad, cell.scene.block_size_m)
            axes[-1].plot(outline[:, 1], outline[:, 0], color=colour, linewidth=1.2)
    if shown is not None:
        figure.colorbar(shown, ax=axes, label="height [mm]", shrink=0.85)
    return figure


def errors_figure(
    dataset: Dataset, record: SolutionRecord, offsets_px: Mapping[str, Mapping[int, float]]
) -> Figure:
    """Reprojection error per pose, and where the board was shown."""
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    bars, places = figure.subplots(1, 2, width_ratios=[1.6, 1])
    tcp_from_board = np.array(record.tcp_from_board)
    for index, (name, colour) in enumerate(zip(record.cameras, CAMERA_COLOURS, strict=False)):
        values = offsets_px.get(name, {})
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
                    dataset.poses[pose].base_from_tcp @ tcp_from_board, dataset.board.centre_m[None]
                )[0]
                for pose in values
            ]
        )
        if len(centres):
            places.scatter(centres[:, 0], centres[:, 1], color=colour, s=14, label=name)
    bars.set(
        xlabel="pose",
        ylabel="RMS [px]",
        title="Reprojection error per view, robot poses as reported",
    )
    bars.legend()
    places.set(xlabel="x [m]", ylabel="y [m]", title="Board centres per camera")
    places.set_aspect("equal")
    return figure


def view_errors_px(
    dataset: Dataset, record: SolutionRecord, cell: CellSettings
) -> dict[str, dict[int, float]]:
    """RMS reprojection error per coordinate of each accepted view, by camera and pose [px]."""
    detector = BoardDetector(dataset.board, cell.view_gate)
    errors: dict[str, dict[int, float]] = {name: {} for name in record.cameras}
    corners = dataset.board.corners_m()
    for pose, camera in dataset.views():
        if pose.images[camera] in record.rejections:
            continue
        lens = Intrinsics.from_dict(record.cameras[camera].intrinsics)
        detection = detector.detect(dataset.image(pose, camera), lens)
        if not detection.accepted:
            continue
        camera_from_board = (
            invert(record.cameras[camera].pose)
            @ pose.base_from_tcp
            @ np.array(record.tcp_from_board)
        )
        predicted = lens.project(transform_points(camera_from_board, corners[detection.corner_ids]))
        errors[camera][pose.index] = float(
            np.sqrt(np.mean((predicted - detection.corners_px) ** 2))
        )
    return errors


def _block_outline(
    centre_m: FloatArray, yaw_rad: float, size_m: tuple[float, float, float]
) -> FloatArray:
    """Closed outline (5, 2) of a block's top face in base_link."""
    half = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1], [1, 1]]) * np.array(size_m[:2]) / 2
    cos, sin = np.cos(yaw_rad), np.sin(yaw_rad)
    return centre_m[:2] + half @ np.array([[cos, sin], [-sin, cos]])
