"""The report: one HTML file that opens without a network, with the verdict on top."""

from __future__ import annotations

import base64
import html
import io
from pathlib import Path

import cv2
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from equi_calibration.cell_file import CellSettings
from equi_calibration.check.checks import Verdict
from equi_calibration.check.figures import (
    clouds_figure,
    errors_figure,
    fused_figure,
    overlay,
    view_errors_px,
)
from equi_calibration.collect.dataset import Dataset
from equi_calibration.scene.scene import SceneReport
from equi_calibration.solve.solution import SolutionRecord

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1080px; margin: 2em auto; padding: 0 1em;
       color: #222; }
h1 { margin-bottom: 0.1em; } h2 { margin-top: 1.8em; }
.banner { padding: 0.6em 1em; color: white; font-size: 1.5em; font-weight: 700;
          border-radius: 6px; }
.pass { background: #2e7d4f; } .fail { background: #b3261e; }
table { border-collapse: collapse; width: 100%; margin: 1em 0; }
td, th { text-align: left; padding: 0.25em 0.7em; border-bottom: 1px solid #ddd; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
tr.bad td { background: #fde8e6; } .advice { color: #b3261e; }
img { max-width: 100%; } .views { display: flex; flex-wrap: wrap; gap: 12px; }
figure { margin: 0; } figcaption { color: #555; font-size: 0.9em; }
.small { color: #555; font-size: 0.9em; }
"""
_VIEWS_PER_CAMERA = 3


def write_report(
    folder: Path,
    cell: CellSettings,
    dataset: Dataset,
    record: SolutionRecord,
    scene: SceneReport,
    verdict: Verdict,
) -> tuple[Path, Path]:
    """Write report.html and report.png (the fused image) into a folder; returns both paths."""
    folder.mkdir(parents=True, exist_ok=True)
    errors = view_errors_px(dataset, record, cell)
    fused = fused_figure(scene, cell)
    parts = [
        _head(cell, record, verdict),
        _table(verdict),
        "<h2>Where the cameras stand</h2>",
        _poses(record),
        "<h2>Reprojected corners</h2><p>Green circles: corners found. Red crosses: where robot and "
        "calibration say they are. Worst, middle and best view of each camera.</p>",
        _views(cell, dataset, record, errors),
        _figure(errors_figure(dataset, record, errors), "Error per view"),
        "<h2>Both clouds</h2>",
        _figure(clouds_figure(scene, cell), "The clouds of the cameras after calibration"),
        "<h2>The fused image of the known blocks</h2>",
        _figure(fused, "What the policy's depth channel is made of"),
        _details(record, scene),
        _rejections(record),
    ]
    page = (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        f"<title>Calibration of {html.escape(cell.cell)}</title><style>{_STYLE}</style></head>"
        f"<body>{''.join(parts)}</body></html>"
    )
    html_path, png_path = folder / "report.html", folder / "report.png"
    html_path.write_text(page, encoding="utf-8")
    fused.savefig(png_path, dpi=110)
    return html_path, png_path


def _head(cell: CellSettings, record: SolutionRecord, verdict: Verdict) -> str:
    word, style = ("PASS", "pass") if verdict.passed else ("FAIL", "fail")
    return (
        f"<h1>Calibration of cell “{html.escape(cell.cell)}”</h1>"
        f"<p class='small'>Data collected {html.escape(record.created_utc)}, solved "
        f"{html.escape(record.solved_utc)}, software {html.escape(record.software_version)}, "
        f"dataset {html.escape(record.dataset_checksum[:12])}</p>"
        f"<div class='banner {style}'>{word}</div>"
    )


def _table(verdict: Verdict) -> str:
    rows = []
    for check in verdict.checks:
        value = "yes" if check.unit == "" and check.limit == 0.0 else f"{check.value:.3g}"
        if check.unit == "" and check.limit == 0.0 and not check.passed:
            value = "no"
        limit = "" if check.limit == 0.0 else f"{check.limit:.3g}"
        advice = f"<div class='advice'>{html.escape(check.advice)}</div>" if check.advice else ""
        rows.append(
            f"<tr class='{'' if check.passed else 'bad'}'><td>{html.escape(check.subject)}</td>"
            f"<td>{html.escape(check.name)}{advice}</td><td class='number'>{value}</td>"
            f"<td class='number'>{limit}</td><td>{html.escape(check.unit)}</td>"
            f"<td>{'pass' if check.passed else 'FAIL'}</td></tr>"
        )
    return (
        "<table><tr><th></th><th>quantity</th><th>value</th><th>limit</th><th></th><th></th></tr>"
        + "".join(rows)
        + "</table>"
    )


def _poses(record: SolutionRecord) -> str:
    rows = []
    for name, camera in record.cameras.items():
        x, y, z = camera.pose[:3, 3]
        rows.append(
            f"<tr><td>{html.escape(name)}</td><td class='number'>{x:.4f}, {y:.4f}, {z:.4f}</td>"
            f"<td class='number'>{camera.position_uncertainty_mm:.2f} mm</td>"
            f"<td class='number'>{camera.rotation_uncertainty_deg:.3f} deg</td>"
            f"<td class='number'>{camera.views}</td></tr>"
        )
    return (
        "<table><tr><th></th><th>x, y, z in base_link [m]</th><th>95 % position in the workspace"
        "</th><th>95 % angle</th><th>views</th></tr>" + "".join(rows) + "</table>"
    )


def _views(
    cell: CellSettings,
    dataset: Dataset,
    record: SolutionRecord,
    errors: dict[str, dict[int, float]],
) -> str:
    parts = ["<div class='views'>"]
    for name, by_pose in errors.items():
        ranked = sorted(by_pose, key=lambda pose: by_pose[pose])
        if not ranked:
            continue
        chosen = [ranked[round(i)] for i in np.linspace(len(ranked) - 1, 0, _VIEWS_PER_CAMERA)]
        for pose in dict.fromkeys(chosen):
            picture = overlay(dataset, record, cell, pose, name)
            parts.append(
                f"<figure><img width='330' src='{_png(picture)}'><figcaption>{html.escape(name)}, "
                f"pose {pose}, {by_pose[pose]:.2f} px</figcaption></figure>"
            )
    return "".join([*parts, "</div>"])


def _details(record: SolutionRecord, scene: SceneReport) -> str:
    items = [
        f"Noise found in the data: corners {record.pixel_noise_px:.3f} px (typical view), robot "
        f"{record.robot_position_noise_mm:.2f} mm and {record.robot_rotation_noise_deg:.3f} deg.",
        f"Size of the print over its definition: {record.board_scale:.4f} "
        f"± {record.board_scale_sigma:.4f}.",
        f"{record.poses} poses used, {record.rejected_corners} corners rejected as outliers.",
    ]
    for name, view in scene.views.items():
        items.append(
            f"{html.escape(name)}: depth scale {view.correction.scale:.4f}, offset "
            f"{1000 * view.correction.offset_m:.2f} mm; table before correction off by "
            f"{view.raw_table.height_m * 1000:.2f} mm and {view.raw_table.tilt_deg:.2f} deg; "
            f"{len(view.blocks)} blocks found."
        )
    if scene.registration is not None:
        icp = scene.registration
        items.append(
            f"Cloud-to-cloud registration (ICP, point to plane): at most {icp.worst_mm:.2f} mm in "
            f"the {icp.constrained} of 6 directions that these shapes determine; "
            f"{100 * icp.fitness:.0f} % of the points have a partner."
        )
    return "<h2>Details</h2><ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"


def _rejections(record: SolutionRecord) -> str:
    if not record.rejections:
        return "<p>No view was rejected.</p>"
    rows = "".join(
        f"<tr><td>{html.escape(file)}</td><td>{html.escape('; '.join(reasons))}</td></tr>"
        for file, reasons in sorted(record.rejections.items())
    )
    return f"<h2>Rejected views</h2><table><tr><th>image</th><th>reason</th></tr>{rows}</table>"


def _figure(figure: Figure, caption: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100)
    data = base64.b64encode(buffer.getvalue()).decode()
    return (
        f"<figure><img src='data:image/png;base64,{data}' alt='{html.escape(caption)}'>"
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def _png(picture: NDArray[np.uint8]) -> str:
    data = base64.b64encode(cv2.imencode(".png", picture)[1].tobytes()).decode()
    return f"data:image/png;base64,{data}"
