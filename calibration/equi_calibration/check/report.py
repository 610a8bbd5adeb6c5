# SPDX-License-Identifier: MIT
"""The calibration report: one HTML file that opens without a network, with the verdict on top."""

from __future__ import annotations

import io
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

import cv2
import numpy as np
from matplotlib.figure import Figure

from equi_calibration.cell_file import CellSettings
from equi_calibration.check.checks import Verdict
from equi_calibration.check.plots import (
    corner_overlay,
    plot_clouds,
    plot_fused_heights,
    plot_view_errors,
)
from equi_calibration.check.reprojection import view_errors_px
from equi_calibration.collect.dataset import Dataset
from equi_calibration.scene.scene import SceneReport
from equi_calibration.solve.solution import Solution
from equi_core.html_report import data_uri, render_report

_VIEWS_PER_CAMERA = 3


def write_report(
    folder: Path,
    cell: CellSettings,
    dataset: Dataset,
    solution: Solution,
    scene: SceneReport,
    verdict: Verdict,
) -> tuple[Path, Path]:
    """Write report.html and report.png (the fused image) into a folder; returns both paths."""
    folder.mkdir(parents=True, exist_ok=True)
    errors = view_errors_px(dataset, solution, cell)
    fused = plot_fused_heights(scene, cell)
    page = render_report(
        resources.files(__package__).joinpath("report.html.j2").read_text(encoding="utf-8"),
        cell=cell.cell,
        solution=solution,
        verdict=verdict,
        scene=scene,
        tiles=_tiles(solution, scene),
        views=_views(cell, dataset, solution, errors),
        error_plot=_png(plot_view_errors(dataset, solution, errors)),
        cloud_plot=_png(plot_clouds(scene, cell)),
        fused_plot=_png(fused),
    )
    html_path, png_path = folder / "report.html", folder / "report.png"
    html_path.write_text(page, encoding="utf-8")
    fused.savefig(png_path, dpi=110)
    return html_path, png_path


def _tiles(solution: Solution, scene: SceneReport) -> list[tuple[str, str]]:
    """The few numbers to read first, each with its label."""
    cameras = solution.cameras.values()
    tiles = [
        (
            f"{max(camera.position_error_mm for camera in cameras):.2f} mm",
            "held-out position error, RMS of the worse camera",
        ),
        (
            f"{max(camera.orientation_error_deg for camera in cameras):.2f} deg",
            "held-out orientation error, RMS of the worse camera",
        ),
        (
            f"{max(camera.reprojection_px for camera in cameras):.3f} px",
            "reprojection error of the worse camera",
        ),
    ]
    if len(scene.views) > 1:
        tiles.append((f"{scene.cross_camera_mm:.1f} mm", "disagreement of the clouds"))
    return tiles


def _views(
    cell: CellSettings,
    dataset: Dataset,
    solution: Solution,
    errors_px: Mapping[str, Mapping[int, float]],
) -> list[dict[str, str]]:
    """Worst, median and best view of each camera, with detected and predicted corners."""
    views = []
    for name, by_pose in errors_px.items():
        ranked = sorted(by_pose, key=lambda pose: by_pose[pose])
        if not ranked:
            continue
        chosen = [ranked[round(i)] for i in np.linspace(len(ranked) - 1, 0, _VIEWS_PER_CAMERA)]
        for pose in dict.fromkeys(chosen):
            image = corner_overlay(dataset, solution, cell, pose, name)
            coded = cv2.imencode(".png", image)[1].tobytes()
            views.append(
                {
                    "image": data_uri(coded, "image/png"),
                    "caption": f"{name}, pose {pose}, {by_pose[pose]:.2f} px",
                }
            )
    return views


def _png(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100)
    return data_uri(buffer.getvalue(), "image/png")
